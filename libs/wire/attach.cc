#include "libs/wire/attach.h"

#include <utility>

#include "libs/wire/words.h"

namespace wire {
namespace {

constexpr std::pair<NoEntry, std::string_view> kWords[] = {
    {NoEntry::kInvalid, "Invalid"},
    {NoEntry::kDenied, "Denied"},
    {NoEntry::kNotFound, "NotFound"},
    {NoEntry::kPaused, "Paused"},
    {NoEntry::kEnded, "Ended"},
    {NoEntry::kNotReady, "NotReady"},
    {NoEntry::kRateLimited, "RateLimited"},
    {NoEntry::kUnavailable, "Unavailable"},
};

}  // namespace

std::string_view to_word(NoEntry reason) { return word_for(kWords, reason); }
std::optional<NoEntry> no_entry_of(std::string_view word) { return value_for(kWords, word); }

}  // namespace wire
