#include "libs/base/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace base {
namespace {

// In a child of the test, which can do without: 0 when what is opened next is none of the three,
// and each that was closed neither takes nor gives a byte.
int code_without(std::initializer_list<int> closed) {
  for (const int each : closed) ::close(each);
  hold_standard_descriptors();
  char byte = 'x';
  for (const int each : closed) {
    const ssize_t done = each == STDIN_FILENO ? ::read(each, &byte, 1) : ::write(each, &byte, 1);
    if (done != -1 || errno != EBADF) return 1;
  }
  return ::open("/dev/null", O_RDWR | O_CLOEXEC) > STDERR_FILENO ? 0 : 2;
}

TEST(HoldStandardDescriptors, LeavesNoneOfThemToOthers) {
  const auto exits_well = testing::ExitedWithCode(0);
  EXPECT_EXIT(::_exit(code_without({STDIN_FILENO})), exits_well, "");
  EXPECT_EXIT(::_exit(code_without({STDOUT_FILENO})), exits_well, "");
  EXPECT_EXIT(::_exit(code_without({STDERR_FILENO})), exits_well, "");
  EXPECT_EXIT(::_exit(code_without({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})), exits_well, "");
}

TEST(HoldStandardDescriptors, LeavesThoseThatAreOpenAsTheyAre) {
  EXPECT_EXIT(
      {
        hold_standard_descriptors();
        ::_exit(::write(STDERR_FILENO, "told\n", 5) == 5 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "told");
}

}  // namespace
}  // namespace base
