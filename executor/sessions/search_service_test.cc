#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "executor/search/search.h"
#include "executor/search/tools.h"
#include "executor/sessions/testing/site.h"
#include "libs/base/strings.h"
#include "libs/wire/frames/search_operations.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using testing::Answer;
using testing::Asking;
using testing::Client;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Site;
using ::testing::UnorderedElementsAre;
using wire::FailureCode;

wire::Place at(const std::string& path) { return {.path = path}; }

// The real program, as scripts/bootstrap has it.
std::string bytes_of_ripgrep() {
  FILE* asked = ::popen(BOOTSTRAP " where rg", "r");
  std::array<char, 4096> line{};
  const bool told = std::fgets(line.data(), line.size(), asked) != nullptr;
  ::pclose(asked);
  if (!told) return {};
  std::string path(line.data());
  path.pop_back();
  const auto bytes = base::read_file(path, static_cast<std::size_t>(ripgrep().bytes));
  return bytes ? *bytes : "";
}

aio::Task<Answer> put(Site& site, std::string bytes) {
  const wire::PutToolArgs args{"rg", std::string(ripgrep().sha256)};
  return Client::ask(site.client, args, {.upload = std::move(bytes)});
}

// What a search gave.
struct Found {
  std::optional<wire::Failure> failure;
  std::string target;
  std::vector<wire::SearchLine> lines;  // Without the summary.
  wire::SearchSummary summary;
  std::size_t bytes = 0;

  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    all.reserve(lines.size());
    for (const auto& line : lines) all.push_back(line.path.value_or("no path"));
    return all;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    all.reserve(lines.size());
    for (const auto& line : lines) all.push_back(line.text.value_or("no text"));
    return all;
  }
};

template <typename Args>
aio::Task<Found> search(Site& site, Args args) {
  const Answer answer = co_await Client::ask(site.client, std::move(args),
                                             {.download = true, .mode = wire::Ceiling::kReadOnly});
  Found found{.failure = answer.failure, .bytes = answer.download.size()};
  if (answer.failure) co_return found;
  found.target = answer.as<Args>().target;
  for (const std::string& text : base::split(answer.download, '\n')) {
    if (text.empty()) continue;
    const auto json = base::parse_json(text);
    const auto line = json ? wire::from_json<wire::SearchLine>(*json) : json.error();
    EXPECT_TRUE(line) << text;
    EXPECT_EQ(found.summary, wire::SearchSummary{}) << "the summary comes last";
    if (line && line->summary) found.summary = *line->summary;
    if (line && !line->summary) found.lines.push_back(*line);
  }
  co_return found;
}

// Tells `story` to a site that has the program.
using Story = aio::Task<> (*)(Site&);
aio::Task<> with_the_program(Site& site, Story story) {
  const Answer answer = co_await put(site, bytes_of_ripgrep());
  EXPECT_TRUE(answer.ok) << "is it there? scripts/bootstrap test: " << answer.failure->message;
  if (answer.ok) co_await story(site);
}
void tell(Story story) {
  Site site;
  aio::testing::run(site.loop, testing::connected(site.client, with_the_program(site, story)));
}

aio::Task<> bring_the_program(Site& site) {
  site.folder.write("a", "needle\n");
  const wire::GrepArgs needle{.place = at("."), .pattern = "needle"};
  const Found missing = co_await search(site, needle);
  EXPECT_TRUE(missing.failure && missing.failure->code == FailureCode::kToolMissing);
  EXPECT_EQ(missing.failure->detail,
            (base::Json{{"name", "rg"}, {"sha256", ripgrep().sha256}, {"bytes", ripgrep().bytes}}));
  const auto before =
      (co_await Client::ask(site.client, wire::FindToolArgs{"rg"})).as<wire::FindToolArgs>();
  EXPECT_EQ(before, (wire::FindToolArgs::Ok{std::string(ripgrep().sha256), ripgrep().bytes}));

  const Answer foreign = co_await put(site, "#!/bin/sh\necho this is another\n");
  EXPECT_EQ(foreign.code(), FailureCode::kInvalid);
  const Answer longer = co_await put(site, bytes_of_ripgrep() + "x");
  EXPECT_EQ(longer.code(), FailureCode::kInvalid);
  const Answer other =
      co_await Client::ask(site.client, wire::PutToolArgs{"fd", std::string(64, '0')});
  EXPECT_EQ(other.code(), FailureCode::kNotFound);
  const Answer version =
      co_await Client::ask(site.client, wire::PutToolArgs{"rg", std::string(64, '0')});
  EXPECT_EQ(version.code(), FailureCode::kInvalid);
  const Found still = co_await search(site, needle);
  EXPECT_TRUE(still.failure && still.failure->code == FailureCode::kToolMissing);

  const auto path = (co_await put(site, bytes_of_ripgrep())).as<wire::PutToolArgs>().path;
  EXPECT_EQ(path, site.runtime / "tools/rg");
  const auto after =
      (co_await Client::ask(site.client, wire::FindToolArgs{"rg"})).as<wire::FindToolArgs>();
  EXPECT_EQ(after.path, path);
  const Found found = co_await search(site, needle);
  EXPECT_THAT(found.paths(), ElementsAre("a"));
}
TEST(SearchService, TakesTheProgramByItsDigest) { testing::tell_connected(bring_the_program); }

aio::Task<> run_by_hand(Site& site) {
  const auto tool =
      (co_await Client::ask(site.client, wire::FindToolArgs{"rg"})).as<wire::FindToolArgs>();
  auto args = site.command({tool.path.value_or("none"), "--version"});
  std::uint32_t out = 0;
  Asking how = testing::pipe_out(site.client, args, out);
  how.mode = wire::Ceiling::kReadOnly;
  const Answer begun = co_await Client::ask(site.client, args, how);
  EXPECT_TRUE(begun.ok) << begun.failure->message;
  if (!begun.ok) co_return;
  const auto said = co_await Client::all_of(site.client, out);
  EXPECT_THAT(said.bytes, HasSubstr("ripgrep 15.0.0"));
}
TEST(SearchService, LetsCommandsRunTheProgramToo) { tell(run_by_hand); }

aio::Task<> look_for_names(Site& site) {
  for (const char* folder : {"src", "src/deep", ".git", "out"})
    fs::create_directory(site.folder / folder);
  for (const char* name :
       {"src/one.cc", "src/deep/two.cc", "src/\xff.py", "out/three.cc", "src/.hidden.cc"})
    site.folder.write(name, "x");
  site.folder.write(".gitignore", "out\n");
  fs::last_write_time(site.folder / "src/one.cc", fs::file_time_type::clock::now());
  fs::last_write_time(site.folder / "src/deep/two.cc",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));

  const Found all = co_await search(site, wire::GlobArgs{.place = at(".")});
  EXPECT_EQ(all.target, site.folder.path());
  EXPECT_THAT(all.paths(), UnorderedElementsAre("src/one.cc", "src/deep/two.cc", "src/\xff.py"));
  EXPECT_EQ(all.summary, (wire::SearchSummary{.found = 3, .files = 3}));
  const wire::FileSelection sources{
      .types = {"cpp"}, .hidden = true, .ignore_files = false, .order = wire::SearchOrder::kPath};
  const Found sorted = co_await search(site, wire::GlobArgs{at("."), sources});
  EXPECT_THAT(sorted.paths(),
              ElementsAre("out/three.cc", "src/.hidden.cc", "src/deep/two.cc", "src/one.cc"));
  const wire::FileSelection some{.globs = {"*.cc", "!three.cc", "!.*"},
                                 .order = wire::SearchOrder::kModified};
  const Found by_age = co_await search(site, wire::GlobArgs{at("src"), some});
  EXPECT_THAT(by_age.paths(), ElementsAre("deep/two.cc", "one.cc"));
  const Found none = co_await search(site, wire::GlobArgs{at("."), {.globs = {"*.rs"}}});
  EXPECT_THAT(none.paths(), IsEmpty());
  EXPECT_EQ(none.summary, wire::SearchSummary{});
}
TEST(SearchService, FindsFilesByTheirNames) { tell(look_for_names); }

aio::Task<> look_for_lines(Site& site) {
  fs::create_directory(site.folder / "src");
  site.folder.write("src/a", "zero\none Needle\ntwo\nthree needles, needle\n");
  site.folder.write("src/b", "a needle and \xff\n");
  const wire::FileSelection by_path{.order = wire::SearchOrder::kPath};

  const Found plain = co_await search(
      site, wire::GrepArgs{.place = at("src"), .pattern = "needle", .files = by_path});
  EXPECT_EQ(
      plain.lines,
      (std::vector<wire::SearchLine>{
          {.path = "a",
           .line = 4,
           .offset = 20,
           .text = "three needles, needle",
           .spans = {{6, 12}, {15, 21}}},
          {.path = "b", .line = 1, .offset = 0, .text = "a needle and \xff", .spans = {{2, 8}}}}));
  EXPECT_EQ(plain.summary, (wire::SearchSummary{.found = 2, .files = 2}));

  const Found around =
      co_await search(site, wire::GrepArgs{.place = at("src/a"),
                                           .pattern = "needle",
                                           .word = true,
                                           .case_mode = wire::CaseMode::kInsensitive,
                                           .before = 1,
                                           .files = by_path});
  EXPECT_EQ(around.target, site.folder / "src") << "of a file, its folder";
  EXPECT_THAT(around.paths(), ElementsAre("a", "a", "a", "a"));
  EXPECT_THAT(around.texts(), ElementsAre("zero", "one Needle", "two", "three needles, needle"));
  EXPECT_TRUE(around.lines.at(0).context && !around.lines.at(1).context);
  EXPECT_EQ(around.summary.found, 2) << "what stands around does not count";

  const Found over_lines = co_await search(
      site, wire::GrepArgs{.place = at("src/a"), .pattern = "zero\\none", .multiline = true});
  EXPECT_THAT(over_lines.texts(), ElementsAre("zero\none Needle"));
  const Found literal = co_await search(
      site, wire::GrepArgs{.place = at("src"), .pattern = "n..dle", .literal = true});
  EXPECT_THAT(literal.lines, IsEmpty());
}
TEST(SearchService, FindsLines) { tell(look_for_lines); }

aio::Task<> ask_in_vain(Site& site) {
  site.folder.write("a", "x\n");
  const auto refused = [&](wire::GrepArgs args) { return search(site, std::move(args)); };
  const Found nowhere = co_await refused({.place = at("none"), .pattern = "x"});
  EXPECT_EQ(nowhere.failure->code, FailureCode::kFsNotFound);
  const Found broken = co_await refused({.place = at("."), .pattern = "(x"});
  EXPECT_EQ(broken.failure->code, FailureCode::kInvalid);
  EXPECT_THAT(broken.failure->message, HasSubstr("unclosed group"));
  const Found no_type =
      co_await refused({.place = at("."), .pattern = "x", .files = {.types = {"klingon"}}});
  EXPECT_EQ(no_type.failure->code, FailureCode::kInvalid);
  const Found device = co_await refused({.place = at("/dev/null"), .pattern = "x"});
  EXPECT_EQ(device.failure->code, FailureCode::kFsNotRegularFile);
  // The kernel maps nothing at the first byte of a process.
  const Found unreadable = co_await refused({.place = at("/proc/self/mem"), .pattern = "x"});
  EXPECT_FALSE(unreadable.failure);
  EXPECT_EQ(unreadable.summary.troubles, 1);
  EXPECT_THAT(unreadable.summary.told, ElementsAre(HasSubstr("os error")));
  // Of a long one the first 340 bytes, here up to the middle of a character.
  std::string long_glob = "*.{a";
  for (int i = 0; i < 200; ++i) long_glob += "é";
  fs::create_directory(site.folder / "badly");
  site.folder.write("badly/.ignore", long_glob + "\n");
  site.folder.write("badly/b", "x\n");
  const Found badly = co_await refused({.place = at("badly"), .pattern = "x"});
  EXPECT_EQ(badly.summary.troubles, 1);
  EXPECT_THAT(badly.summary.told, ElementsAre(EndsWith("éé\uFFFD")));
}
TEST(SearchService, SaysWhatCannotBeSearched) { tell(ask_in_vain); }

aio::Task<> stay_an_argument(Site& site) {
  site.folder.write("a", "--pre=touch\n");
  const Found found = co_await search(
      site, wire::GrepArgs{
                .place = at("."), .pattern = "--pre=touch", .files = {.globs = {"!--pre=touch"}}});
  EXPECT_THAT(found.texts(), ElementsAre("--pre=touch"));
}
TEST(SearchService, TakesNoPatternForAFlag) { tell(stay_an_argument); }

std::string numbered_lines(std::size_t count, std::size_t padding = 0) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += std::string(padding, ' ') + "line " + std::to_string(i) + "\n";
  return text;
}

aio::Task<> keep_to_limits(Site& site) {
  site.folder.write("many", numbered_lines(5'000));
  site.folder.write("long", "x" + std::string(3'000'000, 'y') + "\n");
  const Found some = co_await search(
      site, wire::GrepArgs{.place = at("many"), .pattern = "line", .found_max = 10});
  EXPECT_EQ(some.lines.size(), 10u);
  EXPECT_EQ(some.summary, (wire::SearchSummary{.found = 10, .files = 1, .limit = "found"}));
  const Found exact = co_await search(
      site, wire::GrepArgs{.place = at("many"), .pattern = "line 499.$", .found_max = 10});
  EXPECT_EQ(exact.summary, (wire::SearchSummary{.found = 10, .files = 1})) << "there are no more";
  const Found little = co_await search(site, wire::GrepArgs{.place = at("many"),
                                                            .pattern = "line",
                                                            .found_max = wire::kFoundMax,
                                                            .bytes_max = 5'000});
  EXPECT_EQ(little.summary.limit, "bytes");
  EXPECT_LE(little.bytes, 5'000u + 200u) << "but for the summary";
  const Found cut = co_await search(site, wire::GrepArgs{.place = at("long"), .pattern = "^x"});
  EXPECT_EQ(cut.lines,
            (std::vector<wire::SearchLine>{{.path = "long", .line = 1, .text = "", .cut = true}}));
}
TEST(SearchService, EndsWhereItsLimitsAre) { tell(keep_to_limits); }

// Searches that nobody reads from are held back, and still at work.
std::vector<std::uint32_t> begin_many(Site& site, std::size_t count) {
  std::vector<std::uint32_t> ids;
  ids.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    ids.push_back(site.client.begin(
        wire::GrepArgs{.place = at("many"), .pattern = "line", .found_max = wire::kFoundMax},
        {.download = true}));
  return ids;
}

aio::Task<> bound_what_runs(Site& site) {
  site.folder.write("many", numbered_lines(4'000, 1'000));
  const auto ids = begin_many(site, Searches::kAtOnceMax);
  for (const std::uint32_t id : ids) {
    const Answer answer = co_await Client::answer(site.client, id);
    EXPECT_TRUE(answer.ok);
  }
  const wire::GlobArgs one{.place = at(".")};
  const Found refused = co_await search(site, one);
  EXPECT_TRUE(refused.failure && refused.failure->code == FailureCode::kBusy);
  for (const std::uint32_t id : ids) site.client.session.stop(id);
  site.client.said.notify_all();
  // There is room only when it is proven that nothing is left of one.
  Found found = co_await search(site, one);
  while (found.failure) {
    EXPECT_EQ(found.failure->code, FailureCode::kBusy);
    found = co_await search(site, one);
  }
  EXPECT_THAT(found.paths(), ElementsAre("many"));
}
TEST(SearchService, RunsAFewAtOnceAndEndsThoseThatNobodyReads) { tell(bound_what_runs); }

aio::Task<> carry_over_cuts(Site& site) {
  site.folder.write("many", numbered_lines(3'000, 1'000));
  site.client.cut = testing::after_each(300'000);
  const Found found = co_await search(
      site, wire::GrepArgs{.place = at("many"), .pattern = "line", .found_max = wire::kFoundMax});
  EXPECT_EQ(found.summary, (wire::SearchSummary{.found = 3'000, .files = 1}));
  EXPECT_EQ(found.texts().back(), std::string(1'000, ' ') + "line 2999");
  EXPECT_GT(site.client.cuts, 3);
}
TEST(SearchService, GoesOnOverCuts) { tell(carry_over_cuts); }

}  // namespace
}  // namespace executor
