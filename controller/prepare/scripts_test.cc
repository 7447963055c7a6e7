// What is done inside a sandbox as its root, run for real, and beside it what a user there may try.
#include "controller/prepare/scripts.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/cgroup.h"
#include "libs/base/testing/eventually.h"
#include "libs/base/testing/temporary_folder.h"

namespace controller {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kRight[] = "right\n", kOther[] = "other\n", kUnknown[] = "unknown\n";

struct Ended {
  int code = -1;
  std::string output, errors;
};

// A process that does nothing until it is ended: a copy of the shell, so that it has a file of its
// own, waiting for a line.
class Waiting {
 public:
  Waiting(const fs::path& file, uid_t user, const fs::path& group,
          const std::string& word = "run") {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    input_ = base::Fd(ends[1]);
    const base::Fd childs_input(ends[0]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[0], 0);
      if (!group.empty() && !base::write_setting(group / "cgroup.procs", "0")) ::_exit(98);
      if (::geteuid() == 0 &&
          (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0))
        ::_exit(97);
      ::execl(file.c_str(), file.c_str(), "-c", "read line", word.c_str(), nullptr);
      ::_exit(99);
    }
    const fs::path runs = fs::path("/proc") / std::to_string(pid_) / "exe";
    std::error_code failed;
    EXPECT_TRUE(base::eventually([&] { return fs::read_symlink(runs, failed) == file; }));
  }
  ~Waiting() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  pid_t pid() const { return pid_; }
  bool has_ended() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
    return pid_ == 0;
  }

 private:
  base::Fd input_;
  pid_t pid_ = 0;
};

class Scripts : public testing::Test {
 protected:
  void SetUp() override {
    fs::permissions(folder_.path(), fs::perms(0755));
    copy_shell(file_);
    wanted_ = digest_of(file_);
  }

  void copy_shell(const fs::path& to) const {
    fs::copy_file(fs::canonical("/bin/sh"), to, fs::copy_options::overwrite_existing);
  }
  // The same program under another digest.
  void make_another(const fs::path& to) const {
    copy_shell(to);
    std::ofstream(to, std::ios::app | std::ios::binary) << "another";
  }
  static std::string text_of(const fs::path& file) {
    const auto content = base::read_file(file);
    return content ? *content : "";
  }
  static std::string digest_of(const fs::path& file) {
    return base::to_hex(base::sha256(text_of(file)));
  }

  Ended run(const char* text, std::vector<std::string> arguments, const std::string& path = "") {
    const std::string out = folder_ / "out", errors = folder_ / "errors";
    arguments.insert(arguments.begin(), {"/bin/sh", "-c", text, "sandfleet"});
    std::vector<char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (!path.empty()) ::setenv("PATH", path.c_str(), 1);
      ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      ::dup2(::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      ::execv(pointers[0], pointers.data());
      ::_exit(99);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(out), text_of(errors)};
  }
  Waiting start() const { return Waiting(file_, user_, cgroup_.path()); }
  Ended lay_out(const Waiting& waiting, const std::string& path = "") {
    return run(kLayOut, {std::to_string(waiting.pid()), file_, wanted_, runtime_}, path);
  }
  // A PATH with these programs alone.
  std::string only(std::initializer_list<const char*> programs) const {
    const fs::path bin = folder_ / "bin";
    fs::create_directory(bin);
    for (const char* program : programs)
      for (const char* place : {"/bin", "/usr/bin"})
        if (fs::exists(fs::path(place) / program) && !fs::exists(bin / program))
          fs::create_symlink(fs::path(place) / program, bin / program);
    return bin;
  }
  void note(const std::string& digest) const {
    std::ofstream(note_) << digest << "  sandfleet-executor\n";
  }
  // As if it had been written so many seconds after the note.
  void written_after_note(int seconds) const {
    fs::last_write_time(file_, fs::last_write_time(note_) + std::chrono::seconds(seconds));
  }
  static struct stat look_at(const fs::path& path) {
    struct stat found{};
    EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
    return found;
  }

  const base::TemporaryCgroup cgroup_;  // Where everything is, so that nothing is made elsewhere.
  const uid_t user_ = ::geteuid() == 0 ? 54321 : ::geteuid();
  const base::TemporaryFolder folder_{fs::temp_directory_path()};  // Where programs may run.
  const std::string file_ = folder_ / "executor", note_ = file_ + ".sha256";
  const std::string runtime_ = folder_ / "var/runtime";
  std::string wanted_;
};

TEST_F(Scripts, AreWhatAShellTakes) {
  for (const char* script : {kLayOut, kPutInPlace, kDiscard, kMachine, kEndAll, kLastWords})
    EXPECT_EQ(run("sh -n -c \"$1\"", {script}).code, 0) << script;
}

TEST_F(Scripts, LayOutAPrivateFolderOfTheOneWhoWaits) {
  const Waiting waiting = start();
  for (int time = 0; time < 2; ++time) {
    const Ended ended = lay_out(waiting);
    EXPECT_EQ(ended.output, kRight) << ended.errors;
    const struct stat made = look_at(runtime_);
    EXPECT_TRUE(S_ISDIR(made.st_mode));
    EXPECT_EQ(made.st_mode & 07777, 0700u);
    EXPECT_EQ(made.st_uid, user_);
    ::chmod(runtime_.c_str(), 0777);
  }
}

TEST_F(Scripts, LayOutNothingForAnotherExecutor) {
  make_another(file_);
  EXPECT_EQ(lay_out(start()).output, kOther);
  EXPECT_FALSE(fs::exists(runtime_));
}

TEST_F(Scripts, LayOutForAnyExecutorWhereNoneIsWanted) {
  make_another(file_);
  wanted_.clear();
  EXPECT_EQ(lay_out(start()).output, kRight);
}

TEST_F(Scripts, LayOutForAnyOfThoseThatAreWanted) {
  const std::string first = wanted_;
  make_another(file_);
  wanted_ = first + " " + digest_of(file_);
  EXPECT_EQ(lay_out(start()).output, kRight);
  copy_shell(file_);
  EXPECT_EQ(lay_out(start()).output, kRight);
  std::ofstream(note_) << "";
  EXPECT_EQ(lay_out(start()).output, kOther) << "a note that says nothing names none of them";
  wanted_ = std::string(64, 'a') + " " + std::string(64, 'b');
  fs::remove(note_);
  EXPECT_EQ(lay_out(start()).output, kOther);
}

TEST_F(Scripts, LayOutJudgesWhatRunsAndNotWhatHasItsPath) {
  const std::string another = folder_ / "another";
  make_another(another);
  {
    const Waiting right = start();
    fs::rename(another, file_);
    EXPECT_EQ(lay_out(right).output, kRight);
  }
  const Waiting other = start();
  fs::remove(file_);
  copy_shell(file_);
  note(wanted_);
  EXPECT_EQ(lay_out(other).output, kOther);
}

TEST_F(Scripts, LayOutBelievesANoteThatIsNotOlderThanTheFile) {
  make_another(file_);
  note(wanted_);
  written_after_note(0);
  EXPECT_EQ(lay_out(start()).output, kRight) << "nobody computed anything";
  written_after_note(1);
  EXPECT_EQ(lay_out(start()).output, kOther);
  copy_shell(file_);
  note("0");
  written_after_note(1);
  EXPECT_EQ(lay_out(start()).output, kRight) << "a stale note harms nobody";
  note("0");
  written_after_note(-1);
  EXPECT_EQ(lay_out(start()).output, kOther) << "a note that says so is believed";
}

TEST_F(Scripts, LayOutBelievesNoNoteThatIsALink) {
  make_another(file_);
  note(wanted_);
  fs::rename(note_, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", note_);
  written_after_note(-1);
  EXPECT_EQ(lay_out(start()).output, kOther);
}

TEST_F(Scripts, LayOutBelievesNoNoteOfTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "there is nobody but us";
  make_another(file_);
  note(wanted_);
  written_after_note(-1);
  ASSERT_EQ(::chown(note_.c_str(), user_, user_), 0);
  EXPECT_EQ(lay_out(start()).output, kOther);
}

TEST_F(Scripts, LayOutSaysWhereTheImageCannotTell) {
  const Waiting waiting = start();
  EXPECT_EQ(lay_out(waiting, only({"mkdir", "chown", "chmod"})).output, kUnknown);
  EXPECT_EQ(look_at(runtime_).st_uid, user_) << "and is ready should it be the right one";
}

TEST_F(Scripts, LayOutFollowsNoLinkAndTakesNoFileForTheFolder) {
  const Waiting waiting = start();
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directory(elsewhere);
  fs::create_directory(folder_ / "var");
  const auto before = look_at(elsewhere).st_mode;
  for (const fs::path& to : {elsewhere, fs::path(folder_ / "nothing"), fs::path(runtime_)}) {
    fs::create_symlink(to, runtime_);
    const Ended ended = lay_out(waiting);
    EXPECT_EQ(ended.code, 70);
    EXPECT_THAT(ended.errors, HasSubstr("not a real folder"));
    fs::remove(runtime_);
  }
  EXPECT_EQ(look_at(elsewhere).st_mode, before);
  EXPECT_EQ(look_at(elsewhere).st_uid, ::geteuid());
  EXPECT_FALSE(fs::exists(folder_ / "nothing"));
  std::ofstream(runtime_) << "a file";
  EXPECT_EQ(lay_out(waiting).code, 70);
}

TEST_F(Scripts, LayOutRefusesOneThatIsTraced) {
  const Waiting waiting = start();
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, waiting.pid(), nullptr, nullptr), 0);
  const Ended ended = lay_out(waiting);
  EXPECT_EQ(ended.code, 70);
  EXPECT_THAT(ended.errors, HasSubstr("traces the executor"));
  EXPECT_FALSE(fs::exists(runtime_));
}

TEST_F(Scripts, LayOutMakesNothingForOneThatIsGone) {
  Waiting waiting = start();
  const std::string pid = std::to_string(waiting.pid());
  ::kill(waiting.pid(), SIGKILL);
  ASSERT_TRUE(base::eventually([&] { return waiting.has_ended(); }));
  EXPECT_NE(run(kLayOut, {pid, file_, wanted_, runtime_}).code, 0);
  EXPECT_FALSE(fs::exists(runtime_));
}

// The control group of a process in the hierarchy of version 2.
std::string group_of(pid_t pid) {
  const auto text = base::read_file("/proc/" + std::to_string(pid) + "/cgroup");
  const std::string own = text ? text->substr(std::min(text->size(), text->find("0::"))) : "";
  return own.substr(0, own.find('\n'));
}

TEST_F(Scripts, LayOutGivesItTheGroupInWhichItIsAlone) {
  if (cgroup_.path().empty()) GTEST_SKIP() << "no cgroup2 folder can be made here";
  const Waiting waiting = start();
  const std::string before = group_of(waiting.pid());
  const Ended ended = lay_out(waiting);
  EXPECT_EQ(ended.output, kRight) << ended.errors;
  EXPECT_EQ(group_of(waiting.pid()), before);
  for (const char* door : {"", "cgroup.procs", "cgroup.subtree_control"})
    EXPECT_EQ(look_at(cgroup_.path() / door).st_uid, user_) << door;
  EXPECT_EQ(look_at(cgroup_.path() / "cgroup.kill").st_uid, ::geteuid());
}

TEST_F(Scripts, LayOutMovesItOutOfAGroupThatItShares) {
  if (cgroup_.path().empty()) GTEST_SKIP() << "no cgroup2 folder can be made here";
  const fs::path own = cgroup_.path() / "sandfleet";
  const Waiting neighbour = start();
  for (int time = 0; time < 2; ++time) {
    const Waiting waiting = start();
    const Ended ended = lay_out(waiting);
    EXPECT_EQ(ended.output, kRight) << ended.errors;
    EXPECT_EQ(group_of(waiting.pid()), group_of(neighbour.pid()) + "/sandfleet");
    for (const char* door : {"", "cgroup.procs", "cgroup.subtree_control"})
      EXPECT_EQ(look_at(own / door).st_uid, user_) << door;
    EXPECT_EQ(look_at(cgroup_.path() / "cgroup.procs").st_uid, ::geteuid());
  }
}

TEST_F(Scripts, PutInPlaceWhatNobodyElseMayRead) {
  const std::string staged = folder_ / ".staged";
  copy_shell(staged);
  make_another(file_);
  note("of the old one");
  const fs::path lost = fs::path(file_).parent_path() / ".executor-0123456789abcdef";
  std::ofstream(lost) << "half of one";
  const Ended ended = run(kPutInPlace, {staged, file_, wanted_});
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_EQ(digest_of(file_), wanted_);
  EXPECT_EQ(look_at(file_).st_mode & 07777, 0711u);
  EXPECT_EQ(text_of(note_), wanted_ + "\n");
  EXPECT_FALSE(fs::exists(staged));
  EXPECT_FALSE(fs::exists(lost)) << "what an earlier upload left";
  EXPECT_EQ(lay_out(start()).output, kRight);
}

TEST_F(Scripts, PutNothingInPlaceThatWasNotSent) {
  const std::string staged = folder_ / ".staged";
  make_another(staged);
  EXPECT_EQ(run(kPutInPlace, {staged, file_, wanted_}).code, 71);
  EXPECT_EQ(digest_of(file_), wanted_) << "what was there is there";
  EXPECT_FALSE(fs::exists(staged));
}

TEST_F(Scripts, TellTheProcessorWhereTheImageCan) {
  utsname here{};
  ASSERT_EQ(::uname(&here), 0);
  EXPECT_EQ(run(kMachine, {}).output, std::string(here.machine) + "\n");
  const Ended untold = run(kMachine, {}, only({}));
  EXPECT_EQ(untold.output + untold.errors, "");
  EXPECT_EQ(untold.code, 0);
}

TEST_F(Scripts, PutInPlaceWithoutANoteWhereTheImageCannotTell) {
  const std::string staged = folder_ / ".staged";
  copy_shell(staged);
  note("of the old one");
  const Ended ended = run(kPutInPlace, {staged, file_, wanted_}, only({"chmod", "mv", "rm"}));
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_FALSE(fs::exists(note_));
}

TEST_F(Scripts, WhatMayNotBeReadCannotBeLookedIntoFromItsFirstInstant) {
  if (::geteuid() != 0) GTEST_SKIP() << "its owner may always read it";
  ::chmod(file_.c_str(), 0711);
  const Waiting waiting = start();
  EXPECT_EQ(look_at("/proc/" + std::to_string(waiting.pid()) + "/mem").st_uid, 0u);
}

TEST_F(Scripts, EndEveryExecutorButEnvd) {
  const std::string another = folder_ / "another";
  copy_shell(another);
  Waiting replaced = start();
  Waiting envd(file_, user_, cgroup_.path(), "--envd"), stranger(another, user_, cgroup_.path());
  fs::remove(file_);
  copy_shell(file_);
  Waiting running = start();
  EXPECT_EQ(run(kEndAll, {file_}).code, 0);
  EXPECT_TRUE(base::eventually([&] { return running.has_ended() && replaced.has_ended(); }));
  EXPECT_FALSE(envd.has_ended());
  EXPECT_FALSE(stranger.has_ended());
}

TEST_F(Scripts, TellTheLastLineOfALog) {
  const std::string log = folder_ / "log";
  for (const auto& [content, last] : {std::pair("", "\n"),
                                      {"one\n", "one\n"},
                                      {"one\n  two \\n\n", "  two \\n\n"},
                                      {"one\ntwo", "two\n"}}) {
    std::ofstream(log) << content;
    EXPECT_EQ(run(kLastWords, {log}).output, last) << content;
  }
}

}  // namespace
}  // namespace controller
