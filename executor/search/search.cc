#include "executor/search/search.h"

#include <utility>

#include "libs/base/crypto.h"

namespace executor {
namespace {

constexpr std::int64_t kErrorBytesMax = 64 << 10;
constexpr std::size_t kPieceBytes = 64u << 10;
constexpr std::size_t kIdBytes = 16;

// It reads what the sandbox's user may read, and can change nothing: every mode allows that.
Caller ourselves() { return {"search", {PermissionMode::kDangerFullAccess, {}}}; }

SubprocessSite bounded(SubprocessSite site) {
  site.limits.running_max = Searches::kAtOnceMax;
  return site;
}

}  // namespace

Searches::Searches(SubprocessSite site) : programs_(bounded(std::move(site))) {}

aio::Task<ProcessResult<std::shared_ptr<SearchRun>>> Searches::begin(std::vector<std::string> argv,
                                                                     std::string folder) {
  SpawnRequest request{.id = base::random_hex(kIdBytes),
                       .argv = std::move(argv),
                       .cwd = std::move(folder),
                       .stdout_mode = Piped{},
                       .stderr_mode = Collect{.bytes_max = kErrorBytesMax},
                       .grace_ms = 1};
  CO_TRY(auto process, co_await programs_.spawn(ourselves(), std::move(request)));
  co_return std::make_shared<SearchRun>(programs_, std::move(process));
}

aio::Task<ProcessResult<std::string>> SearchRun::next() {
  const auto& out = process_->out();
  co_await out->wait_for(at_);
  CO_TRY(Piece piece, out->read(at_, kPieceBytes));
  at_ = piece.next;
  CO_CHECK_OK(out->acknowledge(at_));
  co_return std::move(piece.bytes);
}

aio::Task<ProcessResult<SearchRun::End>> SearchRun::end() {
  CO_CHECK_OK(co_await process_->until(Milestone::kSettled));
  CO_TRY(Piece errors, process_->errors()->read(0, kErrorBytesMax));
  co_return End{process_->state().exit.value_or(Exit{}), std::move(errors.bytes)};
}

aio::Task<ProcessResult<base::Done>> SearchRun::stop() {
  process_->terminate(base::Milliseconds(1));
  CO_CHECK_OK(co_await process_->until(Milestone::kEmpty));
  co_return programs_.release(ourselves(), process_->request().id);
}

}  // namespace executor
