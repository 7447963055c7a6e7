#include "libs/wire/frames/frame.h"

#include <cassert>
#include <utility>

namespace wire {
namespace {

constexpr std::uint8_t kFirstOptionalType = 128;  // From here on unknown types are skipped.
constexpr auto kLastType = static_cast<std::uint8_t>(FrameType::kClose);
constexpr std::size_t kHeldBytesUsual = 128u << 10;

void put_u32(std::string& out, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i)
    value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

base::Error refused(std::string_view why) {
  return base::error(base::ErrorCode::kInvalid, "frame refused: ", why);
}

// What the length may be, as soon as it is known.
base::Result<base::Done> judge_length(std::size_t length) {
  if (length < kPrefixBytes) return refused("it is too short");
  if (length > kFrameBytesMax - kLengthBytes) return refused("it is too long");
  return base::Done{};
}

// What stands where in a frame; views into its bytes.
struct Parts {
  std::uint8_t type = 0, flags = 0;
  std::uint32_t stream = 0;
  std::string_view header, payload;
};

// `body`: all behind the length.
base::Result<Parts> parts_of(std::string_view body) {
  Parts parts{static_cast<std::uint8_t>(body[0]), static_cast<std::uint8_t>(body[1]),
              u32_at(body, 2)};
  if (parts.type >= kFirstOptionalType) return parts;
  if (parts.type == 0 || parts.type > kLastType)
    return refused("its type " + std::to_string(parts.type) + " is unknown");
  if (parts.flags & ~(kEndFlag | kDroppedFlag)) return refused("it has an unknown flag");
  const std::size_t header_bytes = u32_at(body, 6), rest = body.size() - kPrefixBytes;
  if (header_bytes > kHeaderBytesMax) return refused("its header is too long");
  if (header_bytes > rest) return refused("its header is longer than itself");
  if (rest - header_bytes > kPayloadBytesMax) return refused("its payload is too long");
  parts.header = body.substr(kPrefixBytes, header_bytes);
  parts.payload = body.substr(kPrefixBytes + header_bytes);
  return parts;
}

base::Result<std::optional<Frame>> decode_body(std::string_view body) {
  TRY(const Parts parts, parts_of(body));
  if (parts.type >= kFirstOptionalType) return std::optional<Frame>();
  return std::optional<Frame>(Frame{static_cast<FrameType>(parts.type), parts.flags, parts.stream,
                                    std::string(parts.header), std::string(parts.payload)});
}

// All behind the length of a frame that is alone in its message.
base::Result<std::string_view> body_of(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return refused("it has no length");
  const std::size_t length = u32_at(bytes, 0);
  CHECK_OK(judge_length(length));
  if (bytes.size() - kLengthBytes != length) return refused("its length is not the message's");
  return bytes.substr(kLengthBytes);
}

}  // namespace

std::string encode(const Frame& frame) {
  assert(frame.header.size() <= kHeaderBytesMax && frame.payload.size() <= kPayloadBytesMax);
  const std::size_t length = kPrefixBytes + frame.header.size() + frame.payload.size();
  std::string bytes;
  bytes.reserve(kLengthBytes + length);
  put_u32(bytes, length);
  bytes.push_back(static_cast<char>(frame.type));
  bytes.push_back(static_cast<char>(frame.flags));
  put_u32(bytes, frame.stream);
  put_u32(bytes, frame.header.size());
  return bytes.append(frame.header).append(frame.payload);
}

base::Result<std::optional<Frame>> decode(std::string_view bytes) {
  TRY(const std::string_view body, body_of(bytes));
  return decode_body(body);
}

base::Result<FrameBytes> look_at(std::string_view bytes) {
  TRY(const std::string_view body, body_of(bytes));
  TRY(const Parts parts, parts_of(body));
  return FrameBytes{parts.type, parts.stream, bytes};
}

base::Result<std::optional<std::string_view>> FrameReader::next_whole() {
  const std::string_view ahead = std::string_view(held_).substr(taken_);
  const std::size_t length = ahead.size() < kLengthBytes ? 0 : u32_at(ahead, 0);
  if (ahead.size() >= kLengthBytes) CHECK_OK(judge_length(length));
  if (ahead.size() < kLengthBytes || ahead.size() - kLengthBytes < length) {
    held_.erase(0, std::exchange(taken_, 0));
    if (held_.size() <= kHeldBytesUsual && held_.capacity() > 2 * kHeldBytesUsual)
      held_.shrink_to_fit();  // A large frame was here.
    return std::optional<std::string_view>();
  }
  taken_ += kLengthBytes + length;
  return std::optional<std::string_view>(ahead.substr(0, kLengthBytes + length));
}

base::Result<std::optional<Frame>> FrameReader::next() {
  for (;;) {
    TRY(const auto whole, next_whole());
    if (!whole) return std::optional<Frame>();
    TRY(auto frame, decode_body(whole->substr(kLengthBytes)));
    if (frame) return frame;
  }
}

base::Result<std::optional<FrameBytes>> FrameReader::next_bytes() {
  TRY(const auto whole, next_whole());
  if (!whole) return std::optional<FrameBytes>();
  TRY(const Parts parts, parts_of(whole->substr(kLengthBytes)));
  return std::optional<FrameBytes>(FrameBytes{parts.type, parts.stream, *whole});
}

}  // namespace wire
