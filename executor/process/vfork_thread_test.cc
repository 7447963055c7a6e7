#include "executor/process/vfork_thread.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "libs/base/fd.h"
#include "libs/base/testing/eventually.h"

namespace executor {
namespace {

struct Scene {
  Scene() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read = base::Fd(ends[0]);
    write = base::Fd(ends[1]);
    number_of_write = ends[1];
  }
  base::Fd read, write;
  int number_of_write = -1;  // Which the process goes by: we may close ours at any time.
  volatile int written = 0;
  volatile bool all_blocked = false;
};

// Whoever has a way back would run on in our memory.
LEAVES_NO_FRAME void note_and_end(void* given) {
  auto& scene = *static_cast<Scene*>(given);
  scene.written = 7;
  sigset_t blocked;
  ::sigprocmask(SIG_SETMASK, nullptr, &blocked);
  scene.all_blocked =
      ::sigismember(&blocked, SIGTERM) == 1 && ::sigismember(&blocked, SIGCHLD) == 1;
  ::_exit(3);
}

LEAVES_NO_FRAME void wait_and_end(void* given) {
  auto& scene = *static_cast<Scene*>(given);
  char byte = 0;
  ::close(scene.number_of_write);  // Its own copy.
  // Not by the function of a sanitizer, which would note for ever that our thread is in it.
  ::syscall(SYS_read, scene.read.get(), &byte, 1);
  ::_exit(4);
}

int exit_code_of(pid_t pid) {
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::optional<pid_t> begun(VforkThread& vforks, void (*run)(void*),
                           const std::shared_ptr<Scene>& scene) {
  std::optional<pid_t> pid;
  base::eventually([&] {
    pid = vforks.begin({}, run, scene);
    return pid.has_value();
  });
  return pid;
}

TEST(VforkThread, BeginsAProcessThatSharesOurMemory) {
  VforkThread vforks;
  const auto scene = std::make_shared<Scene>();
  const auto pid = vforks.begin({}, note_and_end, scene);
  ASSERT_TRUE(pid);
  EXPECT_EQ(exit_code_of(*pid), 3);
  EXPECT_EQ(scene->written, 7);
  EXPECT_TRUE(scene->all_blocked) << "a handler of ours would run in our memory";
}

TEST(VforkThread, WaitsForNobodyAndBeginsNoSecondMeanwhile) {
  VforkThread vforks;
  const auto scene = std::make_shared<Scene>();
  const auto first = vforks.begin({}, wait_and_end, scene);
  ASSERT_TRUE(first);  // It has not ended, nor become a program.
  EXPECT_FALSE(vforks.begin({}, note_and_end, scene));
  scene->write.reset();
  EXPECT_EQ(exit_code_of(*first), 4);
  const auto second = begun(vforks, note_and_end, scene);
  ASSERT_TRUE(second);
  EXPECT_EQ(exit_code_of(*second), 3);
}

TEST(VforkThread, KeepsWhatItsProcessNeeds) {
  std::weak_ptr<Scene> watched;
  std::optional<pid_t> pid;
  base::Fd write;
  {
    VforkThread vforks;
    auto scene = std::make_shared<Scene>();
    watched = scene;
    scene->number_of_write = -1;  // It waits for ever.
    write = std::move(scene->write);
    pid = vforks.begin({}, wait_and_end, std::move(scene));
    ASSERT_TRUE(pid);
  }
  EXPECT_FALSE(watched.expired());
  ::kill(*pid, SIGKILL);
  EXPECT_EQ(exit_code_of(*pid), -1);
  EXPECT_TRUE(base::eventually([&] { return watched.expired(); }));
}

TEST(VforkThread, SaysWhenTheKernelRefuses) {
  VforkThread vforks;
  clone_args impossible{};
  impossible.flags = CLONE_INTO_CGROUP;
  impossible.cgroup = 1u << 30;  // No descriptor.
  const auto scene = std::make_shared<Scene>();
  EXPECT_FALSE(vforks.begin(impossible, note_and_end, scene));
  const auto pid = begun(vforks, note_and_end, scene);
  ASSERT_TRUE(pid);
  EXPECT_EQ(exit_code_of(*pid), 3);
}

}  // namespace
}  // namespace executor
