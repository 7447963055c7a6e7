#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace controller {

// Whether a provider has room for one more sandbox. After a quota 429 only a create can tell: when
// the hold is over, or something of ours has ended, one create asks for all, and each that is made
// lets two more ask. Pure: the time is handed in.
class Room {
 public:
  static constexpr base::Milliseconds kAskAgain{1'000};  // While others ask.
  static constexpr int kAskersMax = 64;                  // As many made: there is room.

  explicit Room(base::Milliseconds hold) : hold_(hold) {}

  // Why no create is to be sent now, and after what time to ask again.
  std::optional<base::Error> none(base::Moment now) const;

  // A create that is on its way, and what was known when it left.
  struct Sent {
    bool asks = false;
    std::uint64_t endings = 0;
  };
  Sent send();

  enum class Answer {
    kMade,
    kFull,
    kBesides,  // Refused for another reason: nothing is known of the room.
    kNone,     // Not answered, or the provider is in trouble.
  };
  // `why` is the provider's word when it is full.
  void learn(const Sent& sent, Answer answer, base::Moment now, const std::string& why);

  // Something of ours was killed or paused. True: it ends a hold, so that those who wait may ask.
  bool ended(base::Moment now);

 private:
  const base::Milliseconds hold_;
  bool full_ = false;  // By the last word; then creates ask.
  base::Moment until_ = {};
  int asking_ = 0, askers_max_ = 1;
  std::uint64_t endings_ = 0;
  std::string why_;
};

}  // namespace controller
