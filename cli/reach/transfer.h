#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/line/terminal.h"
#include "cli/reach/ends.h"
#include "libs/archives/compression.h"
#include "libs/base/clock.h"
#include "libs/wire/client/connection.h"

namespace cli {

// One request with bytes of its own, either way, for code that reads and writes as if it were a
// file. A signal gives it up: everything then fails as kCancelled.
class Transfer {
 public:
  Transfer(wire::Connection& connection, const Ends& ends, const Terminal& terminal)
      : connection_(connection), ends_(ends), terminal_(terminal) {}
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  template <typename Args>
  base::Result<base::Done> begin(const Args& args, wire::Call how) {
    return begin(wire::call_of(args, std::move(how)));
  }
  base::Result<base::Done> begin(wire::Call call) {
    TRY(id_, connection_.session().ask(std::move(call)));
    return base::Done{};
  }

  // The next bytes of its download; none at the end.
  base::Result<std::string> read();
  base::Result<base::Done> write(std::string_view bytes);
  // Its upload is whole, and this is what was said to it.
  base::Result<base::Json> end();

  // The same for archives, which keep apart whose fault it was.
  archives::Source source();
  archives::Sink sink();

 private:
  base::Result<base::Done> turn();
  void tell_progress();

  wire::Connection& connection_;
  const Ends& ends_;
  const Terminal& terminal_;
  std::uint32_t id_ = 0;
  std::optional<base::Json> answer_;
  std::optional<base::Error> failure_;
  bool ended_ = false;  // Its download.
  std::uint64_t bytes_ = 0;
  std::optional<base::Moment> told_at_;
};

// "1.5 MiB"
std::string readable_bytes(std::uint64_t bytes);

}  // namespace cli
