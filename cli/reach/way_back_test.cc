#include "cli/reach/way_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/reach/way.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/temporary_folder.h"

namespace cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kOdd = "it's \"$HOME\" `id` \\ * ~ #;& |\t\xc3\xa9";
const std::string kHandle = "0123456789abcdef";

Options everything() {
  Options options;
  options.state = "state of " + kOdd;
  options.kubeconfig = "--config " + kOdd;
  options.context = kOdd;
  options.socket = "-s";
  options.token_file = "/run/" + kOdd;
  options.service_account = "!account";
  options.escape_char = "'";
  options.input = true;
  return options;
}

// What `sh -c` gives to the program that a line names, at that place, by PATH or by its path.
std::vector<std::string> words_given(const std::string& line, const std::filesystem::path& program,
                                     const base::TemporaryFolder& folder) {
  const auto told = folder / "told";
  EXPECT_TRUE(base::write_file_atomically(
      program, "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done >\"$TOLD\"\n", 0700));
  ::setenv("TOLD", told.c_str(), 1);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (program.parent_path().string() + ":" + path).c_str(), 1);
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(126);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(shell, &status, 0), shell);
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(status, 0) << line;
  const auto given = base::read_file(told);
  EXPECT_TRUE(given) << line;
  auto words = base::split(given ? *given : "", '\0');
  words.pop_back();
  return words;
}

// How they are understood.
Options read(const std::vector<std::string>& words) {
  Options options;
  base::Flags flags("sandfleet", kAbout);
  declare(flags, options, [](const Verb& verb) { return verb.joins ? kDone : kFailed; });
  std::vector<const char*> typed = {"sandfleet"};
  for (const std::string& word : words) typed.push_back(word.c_str());
  EXPECT_EQ(flags.parse(static_cast<int>(typed.size()), typed.data()), kDone);
  return options;
}

TEST(WayBack, IsPastedIntoAShellAndMeansTheSame) {
  const base::TemporaryFolder folder;
  Options given = everything();
  for (const bool by_path : {false, true}) {
    const auto program = folder / (by_path ? "it's here" : "sandfleet");
    given.path = by_path ? program.string() : "";
    for (const std::string& handle : {kHandle, "-" + kHandle, kOdd}) {
      const auto words = words_given(way_back(given, {"team", "box"}, handle), program, folder);
      const Options read_back = read(words);
      EXPECT_EQ(read_back.state, given.state);
      EXPECT_EQ(read_back.kubeconfig, given.kubeconfig);
      EXPECT_EQ(read_back.context, given.context);
      EXPECT_EQ(read_back.socket, given.socket);
      EXPECT_EQ(read_back.token_file, given.token_file);
      EXPECT_EQ(read_back.service_account, given.service_account);
      EXPECT_EQ(read_back.escape_char, given.escape_char);
      EXPECT_EQ(read_back.input, given.input);
      EXPECT_THAT(read_back.words, testing::ElementsAre("team/box", handle));
    }
  }
}

// A flag that attach is given one day must be here too.
TEST(WayBack, LeavesOutNoFlag) {
  Options unused;
  base::Flags program("sandfleet", kAbout);
  const auto commands = declare(program, unused, [](const Verb&) { return kDone; });
  const auto attach = std::ranges::find(verbs(), "attach", &Verb::name) - verbs().begin();
  const std::string line = way_back(everything(), {"team", "box"}, kHandle);
  for (const base::FlagShape& flag : commands[static_cast<std::size_t>(attach)]->shapes()) {
    const std::string& name = flag.names.back();
    if (name == "--namespace" || name == "--help") continue;  // It stands before the name.
    EXPECT_THAT(line, HasSubstr(name)) << name;
  }
}

TEST(WayBack, IsShortWhereLittleWasGiven) {
  Options options;
  EXPECT_EQ(way_back(options, {"team", "box"}, kHandle), "sandfleet attach team/box " + kHandle);
  options.program = "kubectl sandfleet";
  options.socket = "/run/a b";
  EXPECT_EQ(way_back(options, {"team", "box"}, kHandle),
            "kubectl sandfleet attach '--socket=/run/a b' team/box " + kHandle);
}

TEST(WayBack, TakesNoNamespaceForAKind) {
  const std::string line = way_back({}, {"providers", "box"}, kHandle);
  EXPECT_THAT(line, StartsWith("sandfleet attach "));
  EXPECT_EQ(choose_way({}, base::split(line, ' ')[2], {})->sandbox,
            (wire::SandboxName{"providers", "box"}));
}

}  // namespace
}  // namespace cli
