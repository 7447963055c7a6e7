#include "controller/prepare/executor_door.h"

#include <gtest/gtest.h>

#include "libs/net/testing/fake_transport.h"

namespace controller {
namespace {

const wire::Identity kTold{"uid-1", 1, 1, 4};

class Door : public testing::Test {
 protected:
  // What `resumed` makes of an executor's answer.
  base::Result<wire::Health> tell(const wire::Health& answer) {
    net::FakeTransport transport([&](const net::Request&) {
      return net::answer(200, base::to_text(wire::to_json(answer)));
    });
    HttpExecutorDoor door(transport, {.url = "http://inside"}, "token");
    return door.resumed({kTold, 1}, {});
  }
};

TEST_F(Door, BelievesAnExecutorThatAnswersAsItWasTold) {
  EXPECT_TRUE(tell({.instance = "i", .version = "1", .identity = kTold}));
}

TEST_F(Door, BelievesNoneThatStaysAnotherOrQuiesced) {
  EXPECT_FALSE(tell({.instance = "i", .version = "1", .identity = {"uid-1", 1, 1, 3}}));
  EXPECT_FALSE(tell({.instance = "i", .version = "1", .identity = kTold, .quiesced = true}));
}

}  // namespace
}  // namespace controller
