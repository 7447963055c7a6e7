#include "controller/reconcile/packing.h"

#include <gtest/gtest.h>

#include "controller/reconcile/testing/scenes.h"

namespace controller {
namespace {

using namespace std::chrono_literals;

base::Error an_error() {
  return {base::ErrorCode::kRateLimited, "words of a provider\nand more", 1'500ms};
}

Sighting a_sighting(const std::string& id) {
  return {.id = id,
          .state = e2b::State::kPaused,
          .uid = "0e3f8a52-8d0b-4d1c-9a6e-000000000001",
          .nonce = "0123456789abcdef0123456789abcdef",
          .epoch = -3,
          .started_at = scene::kWall,
          .end_at = scene::kWall - 1h,
          .envd_version = "0.6.13"};
}

// Every field is other than it begins.
Memory a_full_one() {
  Memory memory{.recorded_nonce = "n1",
                .sent = Sent{.attempt = {"n2", 7, std::int64_t{1} << 40}, .id = "sb-1"},
                .made = "sb-1",
                .send_ended = scene::kNow,
                .shown = {"sb-1", "sb-2", std::string("a\0b", 3)},
                .handle = e2b::Handle{"sb-1", "0.6.13", "t1", "t2", "eu.e2b.test"},
                .unclear_send_ended = scene::kNow - 1ms,
                .changed = base::Moment(-5ms),
                .listed = Listed{scene::kNow, {a_sighting("sb-1"), a_sighting("sb-2")}},
                .got = {{"sb-1", {scene::kNow, a_sighting("sb-1"), 0, scene::kBegan}},
                        {"sb-2", {scene::kNow, {}, 2, scene::kBegan}}},
                .killed = {{"sb-2", scene::kNow}},
                .bound_here = true,
                .extended = "sb-1",
                .released = "sb-2",
                .left = "sb-3",
                .executor = {.kind = ExecutorView::Kind::kGone,
                             .sandbox_id = "sb-1",
                             .started_at = scene::kWall,
                             .health = {"i-1", "1.2.3", {"uid-1", 1, 2, 3}, true},
                             .ask_at = base::Moment::max(),
                             .closed = 2,
                             .request = "now"},
                .idle = {.ask_at = scene::kNow,
                         .idle_for = 7s,
                         .record_by = scene::kNow + 1s,
                         .wake_seen = "then",
                         .busy = true,
                         .trouble = IdleTrouble{IdleTrouble::Step::kIdleAction, 3, scene::kNow,
                                                "500", 9, "now"}},
                .refusal_counted = true,
                .judged = "i-1@then",
                .rolled_back = true,
                .told = "i-1@now",
                .quiesced = true,
                .progress = Progress{"sending", scene::kNow, true}};
  memory.sent->failure = e2b::CreateFailure{an_error(), e2b::CreateFailure::Kind::kQuota};
  memory.held = {.failures = 4,
                 .step = "Prepare",
                 .until = base::Moment::min(),
                 .reason = "ProviderUnavailable",
                 .why = an_error(),
                 .generation = 9,
                 .deleting = true,
                 .request = "now",
                 .for_good = true,
                 .standstill = true,
                 .open = true};
  return memory;
}

TEST(Packing, GivesBackWhatItTook) {
  EXPECT_EQ(unpack(pack(Memory{})), Memory{});
  const Memory full = a_full_one();
  EXPECT_EQ(unpack(pack(full)), full);
  EXPECT_FALSE(full == Memory{});
}

TEST(Packing, KeepsOneAtRestInFewBytes) {
  const Memory memory =
      scene::at_rest("i0123456789abcdefghij", "0e3f8a52-8d0b-4d1c-9a6e-000000000001");
  EXPECT_LE(pack(memory).size(), 704u);
  EXPECT_LE(pack(Memory{}).size(), 64u);
}

}  // namespace
}  // namespace controller
