#include "libs/wire/client/redial.h"

#include <gtest/gtest.h>

namespace wire {
namespace {

using Reason = CloseReason;
using base::Milliseconds;

struct RedialCase {
  const char* name;
  Close close;
  Redialling so_far;
  AfterLink after;
};
void PrintTo(const RedialCase& one, std::ostream* out) { *out << one.name; }

const Redialling kFirst{}, kThird{.tries = 2}, kDenied{.denied = true}, kInside{.welcomed = true};

const RedialCase kCases[] = {
    {"expired", {Reason::kExpired}, kFirst, Redial{Milliseconds(50)}},
    {"shutdown", {Reason::kShutdown}, kThird, Redial{Milliseconds(200)}},
    {"lost", {Reason::kLost}, kFirst, Redial{Milliseconds(50)}},
    {"silent", {Reason::kSilent}, kFirst, Redial{Milliseconds(50)}},
    {"impostor", {Reason::kImpostor}, kFirst, Redial{Milliseconds(50)}},
    {"a later version's", {Reason::kOther}, kFirst, Redial{Milliseconds(50)}},
    {"busy", {Reason::kBusy}, kFirst, Redial{Milliseconds(50)}},
    {"busy, asked for", {Reason::kBusy, "", 700}, kFirst, Redial{Milliseconds(700)}},
    {"busy, for too little", {Reason::kBusy, "", 0}, kFirst, Redial{kRedialFirst}},
    {"busy, for too long", {Reason::kBusy, "", 3'600'000}, kFirst, Redial{kBusyMost}},
    {"quiesce", {Reason::kQuiesce}, kInside, Redial{kQuiescedFor}},
    {"quiesce, asked for", {Reason::kQuiesce, "", 5'000}, kInside, Redial{Milliseconds(5'000)}},
    {"quiesce at first",
     {Reason::kQuiesce, "it is paused"},
     kFirst,
     GiveUp{{FailureCode::kUnavailable, "it is paused"}}},
    {"denied once", {Reason::kDenied, "no"}, kFirst, Redial{Milliseconds(50)}},
    {"denied twice", {Reason::kDenied, "no"}, kDenied, GiveUp{{FailureCode::kDenied, "no"}}},
    {"replaced", {Reason::kReplaced, "other"}, kFirst, GiveUp{{FailureCode::kConflict, "other"}}},
    {"version", {Reason::kVersion, "2"}, kFirst, GiveUp{{FailureCode::kUnsupported, "2"}}},
    {"protocol at first",
     {Reason::kProtocol, "no"},
     kFirst,
     GiveUp{{FailureCode::kInternal, "no"}}},
    {"protocol",
     {Reason::kProtocol, "gap"},
     kInside,
     Redial{Milliseconds(50), Failure{FailureCode::kInternal, "gap"}}},
    {"end, without a word",
     {Reason::kEnd},
     kFirst,
     GiveUp{{FailureCode::kCancelled, "the server closed the link: end"}}},
};

class AfterClose : public testing::TestWithParam<RedialCase> {};
TEST_P(AfterClose, IsAsTheProtocolSays) {
  EXPECT_EQ(after_close(GetParam().close, GetParam().so_far), GetParam().after);
}
INSTANTIATE_TEST_SUITE_P(Cases, AfterClose, testing::ValuesIn(kCases));

struct CredentialCase {
  const char* name;
  base::Error why;
  Redialling so_far;
  AfterLink after;
};
void PrintTo(const CredentialCase& one, std::ostream* out) { *out << one.name; }

using Error = base::ErrorCode;
const CredentialCase kCredentialCases[] = {
    {"denied", {Error::kDenied, "no"}, kInside, GiveUp{{FailureCode::kDenied, "no"}}},
    {"no token", {Error::kInvalid, "long"}, kInside, GiveUp{{FailureCode::kInvalid, "long"}}},
    {"absent at first",
     {Error::kNotFound, "none"},
     kFirst,
     GiveUp{{FailureCode::kUnavailable, "none"}}},
    {"absent", {Error::kNotFound, "none"}, kInside, Redial{Milliseconds(50)}},
    {"unavailable at first", {Error::kUnavailable, "503"}, kThird, Redial{Milliseconds(200)}},
    {"unavailable", {Error::kUnavailable, "503"}, kInside, Redial{Milliseconds(50)}},
    {"too often",
     {Error::kRateLimited, "429", Milliseconds(700)},
     kFirst,
     Redial{Milliseconds(700)}},
    {"too often, for too long",
     {Error::kRateLimited, "429", Milliseconds(3'600'000)},
     kFirst,
     Redial{kBusyMost}},
};

class WithoutCredential : public testing::TestWithParam<CredentialCase> {};
TEST_P(WithoutCredential, WaitsUnlessItIsRefused) {
  EXPECT_EQ(without_credential(GetParam().why, GetParam().so_far), GetParam().after);
}
INSTANTIATE_TEST_SUITE_P(Cases, WithoutCredential, testing::ValuesIn(kCredentialCases));

TEST(RedialAfter, DoublesUpToABoundAndSpreads) {
  EXPECT_EQ(redial_after({.tries = 0}), kRedialFirst);
  EXPECT_EQ(redial_after({.tries = 3}), kRedialFirst * 8);
  EXPECT_EQ(redial_after({.tries = 1'000'000}), kRedialMost);
  EXPECT_EQ(redial_after({.tries = 1'000'000, .chance = 1}), kRedialMost / 2);
  EXPECT_LT(redial_after({.tries = 3, .chance = 0.9}), redial_after({.tries = 3, .chance = 0.1}));
}

TEST(RenewAfter, LeavesAFifthAndIsNeverAtOnce) {
  EXPECT_EQ(renew_after(Milliseconds(3'600'000)), Milliseconds(2'880'000));
  EXPECT_EQ(renew_after(Milliseconds(1)), kRenewLeast);
}

}  // namespace
}  // namespace wire
