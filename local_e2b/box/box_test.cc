#include "local_e2b/box/box.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libs/base/strings.h"
#include "local_e2b/box/testing/box_fixture.h"

namespace local_e2b {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(BoxTest, ShowsAWorldOfItsOwn) {
  const BoxRecord box = make("world-1");
  EXPECT_EQ(run(box, "hostname"), "world-1\n");
  EXPECT_EQ(run(box, "id -u; cat /proc/1/comm"), "0\nenvd\n");
  EXPECT_EQ(run(box, "readlink /proc/1/exe"), "/run/sandfleet/envd\n");
}

}  // namespace
}  // namespace local_e2b
