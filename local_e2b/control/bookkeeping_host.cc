#include "local_e2b/control/bookkeeping_host.h"

namespace local_e2b {
namespace {

constexpr base::Milliseconds kDialTime{5'000};

}  // namespace

aio::Task<base::Result<BoxRecord>> BookkeepingHost::create(BoxSpec spec) {
  if (inside_.has_ended())
    co_return base::error(base::ErrorCode::kUnavailable,
                          "the executor that all sandboxes share has ended");
  co_return BoxRecord{.id = std::move(spec.id), .init_pid = inside_.pid};
}

std::optional<std::string> BookkeepingHost::objection_to_freeze(const BoxRecord*) const {
  return std::nullopt;
}

aio::Task<base::Result<base::Done>> BookkeepingHost::freeze(BoxRecord box) {
  frozen_.insert(box.id);
  co_return base::Done{};
}

aio::Task<base::Result<base::Done>> BookkeepingHost::thaw(BoxRecord box) {
  frozen_.erase(box.id);
  co_return base::Done{};
}

aio::Task<base::Result<base::Done>> BookkeepingHost::destroy(BoxRecord box) {
  frozen_.erase(box.id);
  co_return base::Done{};
}

aio::Task<bool> BookkeepingHost::frozen(BoxRecord box) { co_return frozen_.contains(box.id); }

aio::Task<std::vector<std::string>> BookkeepingHost::dead_of(std::vector<BoxRecord> boxes) {
  std::vector<std::string> dead;
  if (inside_.has_ended())
    for (auto& box : boxes) dead.push_back(std::move(box.id));
  co_return dead;
}

aio::Task<> BookkeepingHost::trim_logs(std::vector<BoxRecord>) { co_return; }

aio::Task<std::vector<std::string>> BookkeepingHost::destroy_orphans() {
  co_return std::vector<std::string>();
}

aio::Task<Swept> BookkeepingHost::destroy_unknown(std::vector<BoxRecord>) { co_return Swept(); }

aio::Task<base::Result<std::string>> BookkeepingHost::init(BoxRecord, EnvdInit) {
  co_return inside_.envd_version;
}

aio::Task<base::Result<std::shared_ptr<aio::Stream>>> BookkeepingHost::dial(BoxRecord, int port) {
  const auto found = inside_.ports.find(port);
  if (found == inside_.ports.end())
    co_return base::error(base::ErrorCode::kUnavailable, "nothing listens on the port inside");
  co_return co_await aio::connect("127.0.0.1", found->second, kDialTime);
}

}  // namespace local_e2b
