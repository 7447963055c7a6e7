#include "cli/reach/transfer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <utility>

#include "cli/reach/way.h"

namespace cli {
namespace {

constexpr base::Milliseconds kTellEvery{200};
constexpr char kLineAnew[] = "\r\x1b[K";  // From its beginning, and empty.

}  // namespace

std::string readable_bytes(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= 1024 && unit + 1 < std::size(kUnits); ++unit) number /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", number, kUnits[unit]);
  return text.data();
}

Transfer::~Transfer() {
  if (told_at_) terminal_.err << kLineAnew << std::flush;
}

void Transfer::tell_progress() {
  const base::Moment now = terminal_.clock.now();
  if (!ends_.watched || (told_at_ && now < *told_at_ + kTellEvery)) return;
  told_at_ = now;
  terminal_.err << kLineAnew << readable_bytes(bytes_) << std::flush;
}

// Until something moved.
base::Result<base::Done> Transfer::turn() {
  std::array<pollfd, 1> set = {pollfd{.fd = ends_.signals, .events = POLLIN, .revents = 0}};
  connection_.turn(set);
  for (const wire::ConnectionEvent& event : connection_.take_events()) {
    if (const auto* one = std::get_if<wire::Answered>(&event); one && one->id == id_)
      answer_ = one->ok;
    if (const auto* one = std::get_if<wire::Failed>(&event); one && one->id == id_)
      failure_ = to_error(one->failure);
  }
  if (connection_.over() && !failure_) failure_ = to_error(*connection_.over());
  if (set[0].revents != 0 && !failure_) {
    connection_.session().cancel(id_);
    failure_ = base::error(base::ErrorCode::kCancelled, "given up");
  }
  if (failure_) return *failure_;
  return base::Done{};
}

base::Result<std::string> Transfer::read() {
  while (!ended_) {
    if (auto piece = connection_.session().take(id_)) {
      ended_ = piece->end;
      if (piece->error) return to_error(*piece->error);
      bytes_ += piece->bytes.size();
      tell_progress();
      if (!piece->bytes.empty()) return std::move(piece->bytes);
      continue;
    }
    CHECK_OK(turn());
  }
  return std::string();
}

base::Result<base::Done> Transfer::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (failure_) return *failure_;
    const std::size_t count = std::min(connection_.session().room(id_), bytes.size());
    if (count == 0) {
      CHECK_OK(turn());
      continue;
    }
    connection_.session().append(id_, bytes.substr(0, count));
    bytes.remove_prefix(count);
    bytes_ += count;
    tell_progress();
  }
  return base::Done{};
}

base::Result<base::Json> Transfer::end() {
  connection_.session().end(id_);
  while (!answer_) CHECK_OK(turn());
  return *answer_;
}

archives::Source Transfer::source() {
  return [this]() -> archives::Result<std::string> {
    auto bytes = read();
    if (!bytes) return archives::Failure(archives::Fault::kCancelled, bytes.error());
    return *std::move(bytes);
  };
}

archives::Sink Transfer::sink() {
  return [this](std::string_view bytes) -> archives::Result<base::Done> {
    const auto written = write(bytes);
    if (!written) return archives::Failure(archives::Fault::kCancelled, written.error());
    return base::Done{};
  };
}

}  // namespace cli
