#include "executor/admin/log_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/testing/scratch.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

// Does it in a process of its own, whose stderr it takes; true when it went well.
bool in_a_child(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool say(const std::string& text) {
  return ::write(STDERR_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

TEST(LogFile, TakesWhatIsSaidAtItsEnd) {
  const Scratch scratch;
  for (const char* word : {"one ", "two "})
    EXPECT_TRUE(in_a_child([&] { return log_to(scratch / "log").ok() && say(word); }));
  EXPECT_EQ(scratch.read("log"), "one two ");
  EXPECT_EQ(fs::status(scratch / "log").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(LogFile, IsNeitherALinkNorAPipe) {
  const Scratch scratch;
  scratch.write("elsewhere", "kept");
  fs::create_symlink(scratch / "elsewhere", scratch / "link");
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "pipe"}) EXPECT_FALSE(log_to(scratch / name)) << name;
  EXPECT_EQ(scratch.read("elsewhere"), "kept");
}

TEST(LogFile, IsEmptiedOnceItHasGrownTooLarge) {
  const Scratch scratch;
  const auto start_saying = [&](std::size_t bytes) {
    return in_a_child([&] {
      if (!log_to(scratch / "log")) return false;
      bound_log();
      return say(std::string(bytes, 'x'));
    });
  };
  EXPECT_TRUE(start_saying(kLogBytesMax));
  EXPECT_TRUE(start_saying(1));
  EXPECT_EQ(fs::file_size(scratch / "log"), kLogBytesMax + 1) << "not too large when it was begun";
  EXPECT_TRUE(start_saying(1));
  EXPECT_EQ(fs::file_size(scratch / "log"), 1u);
}

}  // namespace
}  // namespace executor
