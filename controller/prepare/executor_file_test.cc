#include "controller/prepare/executor_file.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include "libs/base/files.h"

namespace controller {
namespace {

constexpr std::size_t kMachineAt = 18;  // In an ELF header, little-endian.

TEST(ExecutorFile, KnowsWhichProcessorItIsFor) {
  utsname here{};
  ASSERT_EQ(::uname(&here), 0);
  std::string program = *base::read_file("/proc/self/exe", std::size_t{1} << 30);
  EXPECT_EQ(machine_of(program), here.machine);
  const struct {
    std::uint8_t machine;
    std::string_view name;
  } cases[] = {{62, "x86_64"}, {183, "aarch64"}, {243, ""}};
  for (const auto& [machine, name] : cases) {
    program[kMachineAt] = static_cast<char>(machine);
    EXPECT_EQ(machine_of(program), name);
  }
  EXPECT_EQ(machine_of(std::string_view(program).substr(0, kMachineAt + 2)), "") << "cut off";
  EXPECT_EQ(machine_of("#!/bin/sh\necho it is a script; it runs on all of them, as it happens\n"),
            "");
}

}  // namespace
}  // namespace controller
