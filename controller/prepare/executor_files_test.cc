#include "controller/prepare/executor_files.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstring>
#include <fstream>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

namespace controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kMachineAt = 18;  // In an ELF header, little-endian.

TEST(ExecutorFiles, KnowWhichProcessorEachIsFor) {
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

// As much of one as tells its processor.
std::string program_for(Elf64_Half machine) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = machine;
  return {reinterpret_cast<const char*>(&header), sizeof header};
}
const std::string kForAmd = program_for(EM_X86_64), kForArm = program_for(EM_AARCH64);

ExecutorFiles files_of(std::initializer_list<std::string> contents) {
  ExecutorFiles files;
  for (const auto& each : contents) files.push_back(as_executor(each));
  return files;
}

TEST(ExecutorFiles, TheOneForTheSandboxsProcessorIsChosen) {
  const struct {
    const char* name;
    ExecutorFiles files;
    std::string_view machine;
    const std::string* chosen;  // None: it is refused.
  } cases[] = {
      {"the_first", files_of({kForAmd, kForArm}), "x86_64", &kForAmd},
      {"the_second", files_of({kForAmd, kForArm}), "aarch64", &kForArm},
      {"in_another_order", files_of({kForArm, kForAmd}), "x86_64", &kForAmd},
      {"the_image_cannot_tell", files_of({kForArm, kForAmd}), "", &kForArm},
      {"none_for_it", files_of({kForAmd}), "aarch64", nullptr},
      {"a_processor_that_none_is_for", files_of({kForAmd, kForArm}), "riscv64", nullptr},
  };
  for (const auto& [name, files, machine, wanted] : cases) {
    const auto chosen = choose(files, machine);
    ASSERT_EQ(chosen.ok(), wanted != nullptr) << name;
    if (wanted) EXPECT_EQ((*chosen)->content, *wanted) << name;
  }
  const std::string script = "#!/bin/sh\n";
  EXPECT_EQ((*choose(files_of({script}), "riscv64"))->content, script) << "it may run on any";
  EXPECT_EQ((*choose(files_of({script, kForArm}), "aarch64"))->content, kForArm);
}

TEST(ExecutorFiles, WhatIsMissingIsSaidWithWhatIsAtHand) {
  const auto refused = choose(files_of({kForAmd, kForArm}), "riscv64");
  EXPECT_EQ(refused.error().code, base::ErrorCode::kInvalid);
  EXPECT_EQ(refused.error().message,
            "this sandbox's processor is riscv64, and the executor at hand is for x86_64 or "
            "aarch64; give one for it with --executor");
}

class ReadExecutors : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  std::vector<std::string> machines(const std::vector<std::string>& paths = {}) const {
    std::vector<std::string> found;
    const auto files = read_executors(paths, folder_.path());
    if (!files) return {files.error().message};
    for (const auto& each : *files) found.push_back(each.machine);
    return found;
  }
  const base::TemporaryFolder folder_;
};

TEST_F(ReadExecutors, FindsThoseBesideTheProgramItsOwnFirst) {
  EXPECT_THAT(machines(), ElementsAre());
  put("sandfleet-executor-x86_64", kForAmd);
  EXPECT_THAT(machines(), ElementsAre("x86_64"));
  put("sandfleet-executor", kForArm);
  EXPECT_THAT(machines(), ElementsAre("aarch64", "x86_64"));
  put("sandfleet-executor-aarch64", "another that its own machine's build left");
  EXPECT_THAT(machines(), ElementsAre("aarch64", "x86_64"));
}

TEST_F(ReadExecutors, RefusesOneUnderAnothersName) {
  put("sandfleet-executor", kForAmd);
  put("sandfleet-executor-aarch64", kForAmd);
  EXPECT_THAT(machines(), ElementsAre(HasSubstr("-aarch64: another executor is for x86_64")));
}

TEST_F(ReadExecutors, TakesThoseThatAreNamedAlone) {
  put("sandfleet-executor", kForAmd);
  const std::string amd = put("amd", kForAmd), arm = put("arm", kForArm);
  EXPECT_THAT(machines({arm}), ElementsAre("aarch64"));
  EXPECT_THAT(machines({arm, amd}), ElementsAre("aarch64", "x86_64"));
  EXPECT_THAT(machines({arm, amd, put("third", kForArm)}),
              ElementsAre(HasSubstr("third: another executor is for aarch64; give one for each")));
  EXPECT_THAT(machines({put("a", "#!"), put("b", "#!")}),
              ElementsAre(HasSubstr("b: another executor is for a processor that is not known")));
  EXPECT_THAT(machines({arm, folder_ / "missing"}), ElementsAre(HasSubstr("missing")));
}

}  // namespace
}  // namespace controller
