#include "executor/activity/process_cpu.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>
#include <string>

#include "libs/base/testing/eventually.h"
#include "libs/base/testing/temporary_folder.h"

namespace executor {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* name;
  std::string_view line;
  std::optional<ProcessTimes> want;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
const Case kCases[] = {
    {"a_program", "7 (sleep) S 1 7 7 0 -1 4194304 100 0 0 0 3 4 50 60 20 0 1 0 12 313 35",
     ProcessTimes{"sleep", false, 7, 110}},
    {"a_thread_of_the_kernel", "9 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 12 0 0 20",
     ProcessTimes{"kworker/0:1", true, 12, 0}},
    {"a_name_with_everything", "7 (a ) S 1) R 1 7 7 0 -1 0 0 0 0 0 1 0 0 0 20",
     ProcessTimes{"a ) S 1", false, 1, 0}},
    {"cut_off", "7 (sleep) S 1 7 7 0 -1 4194304 100 0 0 0 3 4 50", std::nullopt},
    {"no_name", "7 sleep S 1 7 7 0 -1 4194304", std::nullopt},
    {"nothing_behind_the_name", "7 (sleep)", std::nullopt},
    {"no_number", "7 (sleep) S 1 7 7 0 -1 4194304 100 0 0 0 3 x 50 60 20", std::nullopt},
    {"empty", "", std::nullopt},
};
class Line : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Of, Line, testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.name; });
TEST_P(Line, IsReadAsTheKernelWritesIt) {
  EXPECT_EQ(parse_process_times(GetParam().line), GetParam().want);
}

// A child that takes this name and burns so much CPU time, and then lives on.
pid_t burn(const char* name, std::chrono::milliseconds time) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (FILE* comm = ::fopen("/proc/self/comm", "w")) {
    ::fputs(name, comm);
    ::fclose(comm);
  }
  timespec used{};
  do ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  while (used.tv_sec * 1'000 + used.tv_nsec / 1'000'000 < time.count());
  for (;;) ::pause();
}
void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

// Of the machine's processes these alone, as others begin and end meanwhile.
TEST(CpuOfProcesses, CountsWhatAProgramUsesAndHasUsed) {
  const base::TemporaryFolder seen;
  const auto see = [&](pid_t pid) {
    const std::string name = std::to_string(pid);
    std::filesystem::create_symlink("/proc/" + name, seen / name);
  };
  see(::getpid());
  const auto before = cpu_of_processes(seen / "");
  const pid_t pid = burn("burner", 300ms);
  see(pid);
  EXPECT_TRUE(base::eventually([&] { return cpu_of_processes(seen / "") - before >= 290ms; }));
  end(pid);
  EXPECT_GE(cpu_of_processes(seen / "") - before, 290ms) << "it is our children's now";
}

TEST(CpuOfProcesses, LooksAtNoMoreThanItIsTo) {
  EXPECT_EQ(cpu_of_processes("/proc", 0), 0ms);
  EXPECT_EQ(cpu_of_processes("/nowhere"), 0ms);
}

}  // namespace
}  // namespace executor
