#include <grp.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include "libs/base/testing/temporary_folder.h"
#include "local_e2b/box/box.h"
#include "local_e2b/box/testing/box_fixture.h"

namespace {

namespace fs = std::filesystem;

constexpr uid_t kOrdinary = 62'345;  // Nobody's, so nothing of this machine belongs to it.

[[noreturn]] void run_as_ordinary(char* const* arguments, const fs::path& init) {
  ::setenv(local_e2b::kInitVariable, init.c_str(), 1);
  if (::setgroups(0, nullptr) == 0 && ::setresgid(kOrdinary, kOrdinary, kOrdinary) == 0 &&
      ::setresuid(kOrdinary, kOrdinary, kOrdinary) == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execv("/proc/self/exe", arguments);
  }
  std::perror("run as an ordinary user");
  ::_exit(EXIT_FAILURE);
}

// A program that was root once may not be looked into by its own user, so it is started anew.
int run_again_as_ordinary(char* const* arguments) {
  const base::TemporaryFolder folder("/var/tmp");
  const fs::path init = folder.path() / "box_shell_init";
  fs::copy_file(fs::read_symlink("/proc/self/exe").parent_path() / init.filename(), init);
  fs::permissions(folder.path(), fs::perms(0755));
  fs::permissions(init, fs::perms(0755));
  const pid_t child = ::fork();
  if (child == 0) run_as_ordinary(arguments, init);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

}  // namespace

// Like box_test_main.cc, for tests of what an ordinary user can do; root runs them as one.
int main(int argc, char** argv) {
  if (const auto exit_code = local_e2b::run_box_builder(argc, argv)) return *exit_code;
  const std::vector<char*> arguments(argv, argv + argc + 1);
  testing::InitGoogleTest(&argc, argv);
  if (::geteuid() == 0 && !GTEST_FLAG_GET(list_tests)) return run_again_as_ordinary(&arguments[0]);
  return RUN_ALL_TESTS();
}
