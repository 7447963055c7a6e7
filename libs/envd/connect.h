#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/json.h"
#include "libs/base/result.h"
#include "libs/net/transport.h"

// The Connect protocol in JSON, as far as envd's two services need it: pure.
namespace envd {

// One message of a stream: a flag byte, four bytes of length (big endian), the payload.
struct Envelope {
  bool is_end = false;  // The payload is the stream's own result, not a message.
  std::string payload;
  bool operator==(const Envelope&) const = default;
};

inline constexpr std::size_t kEnvelopeBytesMax = 4u << 20;

std::string encode_envelope(std::string_view payload);

// Takes a stream's bytes as they come, cut anywhere.
class EnvelopeDecoder {
 public:
  // The envelopes that are whole by now. An error (too long, compressed, after the end) is final.
  base::Result<std::vector<Envelope>> add(std::string_view bytes);

 private:
  std::string rest_;
  bool ended_ = false;
};

// Which side of envd was asked; each has its own errors, so that another's answer can be told.
enum class Side { kHealth, kFiles, kServices };

// What a reply other than 200 means. It may come from envd's files ({"code": 404}), from a Connect
// service ({"code": "not_found"}), or from the provider's edge ({"sandboxId": …}). All else comes
// from a stranger: the way leads elsewhere, or the edge does not understand it, and the message
// ends with `advice` on that.
base::Error error_of(std::string_view what, const net::Response& response, Side side,
                     std::string_view advice);
base::Error error_of_stranger(std::string_view what, int status, std::string_view message,
                              std::string_view advice);
// The error of an end envelope, or nothing when the stream ended well.
std::optional<base::Error> error_in_end(std::string_view what, std::string_view payload);

// What a process told in its stream.
struct ProcessEvent {
  std::optional<std::uint32_t> pid = {};
  std::string output = {}, error_output = {};
  struct End {
    int exit_code = 0;
    std::string status = {};
  };
  std::optional<End> end = {};
};
base::Result<ProcessEvent> read_process_event(std::string_view payload);

// "0.5.7" before "0.5.13"; what is no version counts as the oldest.
bool version_at_least(std::string_view version, std::string_view wanted);

}  // namespace envd
