#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "libs/base/result.h"

namespace executor {

// Reads multipart/form-data (RFC 7578) that arrives in parts of any size. It holds back at most
// one part's head or one boundary's length, so memory is bounded whatever is uploaded.
class Multipart {
 public:
  static constexpr std::size_t kPartHeadBytesMax = 16u << 10;

  struct PartBegins {
    std::string name;
    std::optional<std::string> file_name;  // As sent, folders and all.
  };
  struct PartBytes {
    std::string bytes;
  };
  struct PartEnds {};
  struct NeedsMore {};
  struct Finished {};  // The closing boundary was read; what follows is ignored.
  using Event = std::variant<NeedsMore, PartBegins, PartBytes, PartEnds, Finished>;

  explicit Multipart(std::string boundary);
  void add(std::string_view bytes);
  base::Result<Event> next();  // kInvalid: not multipart. Take events until NeedsMore.

 private:
  enum class State { kPreamble, kAfterBoundary, kHead, kBody, kFinished };
  base::Result<Event> read_preamble();
  base::Result<Event> read_after_boundary();
  base::Result<Event> read_head();
  base::Result<Event> read_body();

  std::string delimiter_;  // CRLF "--" boundary.
  std::string held_;
  State state_ = State::kPreamble;
};

// The boundary that a Content-Type of multipart/form-data names.
std::optional<std::string> multipart_boundary(std::string_view content_type);
// A parameter of a header value such as: form-data; name="file"; filename="a \"b\".txt".
std::optional<std::string> header_parameter(std::string_view value, std::string_view name);

}  // namespace executor
