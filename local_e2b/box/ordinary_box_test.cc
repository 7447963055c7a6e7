#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "libs/base/files.h"
#include "libs/base/kernel_files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/eventually.h"
#include "local_e2b/box/box.h"
#include "local_e2b/box/init_note.h"
#include "local_e2b/box/testing/box_fixture.h"

// Boxes of a user who is not root and to whom no cgroup is delegated.
namespace local_e2b {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class OrdinaryBoxTest : public BoxTest {
 protected:
  void SetUp() override {
    ASSERT_NE(::geteuid(), 0u);
    BoxTest::SetUp();
  }
};

class OrdinaryBoxOnDiskTest : public OrdinaryBoxTest {
 protected:
  OrdinaryBoxOnDiskTest() { parent_ = kOnDisk; }
};

TEST_F(OrdinaryBoxTest, HasAWorldOfItsOwn) {
  const BoxRecord box = make("world-1");
  EXPECT_EQ(run(box, "hostname; id -un; id -u; id -gn; id -g"), "world-1\nroot\n0\nroot\n0\n");
  EXPECT_EQ(run(box, "xargs < /proc/self/uid_map; xargs < /proc/self/gid_map"),
            "0 " + std::to_string(::geteuid()) + " 1\n0 " + std::to_string(::getegid()) + " 1\n");
  EXPECT_EQ(run(box, "readlink /proc/1/exe"), "/run/sandfleet/envd\n");
  // Init and this shell, nobody of the host; init has reaped the shells of before.
  EXPECT_TRUE(base::eventually([&] { return run(box, "set -- /proc/[0-9]*; echo $#") == "2\n"; }));
  EXPECT_EQ(run(box, "ls -A /run /var/tmp /tmp /mnt /sys/fs/cgroup | xargs"),
            "/mnt: /run: lock sandfleet /sys/fs/cgroup: /tmp: /var/tmp:\n");
  EXPECT_EQ(run(box, "stat -c '%n %a %U' /home/user /root /tmp /usr /etc/passwd /run/sandfleet"),
            "/home/user 755 root\n/root 700 root\n/tmp 1777 root\n/usr 755 root\n"
            "/etc/passwd 644 root\n/run/sandfleet 755 root\n");
}

TEST_F(OrdinaryBoxTest, CallsRootUserToo) {
  const BoxRecord box = make("accounts");
  EXPECT_EQ(run(box, "getent passwd user; getent group user"),
            "user:x:0:0:user:/home/user:/bin/bash\nuser:x:0:\n");
  EXPECT_EQ(run(box, "touch /home/user/f && chown user:user /home/user/f && echo done"), "done\n");
  // What the kernel cannot do with one id is refused, not pretended.
  EXPECT_THAT(run(box, "su user -c id"), HasSubstr("cannot set groups"));
  EXPECT_THAT(run(box, "chown 1000 /home/user/f"), HasSubstr("Invalid argument"));
}

TEST_F(OrdinaryBoxOnDiskTest, CannotChangeTheHost) {
  const std::string marker = "marker-of-" + cgroup_name_;
  const BoxRecord box = make("cannot");
  EXPECT_THAT(run(box, "echo x > /proc/sys/kernel/core_pattern"), HasSubstr("Read-only"));
  EXPECT_THAT(run(box, "umount /proc/sys; echo x > /proc/sys/kernel/core_pattern"),
              HasSubstr("ermission denied"));
  EXPECT_THAT(run(box, "echo 1 > /sys/kernel/profiling"), Not(IsEmpty()));
  EXPECT_THAT(run(box, "mknod /tmp/disk b 254 0"), HasSubstr("not permitted"));
  EXPECT_THAT(run(box, "echo x > /run/sandfleet/envd"), HasSubstr("Read-only"));
  EXPECT_THAT(run(box, "echo x > /usr/bin/" + marker), HasSubstr("ermission denied"));
  EXPECT_THAT(run(box, "rm /usr/bin/env"), HasSubstr("ermission denied"));
  EXPECT_EQ(run(box, "for f in /usr /opt /etc /srv /var/lib; do echo own > $f/" + marker +
                         " && cat $f/" + marker + "; done"),
            "own\nown\nown\nown\nown\n");
  for (const char* folder : {"/usr", "/opt", "/etc", "/srv", "/var/lib"})
    EXPECT_FALSE(fs::exists(fs::path(folder) / marker)) << folder;
}

TEST_F(OrdinaryBoxTest, ServesShellsAndTools) {
  const BoxRecord box = make("tools");
  EXPECT_EQ(run(box, "script -qec tty /dev/null | tr -d '\\r'"), "/dev/pts/0\n");
  EXPECT_EQ(run(box, "echo a > /dev/null && head -c 3 /dev/zero | wc -c && cat < /dev/fd/0"),
            "3\n");
  EXPECT_EQ(run(box, "echo held > /dev/shm/x && cat /dev/shm/x"), "held\n");
  EXPECT_EQ(run(box, "getent hosts localhost >/dev/null && echo found"), "found\n");
  for (const char* tool : {"git", "node", "python3"})
    if (fs::exists(fs::path("/usr/bin") / tool))
      EXPECT_EQ(run(box, std::string("/usr/bin/") + tool + " --version >/dev/null && echo fine"),
                "fine\n");
}

TEST_F(OrdinaryBoxTest, IsDestroyedWithWhatRunsFromDestruction) {
  const BoxRecord box = make("escape");
  // Every hop leaves its session and its parent; some go to PID namespaces of their own. Should
  // nobody destroy it, it ends by itself.
  run(box,
      "printf 'i=$1; [ $i -lt 2000 ] || exit 0; echo $i > /tmp/hops; sleep 0.001; "
      "[ $((i %% 5)) = 0 ] && setsid unshare -pf sleep 30 & "
      "setsid sh /tmp/hop $((i+1)) & setsid sleep 30 & exit 0' "
      "> /tmp/hop; setsid sh /tmp/hop 1 >/dev/null 2>&1 </dev/null &");
  ASSERT_TRUE(base::eventually([&] {
    const auto hops = base::read_file(box.folder / "root/tmp/hops");
    return hops && base::parse_integer(base::trim(*hops)).value_or(0) > 30;
  }));
  const auto destroyed = boxes_->destroy(box);
  ASSERT_TRUE(destroyed.ok()) << destroyed.error().message;
  EXPECT_EQ(leftovers(), "");
  EXPECT_FALSE(base::look_at_process(box.init_pid)) << "init is reaped";
  EXPECT_FALSE(boxes_->alive(box));
  EXPECT_TRUE(boxes_->destroy(box).ok()) << "destroying twice is destroying once";
  EXPECT_EQ(boxes_->socket_inside(box).error().code, ErrorCode::kNotFound);
}

TEST_F(OrdinaryBoxTest, IsFoundAndEndedByItsNoteAlone) {
  const BoxRecord box = make("noted");
  const auto note = read_init_note(box.folder);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->pid, box.init_pid);
  EXPECT_EQ(note->start, box.init_start);
  InitNote of_an_earlier_boot = *note;
  of_an_earlier_boot.boot = "another";
  ASSERT_TRUE(write_init_note(box.folder, of_an_earlier_boot).ok());
  EXPECT_TRUE(boxes_->dead(box));
  ASSERT_TRUE(write_init_note(box.folder, *note).ok());
  EXPECT_TRUE(boxes_->alive(box));
  EXPECT_THAT(boxes_->destroy_unknown({}).destroyed, testing::ElementsAre("noted"));
  EXPECT_EQ(leftovers(), "");
}

TEST_F(OrdinaryBoxTest, CannotBePausedAndSaysWhy) {
  const BoxRecord box = make("restless");
  const auto froze = boxes_->freeze(box);
  ASSERT_FALSE(froze.ok());
  EXPECT_EQ(froze.error().code, ErrorCode::kInvalid);
  for (const std::string& why : {froze.error().message, *boxes_->objection_to_freeze(&box),
                                 *boxes_->objection_to_freeze(), machine_.no_pause})
    EXPECT_THAT(why, HasSubstr("Delegate=yes"));
  EXPECT_FALSE(boxes_->frozen(box));
  EXPECT_EQ(run(box, "echo runs on"), "runs on\n");
}

}  // namespace
}  // namespace local_e2b
