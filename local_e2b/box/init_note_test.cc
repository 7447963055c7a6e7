#include "local_e2b/box/init_note.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/files.h"
#include "libs/base/kernel_files.h"
#include "libs/base/testing/temporary_folder.h"

namespace local_e2b {
namespace {

// A process that waits to be killed; reaped at the end.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    while (pid_ == 0) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

constexpr base::Milliseconds kPatience{60'000};

TEST(InitNote, IsReadAsItWasWritten) {
  const base::TemporaryFolder folder;
  EXPECT_FALSE(read_init_note(folder.path()));
  const InitNote note{42, 1'234'567'890'123, "boot"};
  ASSERT_TRUE(write_init_note(folder.path(), note).ok());
  EXPECT_EQ(read_init_note(folder.path()), note);
  for (const char* damaged :
       {"", "{}", R"({"pid":1,"start":2,"boot":"b"})", R"({"pid":-5,"start":2,"boot":"b"})"}) {
    ASSERT_TRUE(base::write_file_atomically(folder.path() / "init", damaged, 0600).ok());
    EXPECT_FALSE(read_init_note(folder.path())) << damaged;
  }
}

TEST(InitNote, EndsTheProcessThatItNames) {
  const Sleeper sleeper;
  const auto note = note_of(sleeper.pid());
  ASSERT_TRUE(note);
  const auto ended = end_init(*note, kPatience);
  EXPECT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_FALSE(base::runs(sleeper.pid()));
  EXPECT_TRUE(end_init(*note, kPatience).ok()) << "it waits to be reaped";
}

TEST(InitNote, SparesAProcessThatOnlyHasTheNumber) {
  const Sleeper sleeper;
  const auto note = note_of(sleeper.pid());
  ASSERT_TRUE(note);
  InitNote earlier = *note;
  earlier.start -= 1;
  EXPECT_TRUE(end_init(earlier, kPatience).ok());
  InitNote of_another_boot = *note;
  of_another_boot.boot += "x";
  EXPECT_TRUE(end_init(of_another_boot, kPatience).ok());
  EXPECT_TRUE(base::runs(sleeper.pid()));
}

}  // namespace
}  // namespace local_e2b
