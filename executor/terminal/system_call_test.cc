#include "executor/terminal/system_call.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace executor {
namespace {

TEST(SystemCall, IsReadAsTheKernelTellsIt) {
  const auto read =
      parse_system_call("0 0x0 0x7ff1 0x1000 0x3 0x4 0xffffffffffffffff 0x7ffd0 0x7f71\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (SystemCall{0, {0, 0x7ff1, 0x1000, 3, 4, ~std::uint64_t{0}}, 0x7ffd0}));
  const auto outside = parse_system_call("-1 0x7ffd0 0x7f71\n");
  ASSERT_TRUE(outside);
  EXPECT_EQ(*outside, (SystemCall{-1, {}, 0x7ffd0}));
  for (const char* text :
       {"running\n", "", "0\n", "-1 0x7ffd0\n", "0 0x0 0x7ffd0 0x7f71\n", "x 0x1 0x2\n"})
    EXPECT_FALSE(parse_system_call(text)) << text;
}

struct Case {
  const char* name;
  int amd64, arm64;  // -1: there is none.
  WaitsFor what;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

// Its arguments are 3, 4, 5 and on.
const Case kCases[] = {
    {"read", 0, 63, OneFile{3}},
    {"readv", 19, 65, OneFile{3}},
    {"preadv2", 327, 286, OneFile{3}},
    {"splice", 275, 76, OneFile{3}},
    {"sendfile", 40, 71, OneFile{4}},
    {"poll", 7, -1, PolledFiles{3, 4}},
    {"ppoll", 271, 73, PolledFiles{3, 4}},
    {"select", 23, -1, SelectedFiles{4, 3}},
    {"pselect6", 270, 72, SelectedFiles{4, 3}},
    {"epoll_wait", 232, -1, EpollFiles{3}},
    {"epoll_pwait", 281, 22, EpollFiles{3}},
    {"epoll_pwait2", 441, 441, EpollFiles{3}},
    {"restart_syscall", 219, 128, Resumed{{3, 4}}},
    {"io_uring_enter", 426, 426, Untold{}},
    {"write", 1, 64, NoFile{}},
    {"wait4", 61, 260, NoFile{}},
    {"clock_nanosleep", 230, 115, NoFile{}},
    {"futex", 202, 98, NoFile{}},
};

class EachCall : public ::testing::TestWithParam<Case> {};

// covers: Y3
TEST_P(EachCall, WaitsForWhatItsArgumentsName) {
  const Case& test = GetParam();
  SystemCall call{.arguments = {3, 4, 5, 6, 7, 8}, .stack = 0x7ffd'0000'0000};
  for (const auto& [machine, number] :
       {std::pair(Machine::kAmd64, test.amd64), std::pair(Machine::kArm64, test.arm64)}) {
    if (number < 0) continue;
    call.number = number;
    EXPECT_TRUE(waits_for(call, machine) == test.what) << static_cast<int>(machine);
  }
}
INSTANTIATE_TEST_SUITE_P(SystemCall, EachCall, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(SystemCall, HasTheNumbersOfThisMachine) {
  const std::pair<int, const char*> numbers[] = {
      {SYS_read, "read"},
      {SYS_readv, "readv"},
      {SYS_preadv2, "preadv2"},
      {SYS_splice, "splice"},
      {SYS_sendfile, "sendfile"},
      {SYS_ppoll, "ppoll"},
      {SYS_pselect6, "pselect6"},
      {SYS_epoll_pwait, "epoll_pwait"},
      {SYS_restart_syscall, "restart_syscall"},
      {SYS_io_uring_enter, "io_uring_enter"},
      {SYS_write, "write"},
      {SYS_wait4, "wait4"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_futex, "futex"},
#ifdef SYS_poll
      {SYS_poll, "poll"},
      {SYS_select, "select"},
      {SYS_epoll_wait, "epoll_wait"},
#endif
  };
  for (const auto& [number, name] : numbers)
    for (const Case& test : kCases)
      if (std::string_view(test.name) == name)
        EXPECT_EQ(kThisMachine == Machine::kAmd64 ? test.amd64 : test.arm64, number) << name;
}

// Where nothing can be told, nothing is claimed.
TEST(SystemCall, OfAnotherAbiTellsNothing) {
  SystemCall call{.number = 0, .arguments = {}, .stack = 0xffff'd000};
  EXPECT_TRUE(waits_for(call, Machine::kAmd64) == WaitsFor(Untold{})) << "of 32 bits";
  call.stack = 0x7ffd'0000'0000;
  EXPECT_TRUE(waits_for(call, Machine::kOther) == WaitsFor(Untold{})) << "of another machine";
  call.number = -1;
  EXPECT_TRUE(waits_for(call, Machine::kAmd64) == WaitsFor(NoFile{})) << "outside of any";
}

}  // namespace
}  // namespace executor
