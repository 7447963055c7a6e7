#include "libs/wire/attach.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

std::string_view to_word(NoEntry reason) {
  const auto* const known =
      std::ranges::find(kWords, reason, [](const auto& each) { return each.first; });
  return known == std::end(kWords) ? "Unavailable" : known->second;
}

std::optional<NoEntry> no_entry_of(std::string_view word) {
  const auto* const known =
      std::ranges::find(kWords, word, [](const auto& each) { return each.second; });
  if (known == std::end(kWords)) return std::nullopt;
  return known->first;
}

}  // namespace wire
