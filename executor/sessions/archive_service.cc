#include "executor/sessions/archive_service.h"

#include <boost/asio/this_coro.hpp>
#include <utility>

#include "executor/sessions/file_answers.h"
#include "executor/sessions/serving.h"
#include "libs/wire/frames/archive_operations.h"

namespace executor {
namespace {

using CallPointer = std::shared_ptr<Call>;

constexpr std::size_t kReplyBytesMax = 64u << 10;

struct Site {
  Filesystem& files;
  Archives& archives;
  CallPointer call;
  Permission permission;
  std::string cwd;
};

wire::ArchiveReport report_of(const archives::Report& report) {
  wire::ArchiveReport told{.entries = static_cast<std::int64_t>(report.entries),
                           .files = static_cast<std::int64_t>(report.files),
                           .bytes = static_cast<std::int64_t>(report.bytes),
                           .remarks = static_cast<std::int64_t>(report.remarks)};
  for (const archives::Remarked& one : report.told)
    told.told.push_back({one.path, std::string(archives::to_word(one.remark))});
  return told;
}

wire::Failure failure_of(const ArchiveError& error) {
  wire::Failure failure = error.unfit ? wire::failure(wire::FailureCode::kInvalid, error.message)
                                      : failure_of(static_cast<const FsError&>(error));
  if (error.report.entries > 0)
    failure.detail = base::Json{{"report", wire::to_json(report_of(error.report))}};
  return failure;
}

wire::Failure too_many() {
  return wire::failure(
      wire::FailureCode::kBusy,
      "there are already " + std::to_string(Archives::kAtOnceMax) + " archives at work; try again");
}

// To the pipe's end, or until nobody wants it any more. The first piece comes before the reply, so
// that a folder which cannot be read fails.
aio::Task<> hand_on(CallPointer call, std::shared_ptr<Pipe> pipe, std::string target,
                    bool& replied) {
  for (;;) {
    auto bytes = co_await pipe->take();
    if (!bytes || bytes->empty()) co_return;
    if (!std::exchange(replied, true)) call->reply(wire::CreateArchiveArgs::Ok{target});
    if (!co_await call->append(*std::move(bytes))) co_return pipe->break_off();
  }
}

aio::Task<> run(Site site, wire::CreateArchiveArgs args) {
  Call& call = *site.call;
  const auto target = co_await site.files.resolve(address_of(args.place, site.cwd));
  if (!target) co_return call.fail(failure_of(target.error()));
  const auto pipe = site.archives.join();
  if (!pipe) co_return call.fail(too_many());
  const std::stop_callback given_up(call.stop(), [pipe] { pipe->break_off(); });
  const auto tell = [](const archives::Report& report) {
    return base::to_text(wire::to_json(report_of(report)));
  };
  std::optional<ArchiveResult<archives::Report>> report;
  bool replied = false;
  co_await aio::both(aio::keep_result(site.archives.create(
                                          pipe, target->key,
                                          {std::move(args.excludes), static_cast<int>(args.level)},
                                          tell, call.stop()),
                                      report),
                     hand_on(site.call, pipe, target->key, replied));
  if (*report) co_return call.end();
  const wire::Failure failure = failure_of(report->error());
  if (replied)
    call.end(failure);
  else
    call.fail(failure);
}

// Never returns: whoever reads from the pipe knows when there is no more to be had.
aio::Task<> feed(CallPointer call, std::shared_ptr<Pipe> pipe, aio::Condition& never) {
  for (;;) {
    auto piece = co_await call->take();
    if (!piece) pipe->break_off();
    if (!piece || !co_await pipe->give(std::move(piece->bytes))) break;
    if (!piece->end) continue;
    pipe->end();
    break;
  }
  for (;;) co_await never.wait();
}

aio::Task<> run(Site site, wire::ExtractArchiveArgs args) {
  Call& call = *site.call;
  if (!call.reserve(kReplyBytesMax)) co_return;
  const auto target = co_await site.files.resolve(address_of(args.place, site.cwd));
  if (!target) co_return call.fail(failure_of(target.error()));
  const auto pipe = site.archives.join();
  if (!pipe) co_return call.fail(too_many());
  const std::stop_callback given_up(call.stop(), [pipe] { pipe->break_off(); });
  ExtractRequest request{.permission = site.permission,
                         .excludes = std::move(args.excludes),
                         .replace = args.replace,
                         .set_ids = args.set_ids,
                         .durable = args.durable,
                         .bytes_max = static_cast<std::uint64_t>(args.bytes_max)};
  std::optional<ArchiveResult<Extracted>> extracted;
  aio::Condition never(co_await boost::asio::this_coro::executor);
  co_await aio::race(
      aio::keep_result(site.archives.extract(pipe, target->key, std::move(request), call.stop()),
                       extracted),
      feed(site.call, pipe, never));
  if (!*extracted) co_return call.fail(failure_of(extracted->error()));
  call.reply(wire::ExtractArchiveArgs::Ok{(*extracted)->created, target->key,
                                          report_of((*extracted)->report)});
}

}  // namespace

std::optional<aio::Task<>> ArchiveService::serve(const std::shared_ptr<Call>& call,
                                                 Permission permission) {
  Site site{files_, archives_, call, std::move(permission), cwd_};
  return serve_one_of<wire::CreateArchiveArgs, wire::ExtractArchiveArgs>(std::move(site));
}

}  // namespace executor
