#include "local_e2b/control/local_box_host.h"

#include "libs/aio/http_client.h"
#include "libs/aio/loop.h"
#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace local_e2b {
namespace {

constexpr base::Milliseconds kEnvdStart{30'000};
constexpr base::Milliseconds kEnvdReply{10'000};
constexpr base::Milliseconds kDialTime{5'000};
constexpr base::Milliseconds kLook{2};  // Between two looks at an envd that starts.

template <typename T>
base::Result<T> wrap(T value) {
  return base::Result<T>(std::move(value));
}

aio::HttpRequest init_request(const EnvdInit& init, base::WallTime now) {
  base::Json body = {{"accessToken", init.access_token},
                     {"defaultUser", "user"},
                     {"timestamp", base::to_rfc3339(now)}};
  if (init.set_env) body["envVars"] = init.env;
  return {.method = "POST",
          .target = "/init",
          .fields = {{"Content-Type", "application/json"}, {"X-Access-Token", init.access_token}},
          .body = base::to_text(body)};
}

}  // namespace

aio::Task<base::Result<BoxRecord>> LocalBoxHost::create(BoxSpec spec) {
  co_return co_await background_.run([this, spec] { return boxes_.create(spec); });
}
std::optional<std::string> LocalBoxHost::objection_to_freeze(const BoxRecord* box) const {
  return boxes_.objection_to_freeze(box);
}
aio::Task<base::Result<base::Done>> LocalBoxHost::freeze(BoxRecord box) {
  co_return co_await background_.run([this, box] { return boxes_.freeze(box); });
}
aio::Task<base::Result<base::Done>> LocalBoxHost::thaw(BoxRecord box) {
  co_return co_await background_.run([this, box] { return boxes_.thaw(box); });
}
aio::Task<base::Result<base::Done>> LocalBoxHost::destroy(BoxRecord box) {
  co_return co_await background_.run([this, box] { return boxes_.destroy(box); });
}

aio::Task<bool> LocalBoxHost::frozen(BoxRecord box) {
  const auto frozen = co_await background_.run([this, box] { return wrap(boxes_.frozen(box)); });
  co_return frozen.ok() && *frozen;
}

aio::Task<std::vector<std::string>> LocalBoxHost::dead_of(std::vector<BoxRecord> boxes) {
  auto dead = co_await background_.run([this, boxes = std::move(boxes)] {
    std::vector<std::string> ids;
    for (const auto& box : boxes)
      if (boxes_.dead(box)) ids.push_back(box.id);
    return wrap(std::move(ids));
  });
  if (!dead) co_return std::vector<std::string>();  // Not now: asked again soon.
  co_return *std::move(dead);
}

aio::Task<> LocalBoxHost::trim_logs(std::vector<BoxRecord> boxes) {
  (void)co_await background_.run([this, boxes = std::move(boxes)] {
    for (const auto& box : boxes) (void)boxes_.trim_log(box);  // Tried again at the next look.
    return wrap(base::Done{});
  });
}

aio::Task<std::vector<std::string>> LocalBoxHost::destroy_orphans() {
  auto destroyed = co_await background_.run([this] { return wrap(boxes_.destroy_orphans()); });
  if (!destroyed) co_return std::vector<std::string>();
  co_return *std::move(destroyed);
}

aio::Task<Swept> LocalBoxHost::destroy_unknown(std::vector<BoxRecord> known) {
  auto swept = co_await background_.run(
      [this, known = std::move(known)] { return wrap(boxes_.destroy_unknown(known)); });
  if (!swept) co_return Swept();
  co_return *std::move(swept);
}

aio::Task<base::Result<std::shared_ptr<aio::Stream>>> LocalBoxHost::dial(BoxRecord box, int port) {
  // A quarter of a millisecond: less than the way to a background thread that may be busy.
  CO_TRY(base::Fd socket, boxes_.socket_inside(box));
  co_return co_await aio::connect(std::move(socket), "127.0.0.1", port, kDialTime);
}

aio::Task<base::Result<base::Done>> LocalBoxHost::wait_for_envd(BoxRecord box) {
  std::string last = "nothing yet";
  const auto deadline = clock_.now() + kEnvdStart;
  while (clock_.now() < deadline) {
    auto stream = co_await dial(box, kEnvdPort);
    if (stream) {
      aio::HttpRequest health{.target = "/health"};
      const auto reply = co_await aio::exchange(*stream, std::move(health), kEnvdReply);
      if (reply && reply->status / 100 == 2) co_return base::Done{};
      last = reply ? "status " + std::to_string(reply->status) : reply.error().message;
    } else {
      last = stream.error().message;
      if (boxes_.dead(box))
        co_return base::error(base::ErrorCode::kUnavailable,
                              "the box's init ended before envd answered; see ",
                              (box.folder / "envd.log").string());
    }
    co_await aio::sleep_for(kLook);
  }
  co_return base::error(base::ErrorCode::kUnavailable, "envd did not answer in the box: ", last);
}

aio::Task<base::Result<std::string>> LocalBoxHost::init(BoxRecord box, EnvdInit init) {
  CO_CHECK_OK(co_await wait_for_envd(box));
  CO_TRY(auto stream, co_await dial(box, kEnvdPort));
  CO_TRY(const auto reply,
         co_await aio::exchange(stream, init_request(init, clock_.wall()), kEnvdReply));
  if (reply.status / 100 != 2)
    co_return base::error(base::ErrorCode::kUnavailable, "envd refused /init with status ",
                          std::to_string(reply.status), ": ", reply.body);
  for (const auto& [name, value] : reply.fields)
    if (base::equal_ignoring_case(name, "X-Envd-Version")) co_return value;
  co_return base::error(base::ErrorCode::kUnavailable, "envd did not tell its version");
}

}  // namespace local_e2b
