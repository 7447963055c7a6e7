#include <gmock/gmock.h>

#include <map>

#include "executor/sessions/testing/site.h"
#include "libs/archives/testing/tree.h"
#include "libs/wire/frames/archive_operations.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using archives::testing::described;
using testing::Client;
using ::testing::IsEmpty;
using testing::Site;
using testing::tell_connected;
using wire::FailureCode;

wire::Place at(const std::string& path) { return {.path = path}; }

std::uint32_t begin(Client& client, const wire::CreateArchiveArgs& args) {
  const auto id =
      *client.session.ask({.op = std::string(args.kOp), .args = wire::to_json(args), .down = true});
  client.said.notify_all();
  return id;
}
std::uint32_t begin(Client& client, const wire::ExtractArchiveArgs& args) {
  const auto id = *client.session.ask(
      {.op = std::string(args.kOp), .args = wire::to_json(args), .mutating = true, .up = true});
  client.said.notify_all();
  return id;
}

// What was said about each request.
struct Answers {
  std::map<std::uint32_t, base::Json> ok;
  std::map<std::uint32_t, wire::Failure> failed;

  void hear(Client& client) {
    for (const auto& event : std::exchange(client.events, {})) {
      if (const auto* one = std::get_if<wire::Answered>(&event)) ok[one->id] = one->ok;
      if (const auto* one = std::get_if<wire::Failed>(&event)) failed[one->id] = one->failure;
    }
  }
};
aio::Task<> until_answered(Client& client, Answers& answers, std::uint32_t id) {
  for (;;) {
    answers.hear(client);
    if (answers.ok.contains(id) || answers.failed.contains(id)) co_return;
    co_await client.said.wait();
  }
}

aio::Task<> upload(Client& client, std::uint32_t id, std::string bytes, bool whole) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t count = std::min(client.session.room(id), bytes.size() - at);
    if (count == 0) {
      co_await client.said.wait();
      continue;
    }
    client.session.append(id, std::string_view(bytes).substr(at, count));
    client.said.notify_all();
    at += count;
  }
  if (whole) client.session.end(id);
  client.said.notify_all();
}

aio::Task<> download(Client& client, Answers& answers, std::uint32_t id, std::string& bytes) {
  for (;;) {
    answers.hear(client);
    while (auto piece = client.session.take(id)) {
      client.said.notify_all();
      bytes += piece->bytes;
      if (piece->error) answers.failed[id] = *piece->error;
      if (piece->end) co_return;
    }
    if (answers.failed.contains(id)) co_return;
    co_await client.said.wait();
  }
}

aio::Task<> there_and_back(Site& site) {
  fs::create_directory(site.folder / "tree");
  archives::testing::grow(site.folder / "tree", 7, 150);
  std::string archive;
  Answers answers;
  const auto created = begin(site.client, wire::CreateArchiveArgs{.place = at("tree")});
  co_await download(site.client, answers, created, archive);
  EXPECT_THAT(answers.failed, IsEmpty());
  const auto extracted =
      begin(site.client, wire::ExtractArchiveArgs{.place = at("a/new"), .durable = true});
  co_await upload(site.client, extracted, archive, true);
  co_await until_answered(site.client, answers, extracted);
  EXPECT_THAT(answers.failed, IsEmpty());
  EXPECT_EQ(described(site.folder / "a/new"), described(site.folder / "tree"));
  const auto ok = wire::from_json<wire::ExtractArchiveArgs::Ok>(answers.ok[extracted]);
  EXPECT_TRUE(ok && ok->created);
  // What is told behind the archive is what was found again.
  fs::create_directory(site.folder / "by-hand");
  const auto came = archives::testing::unpacked(archive, site.folder / "by-hand");
  EXPECT_TRUE(came);
  const auto report =
      wire::from_json<wire::ArchiveReport>(*base::parse_json(came ? came->trailer : ""));
  EXPECT_TRUE(report && ok && *report == ok->report);
}
TEST(ArchiveService, CarriesATreeOutAndIn) { tell_connected(there_and_back); }

aio::Task<> ask_in_vain(Site& site) {
  site.folder.write("file", "");
  Answers answers;
  std::string bytes;
  const auto of_file = begin(site.client, wire::CreateArchiveArgs{.place = at("file")});
  co_await download(site.client, answers, of_file, bytes);
  EXPECT_EQ(answers.failed[of_file].code, FailureCode::kFsNotDirectory);
  const auto of_none = begin(site.client, wire::CreateArchiveArgs{.place = at("none")});
  co_await download(site.client, answers, of_none, bytes);
  EXPECT_EQ(answers.failed[of_none].code, FailureCode::kFsNotFound);
  const auto broken = begin(site.client, wire::ExtractArchiveArgs{.place = at("new")});
  co_await upload(site.client, broken, "this is no archive", false);
  co_await until_answered(site.client, answers, broken);
  EXPECT_EQ(answers.failed[broken].code, FailureCode::kInvalid) << "told before it was whole";
  EXPECT_FALSE(fs::exists(site.folder / "new"));
}
TEST(ArchiveService, SaysWhatIsNoArchiveAndNoFolder) { tell_connected(ask_in_vain); }

aio::Task<> give_up(Site& site) {
  fs::create_directory(site.folder / "tree");
  site.folder.write("tree/large", std::string(3 << 20, 'x'));
  const std::string archive = archives::testing::packed(site.folder / "tree", {}).archive;
  const auto before = described(site.folder.path());
  Answers answers;
  const auto id = begin(site.client, wire::ExtractArchiveArgs{.place = at("new")});
  co_await upload(site.client, id, archive.substr(0, archive.size() - 1), false);
  while (described(site.folder.path()) == before) co_await aio::sleep_for(base::Milliseconds(2));
  site.client.session.cancel(id);
  site.client.said.notify_all();
  co_await until_answered(site.client, answers, id);
  EXPECT_EQ(answers.failed[id].code, FailureCode::kFsAborted);
  auto after = described(site.folder.path());
  after["."] = before.at(".");  // Its time alone.
  EXPECT_EQ(after, before);
}
// covers: A5 R6
TEST(ArchiveService, LeavesNothingWhenItIsGivenUp) { tell_connected(give_up); }

aio::Task<> stall(Site& site) {
  std::string noise(8 << 20, '\0');
  unsigned state = 1;
  for (char& byte : noise) byte = static_cast<char>((state = state * 1'103'515'245 + 12'345) >> 16);
  fs::create_directory(site.folder / "tree");
  site.folder.write("tree/noise", noise);
  Answers answers;
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < Archives::kAtOnceMax; ++i) {
    ids.push_back(begin(site.client, wire::CreateArchiveArgs{.place = at("tree")}));
    co_await until_answered(site.client, answers, ids.back());
  }
  EXPECT_THAT(answers.failed, IsEmpty()) << "all have begun, and nobody reads";
  const auto fifth = begin(site.client, wire::CreateArchiveArgs{.place = at("tree")});
  co_await until_answered(site.client, answers, fifth);
  EXPECT_EQ(answers.failed[fifth].code, FailureCode::kBusy);
  const auto stat = *site.client.session.ask(
      {.op = "fs.stat", .args = wire::to_json(wire::StatArgs{at("tree")})});
  site.client.said.notify_all();
  co_await until_answered(site.client, answers, stat);
  EXPECT_TRUE(answers.ok.contains(stat)) << "others are not held up";
  site.client.session.stop(ids.front());
  site.client.said.notify_all();
  for (;;) {  // Its thread has yet to learn of it.
    const auto again = begin(site.client, wire::CreateArchiveArgs{.place = at("tree")});
    co_await until_answered(site.client, answers, again);
    if (answers.ok.contains(again)) break;
    EXPECT_EQ(answers.failed[again].code, FailureCode::kBusy);
  }
}
// covers: O5
TEST(ArchiveService, HoldsNobodyUpWhenNobodyReads) { tell_connected(stall); }

aio::Task<> read_only(Site& site) {
  Answers answers;
  const auto id =
      *site.client.session.ask({.op = "archive.extract",
                                .args = wire::to_json(wire::ExtractArchiveArgs{.place = at("new")}),
                                .mutating = true,
                                .up = true,
                                .permission_mode = wire::Ceiling::kReadOnly});
  site.client.said.notify_all();
  co_await until_answered(site.client, answers, id);
  EXPECT_EQ(answers.failed[id].code, FailureCode::kFsSandboxDenied);
}
// covers: 2.6
TEST(ArchiveService, KeepsToTheModeOfTheRequest) { tell_connected(read_only); }

}  // namespace
}  // namespace executor
