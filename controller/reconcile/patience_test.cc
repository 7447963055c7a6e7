#include "controller/reconcile/patience.h"

#include <gtest/gtest.h>

#include <limits>
#include <ostream>

#include "libs/api/reasons.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using Kind = e2b::CreateFailure::Kind;
namespace reason = api::reason;

struct Case {
  const char* name;
  ErrorCode code;
  std::optional<Kind> kind;
  int failures;
  std::optional<base::Milliseconds> retry_after;
  std::string_view reason;
  base::Milliseconds delay;
  bool for_good = false;
  bool standstill = for_good;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr auto kUnavailable = ErrorCode::kUnavailable;
constexpr auto kLimited = ErrorCode::kRateLimited;
constexpr auto kSilent = reason::kProviderUnavailable;

const Case kCases[] = {
    // Of steps other than a create: every code.
    {"invalid", ErrorCode::kInvalid, {}, 0, {}, kSilent, 1s},
    {"denied", ErrorCode::kDenied, {}, 0, {}, reason::kCredentialsRejected, 1s},
    {"not_found", ErrorCode::kNotFound, {}, 0, {}, kSilent, 1s},
    {"conflict", ErrorCode::kConflict, {}, 0, {}, kSilent, 1s},
    {"rate_limited", kLimited, {}, 0, {}, reason::kRateLimited, 1s},
    {"unavailable", kUnavailable, {}, 0, {}, kSilent, 1s},
    {"cancelled", ErrorCode::kCancelled, {}, 0, {}, kSilent, 1s},

    // Of a create: every kind but the quota, which is left to the gate.
    {"create_ambiguous", kUnavailable, Kind::kAmbiguous, 0, {}, kSilent, 1s},
    {"create_without_a_template",
     ErrorCode::kNotFound,
     Kind::kRefused,
     0,
     {},
     reason::kTemplateNotFound,
     1s},
    {"create_still_without_it",
     ErrorCode::kNotFound,
     Kind::kRefused,
     1,
     {},
     reason::kTemplateNotFound,
     2s},
    {"create_without_it_for_the_third_time",
     ErrorCode::kNotFound,
     Kind::kRefused,
     2,
     {},
     reason::kTemplateNotFound,
     4s,
     false,
     true},
    {"create_without_it_for_the_tenth_time",
     ErrorCode::kNotFound,
     Kind::kRefused,
     9,
     {},
     reason::kTemplateNotFound,
     5min,
     false,
     true},
    {"create_without_it_for_ever",
     ErrorCode::kNotFound,
     Kind::kRefused,
     std::numeric_limits<int>::max(),
     {},
     reason::kTemplateNotFound,
     5min,
     false,
     true},
    {"create_invalid",
     ErrorCode::kInvalid,
     Kind::kRefused,
     0,
     {},
     reason::kRejectedByProvider,
     0s,
     true},
    {"create_conflicting",
     ErrorCode::kConflict,
     Kind::kRefused,
     3,
     {},
     reason::kRejectedByProvider,
     0s,
     true},
    {"create_denied", ErrorCode::kDenied, Kind::kRefused, 1, {}, reason::kCredentialsRejected, 2s},
    {"create_too_fast", kLimited, Kind::kRate, 0, 7s, reason::kRateLimited, 7s},
    {"create_without_capacity", kUnavailable, Kind::kCapacity, 2, {}, kSilent, 4s},
    {"create_not_sent", kUnavailable, Kind::kNotSent, 0, {}, kSilent, 1s},

    // The delay doubles up to a minute.
    {"second", kUnavailable, {}, 1, {}, kSilent, 2s},
    {"sixth", kUnavailable, {}, 5, {}, kSilent, 32s},
    {"seventh", kUnavailable, {}, 6, {}, kSilent, 60s},
    {"hundredth", kUnavailable, {}, 99, {}, kSilent, 60s},
    {"more_than_bits", kUnavailable, {}, std::numeric_limits<int>::max(), {}, kSilent, 60s},

    // What the provider names wins, be it shorter or longer; none is no delay at all.
    {"told_shorter", kUnavailable, {}, 6, 3s, kSilent, 3s},
    {"told_longer", kUnavailable, {}, 0, 5min, kSilent, 5min},
    {"told_nothing", kUnavailable, {}, 4, 0s, kSilent, 1ms},
};

class PatienceFor : public testing::TestWithParam<Case> {};

TEST_P(PatienceFor, NamesTheReasonAndTheDelay) {
  const Case& c = GetParam();
  const base::Error error{c.code, "why", c.retry_after};
  const Patience patience = patience_for(error, c.kind, c.failures);
  EXPECT_EQ(patience.reason, c.reason);
  EXPECT_EQ(patience.delay, c.delay);
  EXPECT_EQ(patience.for_good, c.for_good);
  EXPECT_EQ(patience.standstill, c.standstill);
}

INSTANTIATE_TEST_SUITE_P(, PatienceFor, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(IdempotencyKey, IsAnotherForEachAttemptAndNumberAndAlwaysTheSameForOne) {
  // printf 'n1:0' | sha256sum
  EXPECT_EQ(idempotency_key({"n1", 1, 0}),
            "9da078e7cfde61cd709b4a759f698ec8321b335628042324ee62995c2ca33f4c");
  EXPECT_EQ(idempotency_key({"n1", 2, 0}), idempotency_key({"n1", 1, 0}));
  EXPECT_NE(idempotency_key({"n1", 1, 1}), idempotency_key({"n1", 1, 0}));
  EXPECT_NE(idempotency_key({"n2", 1, 0}), idempotency_key({"n1", 1, 0}));
}

}  // namespace
}  // namespace controller
