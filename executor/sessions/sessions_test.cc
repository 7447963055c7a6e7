#include "executor/sessions/sessions.h"

#include <gtest/gtest.h>

#include "executor/sessions/testing/site.h"
#include "libs/wire/frames/file_operations.h"

namespace executor {
namespace {

using testing::Answer;
using testing::Client;
using testing::Site;
using testing::tell_connected;

// Asks, uploads, and reads to the end, over as many connections as it takes.
template <typename Args>
aio::Task<Answer> ask(Client& client, Args args, bool mutating,
                      std::optional<std::string> upload = {}, bool download = false) {
  return Client::ask(client, std::move(args),
                     {.mutating = mutating, .upload = std::move(upload), .download = download});
}

wire::Place at(const std::string& path) { return {.path = path}; }

aio::Task<> write_and_read(Site& site) {
  std::string content(3'000'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 3);
  const auto written = co_await ask(
      site.client, wire::WriteArgs{.place = at("a\xff.bin"), .intent = wire::CreateIfAbsent{}},
      true, content);
  EXPECT_TRUE(written.ok) << written.failure->message;
  EXPECT_EQ(site.folder.read("a\xff.bin"), content);
  const auto read = co_await ask(site.client, wire::ReadBytesArgs{.place = at("a\xff.bin")}, false,
                                 std::nullopt, true);
  EXPECT_EQ(read.download, content);
  const auto again = co_await ask(
      site.client, wire::WriteArgs{.place = at("a\xff.bin"), .intent = wire::CreateIfAbsent{}},
      true, "other");
  EXPECT_EQ(again.failure->code, wire::FailureCode::kFsNotObserved);
  EXPECT_EQ(site.folder.read("a\xff.bin"), content);
}
TEST(Sessions, WriteAndReadAFileOfAnySizeAndName) { tell_connected(write_and_read); }

aio::Task<> edit(Site& site) {
  site.folder.write("text", "one\r\ntwo\r\n");
  const wire::EditTextArgs args{.place = at("text"), .old_bytes = 3, .diff_bytes_max = 1000};
  const auto edited = co_await ask(site.client, args, true, "two$&", true);
  EXPECT_TRUE(edited.ok) << edited.failure->message;
  EXPECT_EQ(site.folder.read("text"), "one\r\n$&\r\n");
  EXPECT_EQ(edited.download, "one\ntwo\none\n$&\n") << "before and after";
}
TEST(Sessions, EditATextAndHandBothBack) { tell_connected(edit); }

aio::Task<> look_around(Site& site) {
  site.folder.write("b", "12345");
  EXPECT_TRUE((co_await ask(site.client, wire::MkdirArgs{.place = {"a"}}, true)).ok);
  const auto page = co_await ask(site.client, wire::ListDirArgs{.place = at(".")}, false);
  const auto listed = wire::from_json<wire::ListDirArgs::Ok>(*page.ok);
  EXPECT_TRUE(listed && listed->entries.size() == 2 && listed->entries[1].size == 5);
  const auto absent = co_await ask(site.client, wire::StatArgs{at("c")}, false);
  EXPECT_EQ(*absent.ok, (base::Json{{"info", nullptr}}));
  const auto moved = co_await ask(site.client, wire::RenameArgs{"b", "a/b"}, true);
  EXPECT_TRUE(moved.ok) << moved.failure->message;
  const auto copied = co_await ask(site.client, wire::CopyArgs{"a/b", "c"}, true);
  EXPECT_TRUE(copied.ok) << copied.failure->message;
  EXPECT_EQ(site.folder.read("c"), "12345");
  const auto tree = co_await ask(site.client, wire::ListTreeArgs{.place = at(".")}, false);
  EXPECT_EQ(wire::from_json<wire::ListTreeArgs::Ok>(*tree.ok)->entries.size(), 3u);
  const auto removed =
      co_await ask(site.client, wire::RemoveArgs{.place = {"a"}, .recursive = true}, true);
  EXPECT_EQ(*removed.ok, (base::Json{{"removed", true}}));
  const auto missing =
      co_await ask(site.client, wire::RemoveArgs{.place = {"a"}, .missing_ok = true}, true);
  EXPECT_EQ(*missing.ok, (base::Json{{"removed", false}}));
}
TEST(Sessions, LookAroundAndMoveThings) { tell_connected(look_around); }

aio::Task<> read_text(Site& site) {
  site.folder.write("text", std::string(200'000, 'x') + "\xff");
  const auto read =
      co_await ask(site.client, wire::ReadTextArgs{at("text")}, false, std::nullopt, true);
  EXPECT_EQ(read.failure->code, wire::FailureCode::kFsNotText);
  const auto absent =
      co_await ask(site.client, wire::ReadTextArgs{at("none")}, false, std::nullopt, true);
  EXPECT_EQ(absent.failure->code, wire::FailureCode::kFsNotFound);
}
TEST(Sessions, TellWhatIsNoText) { tell_connected(read_text); }

aio::Task<> ask_nonsense(Site& site) {
  const auto bad = co_await ask(site.client, wire::StatArgs{}, false);
  EXPECT_EQ(bad.failure->code, wire::FailureCode::kInvalid);
  const auto id = *site.client.session.ask({.op = "fs.melt"});
  site.client.said.notify_all();
  const auto other = co_await Client::answer(site.client, id);
  EXPECT_EQ(other.failure->code, wire::FailureCode::kUnsupported);
}
TEST(Sessions, RefuseWhatTheyDoNotKnow) { tell_connected(ask_nonsense); }

aio::Task<> narrow_down(Site& site) {
  const auto made = co_await Client::ask(site.client, wire::MkdirArgs{.place = {"a"}},
                                         {.mutating = true, .mode = wire::Ceiling::kReadOnly});
  EXPECT_EQ(made.code(), wire::FailureCode::kFsSandboxDenied);
}
TEST(Sessions, HoldARequestToItsMode) { tell_connected(narrow_down); }

// Its connection is gone again and again while a file is on its way.
aio::Task<> write_through_cuts(Site& site) {
  site.client.cut = testing::after_each(700'000);
  std::string content;
  for (int i = 0; content.size() < 6'000'000; ++i) content += std::to_string(i) + "\n";
  const auto answer =
      co_await ask(site.client, wire::WriteArgs{.place = at("large")}, true, content);
  EXPECT_TRUE(answer.ok);
  EXPECT_EQ(site.folder.read("large"), content);
  EXPECT_GT(site.client.cuts, 5);
}
TEST(Sessions, GoOnThroughCuts) { tell_connected(write_through_cuts); }

}  // namespace
}  // namespace executor
