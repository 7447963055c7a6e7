#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

// The words of the attach service (docs/design/attach.md), for who answers and who asks.
namespace wire {

inline constexpr char kAttachPath[] = "/v1/attach";
// Of a harness's token there, which so opens nothing else; and how long it may be.
inline constexpr char kAttachAudience[] = "sandfleet.dev/attach";
inline constexpr std::size_t kHarnessTokenBytesMax = 16u << 10;

// Why an attach token is not given: the reply's `reason`.
enum class NoEntry {
  kInvalid,
  kDenied,
  kNotFound,
  kPaused,    // Or about to be; somebody must resume it.
  kEnded,     // Or about to be; for good.
  kNotReady,  // Ask again.
  kRateLimited,
  kUnavailable,  // Neither yes nor no.
};
std::string_view to_word(NoEntry reason);
std::optional<NoEntry> no_entry_of(std::string_view word);

}  // namespace wire
