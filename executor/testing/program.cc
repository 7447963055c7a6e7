#include "executor/testing/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::int64_t number_after(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return 0;
  const auto rest = line.substr(at + key.size());
  return base::parse_integer(rest.substr(0, rest.find(' '))).value_or(0);
}

}  // namespace

Program::Program(std::vector<std::string> arguments, const std::string& input,
                 const std::vector<std::string>& environment,
                 const std::vector<std::string>& wrapper) {
  arguments.insert(arguments.begin(), EXECUTOR_BINARY);
  arguments.insert(arguments.begin(), wrapper.begin(), wrapper.end());
  auto argv = pointers(arguments);
  int in[2], errors[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(errors, O_CLOEXEC) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ == 0) {
    for (const std::string& one : environment) ::putenv(const_cast<char*>(one.c_str()));
    ::dup2(in[0], 0);
    ::dup2(errors[1], 2);
    ::execvp(argv[0], argv.data());
    ::_exit(99);
  }
  base::Fd read_end(in[0]), write_end(in[1]), childs_errors(errors[1]);
  errors_ = base::Fd(errors[0]);
  static_cast<void>(base::write_all(write_end.get(), input));
  reader_ = std::thread([this] {
    char bytes[4096];
    for (ssize_t got; (got = ::read(errors_.get(), bytes, sizeof bytes)) > 0;) {
      const std::lock_guard lock(mutex_);
      said_.append(bytes, static_cast<std::size_t>(got));
    }
  });
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  reader_.join();
}

std::string Program::said() const {
  const std::lock_guard lock(mutex_);
  return said_;
}

Program::Serving Program::wait_until_serving(int count) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    int seen = 0;
    for (const std::string& line : base::split(said(), '\n')) {
      if (line.find(" serving ") == std::string::npos || ++seen < count) continue;
      const Serving serving{static_cast<int>(number_after(line, "port=")),
                            static_cast<pid_t>(number_after(line, "pid="))};
      if (serving.pid > 0) return serving;
    }
    ::usleep(5'000);
  }
  ADD_FAILURE() << "it does not serve: " << said();
  return {};
}

int Program::wait_for_exit() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace executor
