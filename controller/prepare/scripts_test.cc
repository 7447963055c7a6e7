// The script that becomes the executor, run for real: it is taken from what envd is asked to start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/prepare/prepare.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/cgroup.h"
#include "libs/base/testing/temporary_folder.h"

namespace controller {
namespace {

namespace fs = std::filesystem;
using base::Done;
using base::Result;
using testing::EndsWith;

// The inside of a sandbox that has the right executor; it starts nothing but keeps what it was to.
class Recorder final : public envd::Sandbox {
 public:
  Result<Done> health(std::stop_token) override { return Done{}; }
  Result<std::optional<envd::Entry>> stat(const std::string&, const std::string&,
                                          std::stop_token) override {
    return std::optional<envd::Entry>();
  }
  Result<Done> make_folder(const std::string&, const std::string&, std::stop_token) override {
    return Done{};
  }
  Result<Done> move(const std::string&, const std::string&, const std::string&,
                    std::stop_token) override {
    return Done{};
  }
  Result<Done> remove(const std::string&, const std::string&, std::stop_token) override {
    return Done{};
  }
  Result<Done> upload(const std::string&, std::string_view, const std::string&,
                      std::stop_token) override {
    return Done{};
  }
  Result<std::string> download(const std::string&, const std::string&, std::stop_token) override {
    return std::string();
  }
  Result<envd::Finished> run(const envd::Command& command, base::Milliseconds,
                             std::stop_token) override {
    if (command.argv.at(2).starts_with("id ")) return envd::Finished{.output = "1000\n1000\n"};
    return envd::Finished{.output = "\ndigest\n"};
  }
  Result<std::uint32_t> start(const envd::Command& command, std::string_view,
                              std::stop_token) override {
    started = command.argv;
    return 77u;
  }
  std::vector<std::string> started;
};

// Somebody answers once something was started.
class Door final : public ExecutorDoor {
 public:
  explicit Door(const Recorder& inside) : inside_(inside) {}
  Result<wire::Health> health(std::stop_token) override {
    if (inside_.started.empty()) return base::error(base::ErrorCode::kUnavailable, "nobody");
    return wire::Health{};
  }
  Result<wire::Health> quiesce(const wire::Quiesce&, std::stop_token) override {
    return wire::Health{};
  }
  Result<wire::Health> resumed(const wire::Resumed&, std::stop_token) override {
    return wire::Health{};
  }

 private:
  const Recorder& inside_;
};

class StartScript : public testing::Test {
 protected:
  void SetUp() override {
    if (cgroup_.path().empty()) GTEST_SKIP() << "no cgroup2 folder can be made here";
    fs::create_directory(group_);
    // In place of the executor: it notes the control group that it begins in.
    const auto wrote = base::write_file_atomically(
        executor_, "#!/bin/sh\ngrep ^0: /proc/self/cgroup >\"$3/begun\"\n", 0755);
    ASSERT_TRUE(wrote);
  }
  ~StartScript() override {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void start(const std::string& group) {
    Recorder inside;
    Door door(inside);
    const base::SystemClock clock;
    ASSERT_TRUE(bring_to_life(inside, door, {"", "digest"}, {"uid-1", 1, "aa", "kk"}, false,
                              {.clock = clock, .rest = [](auto) {}}, {}));
    auto argv = inside.started;
    ASSERT_EQ(argv.size(), 7u);
    argv[4] = group;
    argv[5] = executor_;
    argv[6] = folder_.path();
    std::vector<char*> pointers;
    for (auto& argument : argv) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execv(pointers[0], pointers.data());
      ::_exit(99);
    }
  }
  // The control group that the executor began in; empty while it has not.
  std::string begun_in() const {
    const auto line = base::read_file(folder_ / "begun");
    return line ? std::string(base::trim(*line)) : "";
  }

  const base::TemporaryFolder folder_;
  const base::TemporaryCgroup cgroup_;
  const fs::path group_ = cgroup_.path() / "sandfleet";
  const fs::path executor_ = folder_ / "executor";
  pid_t pid_ = 0;
};

TEST_F(StartScript, BecomesTheExecutorOnceItIsInItsControlGroup) {
  start(group_);
  ::poll(nullptr, 0, 200);  // Whoever does not wait has begun by then.
  EXPECT_EQ(begun_in(), "");
  ASSERT_TRUE(base::write_setting(group_ / "cgroup.procs", std::to_string(pid_)));
  EXPECT_TRUE(base::eventually([&] { return !begun_in().empty(); }));
  EXPECT_THAT(begun_in(), EndsWith(cgroup_.path().filename().string() + "/sandfleet"));
}

TEST_F(StartScript, BecomesTheExecutorWhereItIsWhenNobodyMovesIt) {
  start(group_);
  EXPECT_TRUE(base::eventually([&] { return !begun_in().empty(); }));
}

TEST_F(StartScript, WaitsForNoControlGroupWhereThereIsNone) {
  start("");
  EXPECT_TRUE(base::eventually([&] { return !begun_in().empty(); }));
}

}  // namespace
}  // namespace controller
