#include "executor/process/vfork_thread.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace executor {
namespace {

constexpr std::size_t kStackBytes = 64u << 10;

struct Birth {
  Birth(const clone_args& wanted, void (*run)(void*), std::shared_ptr<void> argument)
      : wanted(wanted), run(run), argument(std::move(argument)) {
    ::sem_init(&known, 0, 0);
  }
  ~Birth() { ::sem_destroy(&known); }
  Birth(const Birth&) = delete;
  Birth& operator=(const Birth&) = delete;

  clone_args wanted;
  void (*run)(void*);
  std::shared_ptr<void> argument;
  sem_t known;    // What came of it.
  pid_t pid = 0;  // Written by the kernel.
  alignas(16) std::array<char, kStackBytes> stack;
};

LEAVES_NO_FRAME void live(void* birth) {
  auto& self = *static_cast<Birth*>(birth);
  ::sem_post(&self.known);
  self.run(self.argument.get());
}

// clone3(2), for which the C library has no function: `live` runs on a stack of its own. What the
// kernel returned.
long clone_with_stack(clone_args& wanted, Birth& birth) {
#if defined(__x86_64__)
  long returned = SYS_clone3;
  register auto* const function asm("r8") = &live;
  register auto* const argument asm("r9") = &birth;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "mov %%r9, %%rdi\n\t"
      "call *%%r8\n\t"
      "ud2\n"
      "1:"
      : "+a"(returned)
      : "D"(&wanted), "S"(sizeof wanted), "r"(function), "r"(argument)
      : "rcx", "r11", "cc", "memory");
  return returned;
#elif defined(__aarch64__)
  register long returned asm("x0") = reinterpret_cast<long>(&wanted);
  register const long size asm("x1") = sizeof wanted;
  register const long number asm("x8") = SYS_clone3;
  register auto* const function asm("x9") = &live;
  register auto* const argument asm("x10") = &birth;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x0, x10\n\t"
      "blr x9\n\t"
      "brk #0\n"
      "1:"
      : "+r"(returned)
      : "r"(size), "r"(number), "r"(function), "r"(argument)
      : "x30", "cc", "memory");
  return returned;
#else
  static_cast<void>(wanted), static_cast<void>(birth);
  return -ENOSYS;
#endif
}

void carry_out(Birth& birth) {
  clone_args wanted = birth.wanted;
  wanted.flags |= CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID;
  wanted.exit_signal = SIGCHLD;
  wanted.parent_tid = reinterpret_cast<std::uint64_t>(&birth.pid);
  wanted.stack = reinterpret_cast<std::uint64_t>(birth.stack.data());
  wanted.stack_size = birth.stack.size();
  clone_with_stack(wanted, birth);
  // There is none, or it was killed before it could say that it is there.
  ::sem_post(&birth.known);
}

}  // namespace

struct VforkThread::State {
  std::mutex mutex;
  std::condition_variable asked;
  std::shared_ptr<Birth> birth;
  bool busy = false, ending = false;

  static void work(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    for (;;) {
      state->asked.wait(lock, [&] { return state->ending || state->birth; });
      if (state->ending) return;
      std::shared_ptr<Birth> birth = std::move(state->birth);
      lock.unlock();
      carry_out(*birth);
      birth.reset();
      lock.lock();
      state->busy = false;
    }
  }
};

// Not joined: it may stand still for as long as a filesystem does not answer. A signal that it took
// would be handled in the new process, by our handler and in our memory.
VforkThread::VforkThread() : state_(std::make_shared<State>()) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([state = state_] { State::work(state); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

VforkThread::~VforkThread() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->asked.notify_one();
}

std::optional<pid_t> VforkThread::begin(const clone_args& wanted, void (*run)(void*),
                                        std::shared_ptr<void> argument) {
  std::shared_ptr<Birth> birth;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->busy) return std::nullopt;
    birth = std::make_shared<Birth>(wanted, run, std::move(argument));
    state_->busy = true;
    state_->birth = birth;
  }
  state_->asked.notify_one();
  while (::sem_wait(&birth->known) != 0) {
  }
  return birth->pid > 0 ? std::optional(birth->pid) : std::nullopt;
}

}  // namespace executor
