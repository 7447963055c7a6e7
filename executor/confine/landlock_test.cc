#include "executor/confine/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using enum wire::Ceiling;

// covers: 2.6
TEST(Landlock, TellsWhyAKernelCannotConfine) {
  const struct {
    PermissionMode mode;
    int abi;
    std::string why;
  } kCases[] = {
      {kDangerFullAccess, 0, ""},
      {kReadOnly, 6, ""},
      {kWorkspaceWrite, 7, ""},
      {kReadOnly, 0,
       "holding programs to ReadOnly takes a kernel with Landlock 6 (Linux 6.12); this one has no "
       "Landlock, or it is switched off"},
      {kWorkspaceWrite, 5,
       "holding programs to WorkspaceWrite takes a kernel with Landlock 6 (Linux 6.12); this one "
       "has Landlock 5"},
  };
  for (const auto& one : kCases)
    EXPECT_EQ(why_unconfinable(one.mode, one.abi).value_or(""), one.why);
}

// The errno of `deed` in a process of its own under `permission`; 0 when it was done.
int attempt(const Permission& permission, const std::function<bool()>& deed) {
  const auto confinement = make_confinement(permission);
  if (!confinement) return ENOSYS;
  const pid_t child = ::fork();
  if (child == 0) {
    if (*confinement && !enter_confinement(confinement->get())) ::_exit(255);
    ::_exit(deed() ? 0 : errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Confined : public testing::Test {
 protected:
  void SetUp() override {
    if (why_unconfinable(kReadOnly, landlock_abi())) GTEST_SKIP() << "a kernel without Landlock 6";
    fs::create_directories(folder_ / "work/inner");
    fs::create_directories(folder_ / "outside");
    for (const char* name : {"work/a", "outside/a"}) write(name);
  }
  std::string at(std::string_view name) const { return folder_ / name; }
  Permission workspace() const { return {kWorkspaceWrite, {at("work")}}; }

  static bool writes(const std::string& path) {
    return base::Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)).get() >= 0;
  }

  void write(const std::string& name) const {
    ASSERT_TRUE(base::write_file_atomically(folder_ / name, "content", 0644).ok());
  }

  // Not in a temporary area, which may be changed in every mode but one.
  base::TemporaryFolder folder_{fs::current_path()};
};

// covers: 2.6
TEST_F(Confined, WorkspaceWriteChangesTheWorkspaceAlone) {
  EXPECT_EQ(attempt(workspace(), [&] { return writes(at("work/a")); }), 0);
  EXPECT_EQ(attempt(workspace(), [&] { return writes(at("work/inner/new")); }), 0);
  EXPECT_EQ(attempt(workspace(), [&] { return ::mkdir(at("work/folder").c_str(), 0755) == 0; }), 0);
  // From one folder to another takes a right of its own.
  EXPECT_EQ(
      attempt(workspace(),
              [&] { return ::rename(at("work/a").c_str(), at("work/inner/a").c_str()) == 0; }),
      0);
  EXPECT_EQ(attempt(workspace(), [&] { return writes(at("outside/a")); }), EACCES);
  EXPECT_EQ(attempt(workspace(), [&] { return writes(at("outside/new")); }), EACCES);
  EXPECT_EQ(attempt(workspace(), [&] { return ::truncate(at("outside/a").c_str(), 0) == 0; }),
            EACCES);
  EXPECT_EQ(attempt(workspace(), [&] { return ::unlink(at("outside/a").c_str()) == 0; }), EACCES);
  EXPECT_EQ(
      attempt(workspace(),
              [&] { return ::rename(at("work/inner/a").c_str(), at("outside/b").c_str()) == 0; }),
      EACCES);
  EXPECT_EQ(
      attempt(workspace(),
              [&] { return ::link(at("outside/a").c_str(), at("work/linked").c_str()) == 0; }),
      EXDEV);
}

// covers: 2.6
TEST_F(Confined, ALinkIsNoWayOut) {
  fs::create_symlink(at("outside/a"), at("work/way"));
  EXPECT_EQ(attempt(workspace(), [&] { return writes(at("work/way")); }), EACCES);
}

// covers: 2.6
TEST_F(Confined, ReadOnlyChangesNothingThatStays) {
  const Permission read_only{kReadOnly, {at("work")}};
  EXPECT_EQ(attempt(read_only, [&] { return writes(at("work/a")); }), EACCES);
  EXPECT_EQ(attempt(read_only, [&] { return writes("/tmp/sandfleet-read-only"); }), EACCES);
  EXPECT_EQ(attempt(read_only, [&] { return writes("/dev/null"); }), 0);
  EXPECT_EQ(
      attempt(read_only,
              [&] {
                return base::Fd(::open(at("outside/a").c_str(), O_RDONLY | O_CLOEXEC)).get() >= 0;
              }),
      0);
}

// covers: 2.6
TEST_F(Confined, FullAccessIsNotConfined) {
  EXPECT_EQ(attempt({kDangerFullAccess, {}}, [&] { return writes(at("outside/a")); }), 0);
}

// covers: 2.6
TEST_F(Confined, SignalsReachOnlyTheConfined) {
  const pid_t above = ::getpid();
  EXPECT_EQ(attempt(workspace(), [above] { return ::kill(above, 0) == 0; }), EPERM);
  EXPECT_EQ(attempt(workspace(),
                    [] {
                      const pid_t child = ::fork();
                      if (child == 0) ::_exit(0);
                      const bool reached = ::kill(child, 0) == 0;
                      ::waitpid(child, nullptr, 0);
                      return reached;
                    }),
            0);
}

// covers: 2.6
TEST_F(Confined, BindsWhatIsStartedToo) {
  EXPECT_EQ(attempt(workspace(),
                    [&] {
                      const std::string script = "echo x >" + at("outside/a") + " 2>/dev/null";
                      const pid_t child = ::fork();
                      if (child == 0) {
                        ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
                        ::_exit(127);
                      }
                      int status = 0;
                      ::waitpid(child, &status, 0);
                      errno = WEXITSTATUS(status) == 0 ? 0 : EACCES;
                      return errno == 0;
                    }),
            EACCES);
}

}  // namespace
}  // namespace executor
