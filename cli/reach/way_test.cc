#include "cli/reach/way.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

namespace cli {
namespace {

using base::ErrorCode;
using testing::HasSubstr;
using Typed = std::vector<std::string>;

TEST(SplitLine, LeavesTheCommandAsItWasTyped) {
  const struct {
    Typed typed;
    SplitLine split;
  } cases[] = {
      {{"exec", "box", "--", "ls", "-l"}, {{"exec", "box"}, {"ls", "-l"}}},
      {{"exec", "box", "ls", "-l"}, {{"exec", "box"}, {"ls", "-l"}}},
      {{"exec", "--", "ls", "-l"}, {{"exec"}, {"ls", "-l"}}},
      {{"exec", "-i", "box", "-C", "/tmp", "--", "cat"},
       {{"exec", "-i", "box", "-C", "/tmp"}, {"cat"}}},
      {{"exec", "box", "-C", "/tmp", "cat", "-n"}, {{"exec", "box", "-C", "/tmp"}, {"cat", "-n"}}},
      {{"exec", "-C", "/tmp", "box", "cat"}, {{"exec", "-C", "/tmp", "box"}, {"cat"}}},
      {{"exec", "--cwd=/tmp", "box", "cat"}, {{"exec", "--cwd=/tmp", "box"}, {"cat"}}},
      {{"exec", "box", "git", "log", "--", "a"}, {{"exec", "box"}, {"git", "log", "--", "a"}}},
      {{"exec", "box", "--", "sh", "--", "a"}, {{"exec", "box"}, {"sh", "--", "a"}}},
      {{"-n", "exec", "exec", "box", "ls"}, {{"-n", "exec", "exec", "box"}, {"ls"}}},
      {{"exec", "-n", "team", "box", "ls"}, {{"exec", "-n", "team", "box"}, {"ls"}}},
      {{"exec", "-e", "A=1", "-e", "B=2", "box", "env"},
       {{"exec", "-e", "A=1", "-e", "B=2", "box"}, {"env"}}},
      {{"exec", "box"}, {{"exec", "box"}}},
      {{"exec", "--cwd"}, {{"exec", "--cwd"}}},
      {{"get", "a", "b"}, {{"get", "a", "b"}}},
      {{"kill", "box", "0123456789abcdef"}, {{"kill", "box", "0123456789abcdef"}}},
      {{}, {}},
  };
  for (const auto& each : cases) {
    const SplitLine split = split_line(each.typed);
    EXPECT_EQ(split.line, each.split.line) << testing::PrintToString(each.typed);
    EXPECT_EQ(split.command, each.split.command) << testing::PrintToString(each.typed);
  }
}

Options with(const std::function<void(Options&)>& change) {
  Options options;
  options.state = "/state";  // So that no cluster of this machine has a say.
  change(options);
  return options;
}

TEST(ChooseWay, TakesTheSandboxFromTheLineOrTheEnvironment) {
  const Options plain = with([](Options&) {});
  const auto named = [&](const Options& options, const std::string& word,
                         const std::string& sandbox = "") {
    const auto way = choose_way(options, word, {.sandbox = sandbox});
    return way ? way->sandbox.space + "/" + way->sandbox.name : way.error().message;
  };
  EXPECT_EQ(named(plain, "box"), "default/box");
  EXPECT_EQ(named(plain, "team/box"), "team/box");
  EXPECT_EQ(named(plain, "sandbox/box"), "default/box");
  EXPECT_EQ(named(plain, "sandbox"), "default/sandbox") << "a name, though it is a kind";
  EXPECT_EQ(named(plain, "", "team/box"), "team/box");
  EXPECT_EQ(named(plain, "other", "team/box"), "default/other");
  const Options space = with([](Options& options) { options.space = "team"; });
  EXPECT_EQ(named(space, "box"), "team/box");
  EXPECT_EQ(named(space, "team/box"), "team/box");
  EXPECT_THAT(named(space, "other/box"), HasSubstr("not in namespace team"));
  EXPECT_THAT(named(plain, ""), HasSubstr("set SANDFLEET_SANDBOX"));
  for (const char* word : {"a/b/c", "/box", "team/", "provider/a"})
    EXPECT_THAT(named(plain, word), HasSubstr("is no sandbox")) << word;
}

TEST(ChooseWay, TheLineWinsOverTheEnvironment) {
  const auto socket = [](const Options& options, const Surroundings& around) {
    return choose_way(options, "box", around)->socket;
  };
  const Options plain = with([](Options&) {});
  EXPECT_EQ(socket(plain, {}), kSocket);
  EXPECT_EQ(socket(plain, {.socket_of_user = "/user"}), "/user");
  EXPECT_EQ(socket(plain, {.socket = "/env", .socket_of_user = "/user"}), "/env");
  EXPECT_EQ(socket(with([](Options& options) { options.socket = "/line"; }), {.socket = "/env"}),
            "/line");

  const Surroundings around{.token_file = "/env-token"};
  EXPECT_EQ(choose_way(plain, "box", around)->token_file, "/env-token");
  const auto line = with([](Options& options) { options.token_file = "/line-token"; });
  EXPECT_EQ(choose_way(line, "box", around)->token_file, "/line-token");
  const auto account = with([](Options& options) { options.service_account = "me"; });
  EXPECT_EQ(choose_way(account, "box", around)->token_file, "");
  EXPECT_EQ(choose_way(account, "box", around)->service_account, "me");
  const auto both = with([](Options& options) {
    options.service_account = "me";
    options.token_file = "/line-token";
  });
  EXPECT_EQ(choose_way(both, "box", around).error().code, ErrorCode::kInvalid);
}

std::optional<std::string> shown(const base::Result<wire::Credential>& credential) {
  return std::get<1>(*credential);
}

TEST(CredentialFrom, ReadsTheFileAgainForEachLink) {
  const base::TemporaryFolder folder;
  const auto path = folder / "token";
  const auto credential = credential_from(path);
  EXPECT_EQ(credential().error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(base::write_file_atomically(path, "first\n", 0600));
  EXPECT_EQ(shown(credential()), "first");
  ASSERT_TRUE(base::write_file_atomically(path, "second", 0600));
  EXPECT_EQ(shown(credential()), "second");
  ASSERT_TRUE(base::write_file_atomically(path, "\n", 0600));
  EXPECT_EQ(credential().error().code, ErrorCode::kNotFound) << "it may be on its way";
  EXPECT_EQ(shown(credential_from("")()), std::nullopt);
}

// As the other clients read it: clients/python/tests/token_file_test.py,
// clients/dsh/test/rules.test.ts.
TEST(CredentialFrom, TakesNothingForATokenThatIsNone) {
  const base::TemporaryFolder folder;
  const auto path = folder / "token";
  for (const std::string& token : {std::string("!a.b~"), std::string(8'192, 'x')}) {
    ASSERT_TRUE(base::write_file_atomically(path, " \r\n\t" + token + "\n", 0600));
    EXPECT_EQ(shown(credential_from(path)()), token);
  }
  using namespace std::string_literals;
  for (const std::string& content :
       {std::string(8'193, 'x'), "a b"s, "a\nb"s, "\x7f"s, "\xff"s, "\xc3\xa9"s, "a\0b"s,
        "\xc2\xa0\x61"s, "\xef\xbb\xbf\x61"s, "\va"s}) {
    ASSERT_TRUE(base::write_file_atomically(path, content, 0600));
    const auto none = credential_from(path)();
    ASSERT_FALSE(none) << content.substr(0, 9);
    EXPECT_EQ(none.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(none.error().message, testing::EndsWith(" holds no token"));
  }
}

}  // namespace
}  // namespace cli
