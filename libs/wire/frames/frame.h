#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/result.h"

// One frame of docs/protocol.md in bytes: bare on a Unix socket, one binary message each on a
// WebSocket. All sizes are bounded here; what a header means is message.h's.
namespace wire {

enum class FrameType : std::uint8_t {
  kHello = 1,
  kChallenge,
  kProve,
  kWelcome,
  kRenew,
  kRenewed,
  kResume,
  kRequest,
  kReply,
  kData,
  kCredit,
  kStop,
  kCancel,
  kAck,
  kNotice,
  kPing,
  kPong,
  kClose,
};

inline constexpr std::uint8_t kEndFlag = 1, kDroppedFlag = 2;

inline constexpr std::size_t kHeaderBytesMax = 1u << 20;
inline constexpr std::size_t kPayloadBytesMax = 256u << 10;
inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::size_t kPrefixBytes = 10;  // Type, flags, stream, header length.
inline constexpr std::size_t kFrameBytesMax =
    kLengthBytes + kPrefixBytes + kHeaderBytesMax + kPayloadBytesMax;

struct Frame {
  FrameType type = FrameType::kPing;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string header = {};  // JSON, not looked into here.
  std::string payload = {};
  bool operator==(const Frame&) const = default;
};

// A frame as it came, for who carries it on: what it says is not looked into, and a type of a later
// version is carried too.
struct FrameBytes {
  std::uint8_t type = 0;
  std::uint32_t stream = 0;
  std::string_view bytes;  // All of it, its length included.
};

// With its length. A frame beyond the bounds is a bug of whoever made it.
std::string encode(const Frame& frame);
// The message of a WebSocket. Nothing: a frame of a later version, to be skipped. kInvalid: no
// frame, or one beyond the bounds.
base::Result<std::optional<Frame>> decode(std::string_view bytes);
// The same, not copied.
base::Result<FrameBytes> look_at(std::string_view bytes);

// Frames that follow each other on a byte stream. Holds at most one that is not complete, and what
// was added behind it.
class FrameReader {
 public:
  void add(std::string_view bytes) { held_.append(bytes); }
  // The next one that is complete; nothing when more bytes are needed. After an error the stream
  // has no frames any more.
  base::Result<std::optional<Frame>> next();
  // The same, not copied: good until something is done with this reader.
  base::Result<std::optional<FrameBytes>> next_bytes();
  std::size_t held() const { return held_.size() - taken_; }

 private:
  base::Result<std::optional<std::string_view>> next_whole();

  std::string held_;
  std::size_t taken_ = 0;
};

}  // namespace wire
