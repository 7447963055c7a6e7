#include "local_e2b/box/box.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>
#include <utility>

#include "libs/base/files.h"
#include "libs/base/kernel_files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/eventually.h"
#include "local_e2b/box/orphans.h"
#include "local_e2b/box/testing/box_fixture.h"

namespace local_e2b {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class RootBoxTest : public BoxTest {
 protected:
  void SetUp() override {
    BoxTest::SetUp();
    if (boxes_ && !machine_.root) GTEST_SKIP() << "only the host's root has such boxes";
  }
};

// With the state folder on the disk, as it is in life.
class RootBoxOnDiskTest : public RootBoxTest {
 protected:
  RootBoxOnDiskTest() { parent_ = kOnDisk; }
};

std::int64_t cpu_used(const BoxRecord& box) {
  const auto text = base::read_file(box.cgroup / "cpu.stat");
  const std::string line = text ? base::split(*text, '\n')[0] : "";
  return base::parse_integer(line.substr(line.find(' ') + 1)).value_or(-1);
}

std::string text_inside(const BoxRecord& box, const char* path) {
  const auto text = base::read_file(box.folder / "root" / path);
  return text ? std::string(base::trim(*text)) : "";
}

TEST_F(RootBoxTest, ShowsAWorldOfItsOwn) {
  const BoxRecord box = make("world-1");
  EXPECT_EQ(run(box, "hostname"), "world-1\n");
  EXPECT_EQ(run(box, "id -u; cat /proc/1/comm; readlink /proc/1/exe"),
            "0\nenvd\n/run/sandfleet/envd\n");
  EXPECT_EQ(run(box, "xargs < /proc/self/uid_map"),
            "0 " + std::to_string(box.uid_base) + " 65536\n");
  // Init and this shell, nobody of the host; init has reaped the shells of before.
  EXPECT_TRUE(base::eventually([&] { return run(box, "set -- /proc/[0-9]*; echo $#") == "2\n"; }));
  EXPECT_EQ(run(box, "cat /proc/self/cgroup | grep ^0:"), "0::/\n");
  EXPECT_EQ(run(box, "ls -A /run /var/tmp /tmp /mnt | xargs"),
            "/mnt: /run: lock sandfleet /tmp: /var/tmp:\n");
  EXPECT_EQ(run(box, "stat -c '%n %a %U' /home/user /root /tmp /usr /run/sandfleet/envd"),
            "/home/user 755 user\n/root 700 root\n/tmp 1777 root\n/usr 755 root\n"
            "/run/sandfleet/envd 755 root\n");
}

TEST_F(RootBoxOnDiskTest, CannotChangeTheHost) {
  const BoxRecord box = make("cannot");
  EXPECT_THAT(run(box, "echo x > /proc/sys/kernel/core_pattern"), HasSubstr("Read-only"));
  EXPECT_THAT(run(box, "umount /proc/sys; echo x > /proc/sys/kernel/core_pattern"),
              HasSubstr("ermission denied"));
  EXPECT_THAT(run(box, "echo 1 > /sys/kernel/profiling"), Not(IsEmpty()));
  EXPECT_THAT(run(box, "mknod /tmp/disk b 254 0"), HasSubstr("not permitted"));
  EXPECT_THAT(run(box, "echo x > /run/sandfleet/envd"), HasSubstr("Read-only"));
  EXPECT_THAT(run(box, "echo 1 > /sys/fs/cgroup/cgroup.freeze"), HasSubstr("ermission denied"));
  EXPECT_THAT(run(box, "echo x > /proc/1/fd/1"), HasSubstr("ermission denied"));
  const std::string marker = "marker-of-" + cgroup_name_;
  EXPECT_EQ(run(box, "echo own > /usr/bin/" + marker + " && chown user /usr/bin/" + marker +
                         " && rm /usr/bin/env && cat /usr/bin/" + marker),
            "own\n");
  EXPECT_FALSE(fs::exists("/usr/bin/" + marker));
  EXPECT_TRUE(fs::exists("/usr/bin/env"));
}

TEST_F(RootBoxTest, ServesShellsAndTools) {
  const BoxRecord box = make("tools");
  EXPECT_EQ(
      run(box, "su - user -c 'id -un; pwd; touch here && echo $HOME; sh -c \"exit 3\"; echo $?'"),
      "user\n/home/user\n/home/user\n3\n");
  // sudo needs this: set-user-id programs work.
  EXPECT_EQ(run(box, "grep NoNewPrivs /proc/self/status | xargs"), "NoNewPrivs: 0\n");
  EXPECT_EQ(run(box,
                "cp /usr/bin/id /usr/bin/suid-id && chmod 4755 /usr/bin/suid-id && "
                "su user -c 'suid-id -u'"),
            "0\n");
  EXPECT_EQ(run(box, "script -qec tty /dev/null | tr -d '\\r'"), "/dev/pts/0\n");
  EXPECT_EQ(run(box, "echo a > /dev/null && head -c 3 /dev/zero | wc -c && cat < /dev/fd/0"),
            "3\n");
  EXPECT_EQ(run(box, "echo held > /dev/shm/x && cat /dev/shm/x"), "held\n");
  EXPECT_EQ(run(box, "getent hosts localhost >/dev/null && getent passwd user | cut -d: -f3"),
            "1000\n");
  for (const char* tool : {"git", "node", "python3"})
    if (fs::exists(fs::path("/usr/bin") / tool))
      EXPECT_EQ(run(box, std::string("su user -c '/usr/bin/") + tool +
                             " --version >/dev/null && echo fine'"),
                "fine\n");
}

TEST_F(RootBoxTest, GivesItsRootCgroupsOfItsOwn) {
  const BoxRecord box = make("delegated");
  EXPECT_EQ(run(box,
                "mkdir /sys/fs/cgroup/inner && chown user /sys/fs/cgroup/inner && "
                "echo $$ > /sys/fs/cgroup/inner/cgroup.procs && grep ^0: /proc/self/cgroup"),
            "0::/inner\n");
  EXPECT_EQ(run(box,
                "(echo 0 > /sys/fs/cgroup/inner/cgroup.procs; exec sleep 1000) >/dev/null 2>&1 "
                "& while ! grep -q . /sys/fs/cgroup/inner/cgroup.procs; do :; done; "
                "echo 1 > /sys/fs/cgroup/inner/cgroup.kill; wait; "
                "grep populated /sys/fs/cgroup/inner/cgroup.events"),
            "populated 0\n");
}

TEST_F(RootBoxTest, StandsStillWhileFrozenAndKeepsItsMemory) {
  const BoxRecord box = make("frozen");
  // One counter in the box's own cgroup, one in a cgroup that the box made: both must stop.
  run(box,
      "mkdir /sys/fs/cgroup/inner; "
      "(n=0; while :; do n=$((n+1)); echo $n >> /tmp/outer; done) >/dev/null 2>&1 & "
      "(echo 0 > /sys/fs/cgroup/inner/cgroup.procs; "
      "n=0; while :; do n=$((n+1)); echo $n >> /tmp/inner; done) >/dev/null 2>&1 &");
  const auto count = [&](const char* file) {
    const std::string text = text_inside(box, file);
    return base::parse_integer(text.substr(text.rfind('\n') + 1)).value_or(0);
  };
  ASSERT_TRUE(base::eventually([&] { return count("tmp/outer") > 10 && count("tmp/inner") > 10; }));

  const auto froze = boxes_->freeze(box);
  ASSERT_TRUE(froze.ok()) << froze.error().message;
  EXPECT_TRUE(boxes_->freeze(box).ok()) << "freezing twice is freezing once";
  EXPECT_TRUE(boxes_->frozen(box));
  EXPECT_TRUE(boxes_->alive(box));
  // Their last moments may be booked some time later.
  std::int64_t used = -1;
  ASSERT_TRUE(base::eventually([&] {
    const std::int64_t before = std::exchange(used, cpu_used(box));
    return used == before;
  }));
  const std::int64_t outer = count("tmp/outer"), inner = count("tmp/inner");
  // What runs would move within this time; what is frozen must not.
  ::poll(nullptr, 0, 200);
  EXPECT_EQ(count("tmp/outer"), outer);
  EXPECT_EQ(count("tmp/inner"), inner);
  EXPECT_LT(cpu_used(box) - used, 2000) << "microseconds";

  EXPECT_TRUE(boxes_->thaw(box).ok());
  EXPECT_TRUE(boxes_->thaw(box).ok()) << "thawing twice is thawing once";
  EXPECT_FALSE(boxes_->frozen(box));
  // The counters go on from where they were; a restart would begin at 1.
  EXPECT_TRUE(
      base::eventually([&] { return count("tmp/outer") > outer && count("tmp/inner") > inner; }));
}

TEST_F(RootBoxTest, DestroysWhatRunsFromDestruction) {
  for (const bool frozen : {false, true}) {
    const BoxRecord box = make(frozen ? "escape-frozen" : "escape");
    // Every hop leaves its session and its parent; a few of them in cgroups of their own. Should
    // nobody destroy it, it ends by itself.
    run(box,
        "printf 'i=$1; [ $i -lt 2000 ] || exit 0; [ $((i %% 5)) = 0 ] && "
        "mkdir -p /sys/fs/cgroup/c$i/d && echo 0 > /sys/fs/cgroup/c$i/d/cgroup.procs; "
        "echo $i > /tmp/hops; sleep 0.001; "
        "setsid sh /tmp/hop $((i+1)) & setsid sleep 30 & exit 0' > /tmp/hop; "
        "setsid sh /tmp/hop 1 >/dev/null 2>&1 </dev/null &");
    ASSERT_TRUE(base::eventually(
        [&] { return base::parse_integer(text_inside(box, "tmp/hops")).value_or(0) > 30; }));
    if (frozen) {
      ASSERT_TRUE(boxes_->freeze(box).ok());
    }
    const auto destroyed = boxes_->destroy(box);
    ASSERT_TRUE(destroyed.ok()) << destroyed.error().message;
    EXPECT_EQ(leftovers(), "");
    EXPECT_FALSE(fs::exists(machine_.cgroup2 / cgroup_name_)) << "nor the server's cgroup";
    EXPECT_FALSE(base::look_at_process(box.init_pid)) << "init is reaped";
    EXPECT_FALSE(boxes_->alive(box));
    EXPECT_TRUE(boxes_->destroy(box).ok()) << "destroying twice is destroying once";
    EXPECT_FALSE(boxes_->freeze(box).ok());
    EXPECT_EQ(boxes_->socket_inside(box).error().code, ErrorCode::kNotFound);
  }
}

TEST_F(RootBoxTest, TakesAwayTheEmptyCgroupOfADeadServer) {
  const fs::path cgroup = machine_.cgroup2 / cgroup_name_;
  ASSERT_EQ(::mkdir(cgroup.c_str(), 0755), 0);
  EXPECT_THAT(boxes_->destroy_unknown({}).destroyed, IsEmpty());
  EXPECT_FALSE(fs::exists(cgroup));
}

TEST_F(RootBoxTest, GivesEachBoxUidsOfItsOwn) {
  const BoxRecord one = make("one"), two = make("two");
  EXPECT_GE(std::max(one.uid_base, two.uid_base) - std::min(one.uid_base, two.uid_base),
            kUidsPerBox);
  run(one, "touch /tmp/mine && chown user /tmp/mine");
  struct stat found{};
  ASSERT_EQ(::stat((one.folder / "root/tmp/mine").c_str(), &found), 0);
  EXPECT_EQ(found.st_uid, one.uid_base + 1000);
  // Another server, which knows nothing of these two, keeps away from them as well.
  BoxSettings other = settings();
  other.state = state_ / "other";
  other.cgroup_name = cgroup_name_ + "-other";
  Boxes others(other, machine_);
  const auto three = others.create({.id = "three"});
  ASSERT_TRUE(three.ok()) << three.error().message;
  EXPECT_EQ(std::set({one.uid_base, two.uid_base, three->uid_base}).size(), 3u);
  EXPECT_TRUE(others.destroy(*three).ok());
  ::rmdir((machine_.cgroup2 / other.cgroup_name).c_str());
}

TEST_F(RootBoxTest, RefusesWhatItCannotBuild) {
  make("taken");
  const auto again = boxes_->create({.id = "taken"});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(fs::exists(state_ / "boxes/taken")) << "the first one stays";
  for (const std::string& id :
       std::vector<std::string>{"", "..", "a/b", "-a", "a b", std::string(64, 'a')})
    EXPECT_EQ(boxes_->create({.id = id}).error().code, ErrorCode::kInvalid) << id;
  Capabilities lacking = machine_;
  lacking.lacks = {"no id-mapped mounts; get some"};
  EXPECT_THAT(Boxes(settings(), lacking).create({.id = "x"}).error().message,
              HasSubstr("get some"));
  BoxSettings wrong = settings();
  wrong.executor = "/nonexistent/executor";
  EXPECT_THAT(Boxes(wrong, machine_).create({.id = "x"}).error().message,
              HasSubstr("/nonexistent/executor"));
  wrong = settings();
  wrong.cgroup_name = "absent\nname/" + std::string(300, 'x');
  EXPECT_FALSE(Boxes(wrong, machine_).create({.id = "x"}).ok());
  EXPECT_FALSE(fs::exists(state_ / "boxes/x"));
  ::rmdir((machine_.cgroup2 / "absent\nname").c_str());
  wrong = settings();
  wrong.builder = "/bin/true";
  EXPECT_THAT(Boxes(wrong, machine_).create({.id = "x"}).error().message,
              HasSubstr("without a report"));
}

TEST_F(RootBoxTest, DestroysOnlyWhatNobodyKnows) {
  const BoxRecord known = make("known"), unknown = make("unknown");
  ASSERT_TRUE(base::make_folders(state_ / "boxes/only-a-folder", 0755).ok());
  ASSERT_TRUE(base::make_folders(machine_.cgroup2 / cgroup_name_ / "only-a-cgroup", 0755).ok());
  EXPECT_THAT(boxes_->destroy_unknown({known}).destroyed,
              testing::UnorderedElementsAre("unknown", "only-a-folder", "only-a-cgroup"));
  EXPECT_TRUE(boxes_->alive(known));
  EXPECT_FALSE(boxes_->alive(unknown));
}

TEST_F(RootBoxTest, EndsBoxesOfAnyServerWhoseFolderSomebodyRemoved) {
  Capabilities apart = machine_;  // Other servers of this machine are left alone.
  apart.cgroup2 /= cgroup_name_;
  ASSERT_TRUE(base::make_folders(apart.cgroup2 / "sandfleet-lost/empty", 0755).ok());
  BoxSettings lost = settings(), kept = settings();
  lost.state = state_ / "lost";
  lost.cgroup_name = "sandfleet-lost";
  kept.state = state_ / "kept";
  kept.cgroup_name = "sandfleet-kept";
  Boxes losing(lost, apart), keeping(kept, apart);
  const auto running = losing.create({.id = "running"}), frozen = losing.create({.id = "frozen"});
  const auto stays = keeping.create({.id = "stays"});
  ASSERT_TRUE(running.ok() && frozen.ok() && stays.ok());
  ASSERT_TRUE(losing.freeze(*frozen).ok());
  EXPECT_THAT(destroy_orphans(apart.cgroup2), IsEmpty());
  fs::remove_all(lost.state);
  EXPECT_THAT(destroy_orphans(apart.cgroup2), testing::UnorderedElementsAre("running", "frozen"));
  EXPECT_TRUE(losing.dead(*running) && losing.dead(*frozen));
  EXPECT_TRUE(keeping.alive(*stays));
  EXPECT_THAT(destroy_orphans(apart.cgroup2, base::Seconds(-1)), testing::ElementsAre("empty"));
  EXPECT_FALSE(fs::exists(apart.cgroup2 / lost.cgroup_name));
  for (const BoxRecord& box : {*running, *frozen}) EXPECT_TRUE(losing.destroy(box).ok());
  EXPECT_TRUE(keeping.destroy(*stays).ok());
}

TEST_F(RootBoxTest, LeavesTheEmptyCgroupOfAServerThatHasJustMadeIt) {
  const fs::path apart = machine_.cgroup2 / cgroup_name_;
  ASSERT_TRUE(base::make_folders(apart / "sandfleet-starting", 0755).ok());
  EXPECT_THAT(destroy_orphans(apart), IsEmpty());
  EXPECT_TRUE(fs::exists(apart / "sandfleet-starting"));
  EXPECT_THAT(destroy_orphans(apart, base::Seconds(-1)), IsEmpty());
  EXPECT_FALSE(fs::exists(apart / "sandfleet-starting"));
}

TEST_F(RootBoxTest, CutsALogThatGrew) {
  const BoxRecord box = make("chatty");
  const fs::path log = box.folder / "envd.log";
  ASSERT_TRUE(base::eventually([&] { return fs::file_size(log) > 0; }));
  EXPECT_EQ(*base::read_file(log), "listening\n");
  EXPECT_TRUE(boxes_->trim_log(box).ok());
  EXPECT_GT(fs::file_size(log), 0u);
  fs::resize_file(log, kLogBytesMax + 1);
  EXPECT_TRUE(boxes_->freeze(box).ok());
  EXPECT_EQ(fs::file_size(log), 0u);
}

TEST_F(RootBoxOnDiskTest, HoldsFiftyBoxesAtOnce) {
  using Clock = std::chrono::steady_clock;
  constexpr int kBoxes = 50, kThreads = 2;
  std::vector<BoxRecord> made(kBoxes);
  std::vector<double> create_ms(kBoxes), destroy_ms(kBoxes);
  const auto in_threads = [&](auto each) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        for (int number = thread; number < kBoxes; number += kThreads) each(number);
      });
    for (std::thread& thread : threads) thread.join();
  };
  const auto timed = [](auto work) {
    const auto before = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - before).count();
  };
  in_threads([&](int number) {
    create_ms[number] = timed([&] { made[number] = make("many-" + std::to_string(number)); });
  });
  std::set<std::uint32_t> ranges;
  for (const BoxRecord& box : made) {
    EXPECT_TRUE(boxes_->alive(box));
    ranges.insert(box.uid_base);
  }
  EXPECT_EQ(ranges.size(), made.size());
  EXPECT_EQ(run(made.back(), "hostname"), "many-49\n");
  in_threads([&](int number) {
    destroy_ms[number] = timed([&] { EXPECT_TRUE(boxes_->destroy(made[number]).ok()); });
  });
  EXPECT_EQ(leftovers(), "");
  std::sort(create_ms.begin(), create_ms.end());
  std::sort(destroy_ms.begin(), destroy_ms.end());
  std::printf("create: p50 %.1f ms, p90 %.1f ms; destroy: p50 %.1f ms, p90 %.1f ms\n",
              create_ms[kBoxes / 2], create_ms[kBoxes * 9 / 10], destroy_ms[kBoxes / 2],
              destroy_ms[kBoxes * 9 / 10]);
}

}  // namespace
}  // namespace local_e2b
