#include "executor/admin/admin.h"

#include "libs/aio/loop.h"
#include "libs/base/crypto.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "libs/base/version.h"
#include "libs/wire/expiry.h"
#include "libs/wire/proof.h"
#include "libs/wire/token.h"

namespace executor {
namespace {

constexpr std::size_t kBodyBytesMax = 64u << 10;
constexpr std::string_view kBearer = "bearer ";

base::Json error_body(std::string_view why) { return {{"error", why}}; }

}  // namespace

std::optional<std::string> bearer_token(const aio::HttpHead& head) {
  const std::string header = head.field("Authorization").value_or("");
  if (base::lower(header.substr(0, kBearer.size())) != kBearer) return std::nullopt;
  return std::string(base::trim(header.substr(kBearer.size())));
}

Admin::Admin(wire::StartSecrets secrets, std::optional<Marker> marker, const base::Clock& clock,
             std::vector<CpuMeter> meters)
    : secrets_(std::move(secrets)),
      marker_(std::move(marker)),
      clock_(clock),
      time_(clock),
      activity_(clock.now(), std::move(meters)) {
  health_.instance = base::random_hex(16);
  health_.version = std::string(base::kVersion);
  health_.identity = {secrets_.uid, secrets_.epoch, 0, 0};
  adopt_marker();
}

void Admin::adopt_marker() {
  if (!marker_) return;
  const auto last = marker_->read();
  if (!last) {
    base::log::warn("the marker cannot be read; starting without it", {{"error", last.error()}});
    return;
  }
  if (!*last) return;
  const wire::Identity& found = **last;
  if (found.uid == secrets_.uid && found.epoch == secrets_.epoch) {
    health_.identity = found;
  } else {
    base::log::info("the marker is another world's; starting without it",
                    {{"uid", found.uid}, {"epoch", found.epoch}});
  }
}

std::optional<Admin::Refusal> Admin::refusal_of(const aio::HttpHead& head) {
  const auto token = bearer_token(head);
  if (!token) return Refusal{error_body("an admin token is needed")};
  const auto claims = wire::verify_signed(*token, wire::TokenKind::kAdmin, secrets_.admin_key);
  if (!claims) return Refusal{error_body(claims.error().message)};
  // The key is this world's alone; a token that says otherwise was made by mistake.
  if (claims->uid != secrets_.uid || claims->epoch != secrets_.epoch)
    return Refusal{error_body("token refused: it is for another executor")};
  const base::WallTime now = time_.now();
  if (wire::has_expired(*claims, now)) return Refusal{wire::expired_body(now), true};
  time_.learn(claims->issued);
  return std::nullopt;
}

aio::Task<> Admin::serve(std::shared_ptr<aio::HttpExchange> exchange) {
  const aio::HttpHead& head = exchange->head();
  Answer answered;
  aio::HttpFields fields = {{"Content-Type", "application/json"}};
  const auto refusal = refusal_of(head);
  if (refusal && !refusal->of_our_own) {
    answered = {401, refusal->body};
  } else if (const auto body = co_await exchange->read_all(kBodyBytesMax); !body) {
    answered = {400, error_body(body.error().message)};
  } else {
    answered = refusal ? Answer{401, refusal->body} : answer(head.method, head.path(), *body);
    if (refusal || answered.status == 200)
      if (auto proof = prove(head, *body, base::to_text(answered.body)))
        fields.emplace_back(wire::kProofField, *std::move(proof));
  }
  aio::HttpReply reply{answered.status, std::move(fields), base::to_text(answered.body)};
  static_cast<void>(co_await exchange->reply(std::move(reply)));
}

std::optional<std::string> Admin::prove(const aio::HttpHead& head, const std::string& body,
                                        const std::string& answer) const {
  auto nonce = head.field(wire::kNonceField);
  if (!nonce) return std::nullopt;
  return wire::prove(secrets_.admin_key, {*std::move(nonce), head.method, head.path(), body},
                     answer);
}

Admin::Answer Admin::answer(const std::string& method, const std::string& path,
                            const std::string& body) {
  if (method == "GET" && path == "/v1/health") return tell_health();
  if (method == "GET" && path == "/v1/activity") return tell_activity();
  const auto json = base::parse_json(body.empty() ? "{}" : body);
  if (!json) return {400, error_body("the body is not JSON")};
  if (method == "POST" && path == "/v1/quiesce") return quiesce(*json);
  if (method == "POST" && path == "/v1/resumed") return resumed(*json);
  if (method == "POST" && path == "/v1/time") return take_time(*json);
  return {404, error_body("no such request: " + method + " " + path)};
}

Admin::Answer Admin::take_time(const base::Json& body) {
  const auto told = wire::time_of_day_from_json(body);
  if (!told) return {400, error_body(told.error().message)};
  const base::WallTime now{base::Milliseconds(told->now_ms)};
  base::log::warn("the clock here is not the controller's, which is taken",
                  {{"ahead_ms", (time_.now() - now).count()}});
  time_.tell(now);
  return tell_health();
}

Admin::Answer Admin::tell_health() const {
  wire::Health health = health_;
  health.quiesced = guard_.quiesced();
  return {200, wire::to_json(health)};
}

Admin::Answer Admin::tell_activity() {
  return {200, wire::to_json(wire::Activity{activity_.idle_for(clock_.now()).count()})};
}

Admin::Answer Admin::quiesce(const base::Json& body) {
  const auto asked = wire::quiesce_from_json(body);
  if (!asked) return {400, error_body(asked.error().message)};
  const auto& if_idle_for = asked->if_idle_for_ms;
  if (if_idle_for && activity_.idle_for(clock_.now()) < base::Milliseconds(*if_idle_for)) {
    if (guard_.quiesced()) thaw();  // It was found idle before, and is no longer.
    return tell_health();
  }
  guard_.quiesce(base::Seconds(asked->deadline_seconds), clock_.now());
  if (listener_) listener_->quiesced();
  base::log::info("quiesced for a pause", {{"deadline_seconds", asked->deadline_seconds}});
  return tell_health();
}

Admin::Answer Admin::resumed(const base::Json& body) {
  const auto told = wire::resumed_from_json(body);
  if (!told) return {400, error_body(told.error().message)};
  const wire::Identity& identity = told->identity;
  if (identity.uid != secrets_.uid || identity.epoch != secrets_.epoch)
    return {409, error_body("this executor is of uid " + secrets_.uid + ", epoch " +
                            std::to_string(secrets_.epoch))};
  // Written before it is believed: after a roll-back, what the marker says must be what was true.
  // The loop waits for the disk, so that no request is let in between.
  if (marker_)
    if (const auto written = marker_->write(identity); !written)
      return {503, error_body(written.error().message)};
  health_.identity = identity;
  time_.tell(base::WallTime(base::Milliseconds(told->now_ms)));
  guard_.thaw();
  activity_.moved();  // Whoever wanted it to run has not had the time to use it.
  if (listener_) listener_->resumed(*told);
  base::log::info("resumed", {{"run", identity.run}, {"incarnation", identity.incarnation}});
  return tell_health();
}

aio::Task<> Admin::watch_the_clock() {
  for (;;) {
    co_await aio::sleep_for(kClockLookEvery);
    look_at_the_clock();
  }
}

void Admin::thaw() {
  guard_.thaw();
  if (listener_) listener_->thawed();
}

void Admin::look_at_the_clock() {
  activity_.look(clock_.now());
  if (!guard_.look(clock_.now())) return;
  base::log::warn("no pause came; the quiesce has lapsed");
  thaw();
}

aio::Task<> Admin::settle_marker(aio::Background& background) {
  if (!marker_) co_return;
  const Marker marker = *marker_;  // Which a `resumed` may meanwhile open anew.
  const auto settled = co_await background.run([&marker] { return marker.settle(); });
  // The next `resumed` tries again, and says so.
  if (!settled) base::log::warn("the marker is not on disk yet", {{"error", settled.error()}});
}

}  // namespace executor
