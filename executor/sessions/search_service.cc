#include "executor/sessions/search_service.h"

#include <algorithm>
#include <utility>

#include "executor/filesystem/walk.h"
#include "executor/search/query.h"
#include "executor/search/records.h"
#include "executor/sessions/file_answers.h"
#include "executor/sessions/process_words.h"
#include "executor/sessions/serving.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "libs/wire/frames/search_operations.h"

namespace executor {
namespace {

using CallPointer = std::shared_ptr<Call>;
using wire::FailureCode;

// Where an image may have the program, beside this one.
constexpr const char* kBakedIn = "/opt/sandfleet/bin";
constexpr std::size_t kToldMax = 20, kToldBytesMax = 340;  // Each byte may become three.

struct Site {
  Filesystem& files;
  aio::Background& background;
  Searches& searches;
  ToolPlace& ripgrep;
  CallPointer call;
  std::string cwd;
};

wire::Failure tool_missing(const Tool& tool) {
  wire::Failure failure = wire::failure(FailureCode::kToolMissing,
                                        "searching takes the program " + std::string(tool.name) +
                                            ", which was not sent yet: send it by tool.put");
  failure.detail = base::Json{{"name", tool.name}, {"sha256", tool.sha256}, {"bytes", tool.bytes}};
  return failure;
}

using Found = base::Result<std::optional<std::string>>;

// Where the program is, if it is. Fails while there is too much to do to look for it.
aio::Task<Found> find(Site site) {
  return site.background.run([&place = site.ripgrep] { return Found(place.find()); });
}

wire::Failure busy(const base::Error& error) {
  return wire::failure(FailureCode::kBusy, error.message);
}

wire::Failure failure_to_put(const base::Error& error) {
  const bool wrong = error.code == base::ErrorCode::kInvalid;
  return wire::failure(wrong ? FailureCode::kInvalid : FailureCode::kFsIoError, error.message);
}

// What is searched, and from where.
struct Where {
  std::string folder, told;  // "./", or "./name" of a file.
};

aio::Task<FsResult<Where>> locate(Site site, wire::Place place) {
  const FileAddress address = address_of(place, site.cwd);
  CO_TRY(const Target target, co_await site.files.resolve(address));
  CO_TRY(const auto info, co_await site.files.stat(FileAddress::of_target(target.key)));
  if (!info) co_return fs_error(FsCode::kNotFound, "nothing is at ", target.key);
  if (info->kind == EntryKind::kFolder) co_return Where{target.key, "./"};
  if (info->kind != EntryKind::kFile)
    co_return fs_error(FsCode::kNotRegularFile, target.key, " is no file and no folder");
  auto [folder, name] = parent_and_name(target.key);
  co_return Where{std::move(folder), "./" + name};
}

// The lines of one search, as far as they may go.
class Lines {
 public:
  Lines(std::int64_t found_max, std::int64_t bytes_max)
      : found_max_(found_max), bytes_max_(bytes_max) {}

  // False: it is over.
  bool add(const wire::SearchLine& line) {
    const std::string text = base::to_text(wire::to_json(line)) + "\n";
    const bool counts = !line.context;
    if (counts && summary_.found == found_max_) summary_.limit = "found";
    if (bytes_ + static_cast<std::int64_t>(text.size()) > bytes_max_) summary_.limit = "bytes";
    if (summary_.limit) return false;
    if (counts && line.path != path_) ++summary_.files;
    if (counts) path_ = line.path;
    if (counts) ++summary_.found;
    bytes_ += static_cast<std::int64_t>(text.size());
    text_ += text;
    return true;
  }
  std::string take() { return std::exchange(text_, {}); }
  bool over() const { return summary_.limit.has_value(); }
  bool any() const { return bytes_ > 0; }
  std::string end(const std::string& errors) {
    for (const std::string& error : base::split(errors, '\n')) {
      if (error.empty()) continue;
      ++summary_.troubles;
      if (summary_.told.size() < kToldMax) summary_.told.push_back(error.substr(0, kToldBytesMax));
    }
    return base::to_text(wire::to_json(wire::SearchLine{.summary = summary_})) + "\n";
  }

 private:
  const std::int64_t found_max_, bytes_max_;
  wire::SearchSummary summary_;
  std::int64_t bytes_ = 0;
  std::optional<std::string> path_;  // Of the last line that counts.
  std::string text_;
};

// How the program's output becomes lines.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual void read(std::string_view bytes, Lines& lines) = 0;
};

class PathReader final : public Reader {
 public:
  void read(std::string_view bytes, Lines& lines) override {
    for (const Record& record : records_.add(bytes))
      if (!record.cut && !lines.add({.path = path_of(record.bytes)})) return;
  }

 private:
  Records records_{'\0'};
};

class GrepReader final : public Reader {
 public:
  explicit GrepReader(std::size_t line_bytes_max) : grep_(line_bytes_max) {}
  void read(std::string_view bytes, Lines& lines) override {
    for (const Record& record : records_.add(bytes)) {
      const auto line = grep_.read(record);
      if (line && !lines.add(*line)) return;
    }
  }

 private:
  Records records_{'\n'};
  GrepRecords grep_;
};

struct Query {
  std::vector<std::string> argv;
  Where where;
  std::unique_ptr<Reader> reader;
  Lines lines;
};

// Exit code 2 without a line, and not because of a file: the request itself is at fault.
bool is_refused(const SearchRun::End& end, const Lines& lines) {
  return end.exit.code == 2 && !lines.any() && end.errors.find("os error") == std::string::npos;
}

aio::Task<> hand_on(CallPointer call, std::shared_ptr<SearchRun> run, Query& query) {
  bool replied = false;
  for (;;) {
    auto bytes = co_await run->next();
    if (!bytes && !replied) co_return call->fail(failure_of(bytes.error()));
    if (!bytes) co_return call->end(failure_of(bytes.error()));
    if (bytes->empty()) break;
    query.reader->read(*bytes, query.lines);
    if (std::string text = query.lines.take(); !text.empty()) {
      if (!std::exchange(replied, true)) call->reply(wire::SearchOk{query.where.folder});
      if (!co_await call->append(std::move(text))) co_return;
    }
    if (query.lines.over()) break;
  }
  std::string errors;
  if (!query.lines.over()) {
    const auto end = co_await run->end();
    if (end && is_refused(*end, query.lines))
      co_return call->fail(wire::failure(FailureCode::kInvalid, end->errors));
    if (end) errors = end->errors;
  }
  if (!replied) call->reply(wire::SearchOk{query.where.folder});
  if (co_await call->append(query.lines.end(errors))) call->end();
}

aio::Task<> search(Site site, Query query) {
  Call& call = *site.call;
  const auto run = co_await site.searches.begin(std::move(query.argv), query.where.folder);
  if (!run) co_return call.fail(failure_of(run.error()));
  co_await aio::race(hand_on(site.call, *run, query), call.until_unwanted());
  const auto stopped = co_await (*run)->stop();
  if (!stopped)
    base::log::warn("a search could not be ended", {{"error", stopped.error().message}});
}

template <typename Args>
aio::Task<> serve_search(Site site, Args args, std::unique_ptr<Reader> reader) {
  const auto where = co_await locate(site, args.place);
  if (!where) co_return site.call->fail(failure_of(where.error()));
  const auto program = co_await find(site);
  if (!program) co_return site.call->fail(busy(program.error()));
  if (!*program) co_return site.call->fail(tool_missing(site.ripgrep.tool()));
  std::vector<std::string> argv = arguments_of(args, where->told);
  argv.insert(argv.begin(), **program);
  Query query{std::move(argv), *where, std::move(reader), Lines(args.found_max, args.bytes_max)};
  co_await search(site, std::move(query));
}

aio::Task<> run(Site site, wire::GlobArgs args) {
  return serve_search(std::move(site), std::move(args), std::make_unique<PathReader>());
}

aio::Task<> run(Site site, wire::GrepArgs args) {
  auto reader = std::make_unique<GrepReader>(static_cast<std::size_t>(args.line_bytes_max));
  return serve_search(std::move(site), std::move(args), std::move(reader));
}

wire::Failure no_such_tool(const std::string& name) {
  return wire::failure(FailureCode::kNotFound, "no tool is called " + name);
}

aio::Task<> run(Site site, wire::FindToolArgs args) {
  const Tool& tool = site.ripgrep.tool();
  if (args.name != tool.name) co_return site.call->fail(no_such_tool(args.name));
  const auto path = co_await find(site);
  if (!path) co_return site.call->fail(busy(path.error()));
  site.call->reply(wire::FindToolArgs::Ok{std::string(tool.sha256), tool.bytes, *path});
}

aio::Task<> run(Site site, wire::PutToolArgs args) {
  Call& call = *site.call;
  const Tool& tool = site.ripgrep.tool();
  if (args.name != tool.name) co_return call.fail(no_such_tool(args.name));
  if (args.sha256 != tool.sha256)
    co_return call.fail(
        wire::failure(FailureCode::kInvalid,
                      "this executor works with the one of SHA-256 " + std::string(tool.sha256)));
  auto begin = [&place = site.ripgrep] { return place.receive(); };
  const auto delivery = co_await site.background.run(std::move(begin));
  if (!delivery) co_return call.fail(failure_to_put(delivery.error()));
  for (bool ended = false; !ended;) {
    const auto piece = co_await call.take();
    if (!piece)
      co_return call.fail(wire::failure(FailureCode::kCancelled, "given up before it was whole"));
    ended = piece->end;
    auto add = [&] { return (*delivery)->add(piece->bytes); };
    const auto added = co_await site.background.run(std::move(add));
    if (!added) co_return call.fail(failure_to_put(added.error()));
  }
  auto commit = [&] { return (*delivery)->commit(); };
  const auto path = co_await site.background.run(std::move(commit));
  if (!path) co_return call.fail(failure_to_put(path.error()));
  call.reply(wire::PutToolArgs::Ok{*path});
}

}  // namespace

SearchService::SearchService(Filesystem& files, SubprocessSite programs, std::string tools,
                             std::string cwd)
    : files_(files),
      background_(programs.background),
      searches_(std::move(programs)),
      ripgrep_(ripgrep(), std::move(tools), {kBakedIn}),
      cwd_(std::move(cwd)) {}

std::optional<aio::Task<>> SearchService::serve(const std::shared_ptr<Call>& call) {
  Site site{files_, background_, searches_, ripgrep_, call, cwd_};
  return serve_one_of<wire::GlobArgs, wire::GrepArgs, wire::FindToolArgs, wire::PutToolArgs>(
      std::move(site));
}

}  // namespace executor
