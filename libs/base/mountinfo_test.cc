#include "libs/base/mountinfo.h"

#include <gmock/gmock.h>

namespace base {

void PrintTo(const MountPoint& mount, std::ostream* out) {
  *out << mount.kind << " at " << mount.path;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Mountinfo, FindsKindAndPlace) {
  EXPECT_THAT(
      parse_mountinfo("41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
                      "30 1 8:1 / /mnt/a\\040b rw shared:1 master:2 - ext4 /dev/sda1 rw\n"),
      ElementsAre(MountPoint{"/sys/fs/cgroup/unified", "cgroup2"}, MountPoint{"/mnt/a b", "ext4"}));
}

TEST(Mountinfo, SkipsWhatItCannotRead) {
  EXPECT_THAT(parse_mountinfo(""), IsEmpty());
  EXPECT_THAT(parse_mountinfo("41 31 0:38 / /sys rw\n1 2 - x\n\n - \n"), IsEmpty());
  EXPECT_THAT(parse_mountinfo("1 2 0:1 / /odd\\9\\04 rw - tmpfs tmpfs rw"),
              ElementsAre(MountPoint{"/odd\\9\\04", "tmpfs"}));
}

}  // namespace
}  // namespace base
