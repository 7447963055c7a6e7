#include "executor/sessions/sessions.h"

#include <gtest/gtest.h>

#include "executor/sessions/testing/client.h"
#include "executor/testing/scratch.h"
#include "libs/aio/testing/run.h"
#include "libs/wire/frames/file_operations.h"
#include "libs/wire/frames/process_operations.h"

namespace executor {
namespace {

using aio::testing::tell;
using testing::Client;

// An executor's port, over a folder of the test's.
struct Site {
  Site()
      : background(2),
        sessions({.executor = loop.executor(),
                  .background = background,
                  .clock = clock,
                  .time = time,
                  .stagings = *Stagings::open(runtime.path()),
                  .instance = "i-1",
                  .attach_key = testing::attach_key(),
                  .workspace = folder.path().string()},
                 testing::identity()),
        server(loop.executor(), [this](auto exchange) { return sessions.serve(exchange); }),
        client(loop.executor(), *server.listen("127.0.0.1", 0)) {}

  Scratch folder, runtime;
  aio::Loop loop;
  base::SystemClock clock;
  KnownTime time;
  aio::Background background;
  Sessions sessions;
  aio::HttpServer server;
  Client client;
};

struct Answer {
  std::optional<base::Json> ok;
  std::optional<wire::Failure> failure;
  std::string download;
};

// Asks, uploads, and reads to the end, over as many connections as it takes.
template <typename Args>
aio::Task<Answer> ask(Client& client, Args args, bool mutating, std::string upload = {},
                      bool download = false) {
  wire::Call call{.op = std::string(Args::kOp),
                  .args = wire::to_json(args),
                  .mutating = mutating,
                  .up = !upload.empty(),
                  .down = download};
  const auto id = *client.session.ask(std::move(call));
  Answer answer;
  std::size_t sent = 0;
  bool ended = !download;
  for (;;) {
    while (const std::size_t room = std::min(client.session.room(id), upload.size() - sent)) {
      client.session.append(id, std::string_view(upload).substr(sent, room));
      sent += room;
      if (sent == upload.size()) client.session.end(id);
    }
    client.said.notify_all();
    while (auto piece = client.session.take(id)) {
      answer.download += piece->bytes;
      ended = piece->end;
      if (piece->error) answer.failure = piece->error;
    }
    for (const auto& event : std::exchange(client.events, {})) {
      if (const auto* answered = std::get_if<wire::Answered>(&event)) answer.ok = answered->ok;
      if (const auto* failed = std::get_if<wire::Failed>(&event)) answer.failure = failed->failure;
    }
    if (answer.failure || (answer.ok && ended)) co_return answer;
    co_await client.said.wait();
  }
}

// Tells `story` while the client's connection is carried.
aio::Task<> with_link(Site& site, aio::Task<> (*story)(Site&)) {
  co_await aio::race(Client::carry(site.client), story(site));
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
  const auto read =
      co_await ask(site.client, wire::ReadBytesArgs{.place = at("a\xff.bin")}, false, {}, true);
  EXPECT_EQ(read.download, content);
  const auto again = co_await ask(
      site.client, wire::WriteArgs{.place = at("a\xff.bin"), .intent = wire::CreateIfAbsent{}},
      true, "other");
  EXPECT_EQ(again.failure->code, wire::FailureCode::kFsNotObserved);
  EXPECT_EQ(site.folder.read("a\xff.bin"), content);
}
aio::Task<> tell_write_and_read(Site& site) { return with_link(site, write_and_read); }
TEST(Sessions, WriteAndReadAFileOfAnySizeAndName) { tell(tell_write_and_read); }

aio::Task<> edit(Site& site) {
  site.folder.write("text", "one\r\ntwo\r\n");
  const wire::EditTextArgs args{.place = at("text"), .old_bytes = 3, .diff_bytes_max = 1000};
  const auto edited = co_await ask(site.client, args, true, "two$&", true);
  EXPECT_TRUE(edited.ok) << edited.failure->message;
  EXPECT_EQ(site.folder.read("text"), "one\r\n$&\r\n");
  EXPECT_EQ(edited.download, "one\ntwo\none\n$&\n") << "before and after";
}
aio::Task<> tell_edit(Site& site) { return with_link(site, edit); }
TEST(Sessions, EditATextAndHandBothBack) { tell(tell_edit); }

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
aio::Task<> tell_look_around(Site& site) { return with_link(site, look_around); }
TEST(Sessions, LookAroundAndMoveThings) { tell(tell_look_around); }

aio::Task<> read_text(Site& site) {
  site.folder.write("text", std::string(200'000, 'x') + "\xff");
  const auto read = co_await ask(site.client, wire::ReadTextArgs{at("text")}, false, {}, true);
  EXPECT_EQ(read.failure->code, wire::FailureCode::kFsNotText);
  const auto absent = co_await ask(site.client, wire::ReadTextArgs{at("none")}, false, {}, true);
  EXPECT_EQ(absent.failure->code, wire::FailureCode::kFsNotFound);
}
aio::Task<> tell_read_text(Site& site) { return with_link(site, read_text); }
TEST(Sessions, TellWhatIsNoText) { tell(tell_read_text); }

aio::Task<> ask_nonsense(Site& site) {
  const auto bad = co_await ask(site.client, wire::StatArgs{}, false);
  EXPECT_EQ(bad.failure->code, wire::FailureCode::kInvalid);
  const auto other = co_await ask(site.client, wire::ReleaseArgs{"0123456789abcdef"}, true);
  EXPECT_EQ(other.failure->code, wire::FailureCode::kUnsupported);
}
aio::Task<> tell_ask_nonsense(Site& site) { return with_link(site, ask_nonsense); }
TEST(Sessions, RefuseWhatTheyDoNotKnow) { tell(tell_ask_nonsense); }

aio::Task<> narrow_down(Site& site) {
  const auto id = *site.client.session.ask({.op = "fs.mkdir",
                                            .args = {{"path", "a"}},
                                            .mutating = true,
                                            .permission_mode = wire::Ceiling::kReadOnly});
  co_await Client::wait_for<wire::Failed>(site.client);
  const auto* failed = site.client.find<wire::Failed>();
  EXPECT_EQ(failed->id, id);
  EXPECT_EQ(failed->failure.code, wire::FailureCode::kFsSandboxDenied);
}
aio::Task<> tell_narrow_down(Site& site) { return with_link(site, narrow_down); }
TEST(Sessions, HoldARequestToItsMode) { tell(tell_narrow_down); }

// Its connection is gone again and again while a file is on its way.
aio::Task<> cut_again_and_again(Site& site) {
  for (;;) {
    co_await aio::race(Client::carry(site.client), aio::sleep_for(base::Milliseconds(30)));
    site.client.session.cut();
  }
}
aio::Task<> write_through_cuts(Site& site) {
  std::string content;
  for (int i = 0; content.size() < 6'000'000; ++i) content += std::to_string(i) + "\n";
  std::optional<Answer> answer;
  co_await aio::race(
      aio::keep_result(ask(site.client, wire::WriteArgs{.place = at("large")}, true, content),
                       answer),
      cut_again_and_again(site));
  EXPECT_TRUE(answer && answer->ok);
  EXPECT_EQ(site.folder.read("large"), content);
}
TEST(Sessions, GoOnThroughCuts) { tell(write_through_cuts); }

}  // namespace
}  // namespace executor
