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

Program::Program(std::vector<std::string> arguments, const std::optional<std::string>& input,
                 const std::vector<std::string>& environment,
                 const std::vector<std::string>& wrapper) {
  arguments.insert(arguments.begin(), EXECUTOR_BINARY);
  arguments.insert(arguments.begin(), wrapper.begin(), wrapper.end());
  auto argv = pointers(arguments);
  int in[2], out[2], errors[2];
  for (int* ends : {in, out, errors})
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ == 0) {
    for (const std::string& one : environment) ::putenv(const_cast<char*>(one.c_str()));
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::dup2(errors[1], 2);
    ::execvp(argv[0], argv.data());
    ::_exit(99);
  }
  const base::Fd childs_input(in[0]), childs_output(out[1]), childs_errors(errors[1]);
  input_ = base::Fd(in[1]);
  output_ = base::Fd(out[0]);
  errors_ = base::Fd(errors[0]);
  error_reader_ = read_from(errors_.get(), said_);
  output_reader_ = read_from(output_.get(), told_);
  if (input) give(*input);
}

std::thread Program::read_from(int fd, std::string& into) {
  return std::thread([this, fd, &into] {
    char bytes[4096];
    for (ssize_t got; (got = ::read(fd, bytes, sizeof bytes)) > 0;) {
      const std::lock_guard lock(mutex_);
      into.append(bytes, static_cast<std::size_t>(got));
    }
  });
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  error_reader_.join();
  output_reader_.join();
}

void Program::give(const std::string& input) {
  static_cast<void>(base::write_all(input_.get(), input));
  input_.reset();
}

std::string Program::said() const {
  const std::lock_guard lock(mutex_);
  return said_;
}

std::string Program::told() const {
  const std::lock_guard lock(mutex_);
  return told_;
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
