#include "libs/wire/frames/frame.h"

#include <cassert>
#include <utility>

namespace wire {
namespace {

constexpr std::uint8_t kFirstOptionalType = 128;  // From here on unknown types are skipped.
constexpr auto kLastType = static_cast<std::uint8_t>(FrameType::kClose);

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

// `body`: all behind the length.
base::Result<std::optional<Frame>> decode_body(std::string_view body) {
  const auto type = static_cast<std::uint8_t>(body[0]);
  if (type >= kFirstOptionalType) return std::optional<Frame>();
  if (type == 0 || type > kLastType)
    return refused("its type " + std::to_string(type) + " is unknown");
  Frame frame{static_cast<FrameType>(type), static_cast<std::uint8_t>(body[1]), u32_at(body, 2)};
  if (frame.flags & ~(kEndFlag | kDroppedFlag)) return refused("it has an unknown flag");
  const std::size_t header_bytes = u32_at(body, 6), rest = body.size() - kPrefixBytes;
  if (header_bytes > kHeaderBytesMax) return refused("its header is too long");
  if (header_bytes > rest) return refused("its header is longer than itself");
  if (rest - header_bytes > kPayloadBytesMax) return refused("its payload is too long");
  frame.header = body.substr(kPrefixBytes, header_bytes);
  frame.payload = body.substr(kPrefixBytes + header_bytes);
  return std::optional<Frame>(std::move(frame));
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
  if (bytes.size() < kLengthBytes) return refused("it has no length");
  const std::size_t length = u32_at(bytes, 0);
  CHECK_OK(judge_length(length));
  if (bytes.size() - kLengthBytes != length) return refused("its length is not the message's");
  return decode_body(bytes.substr(kLengthBytes));
}

base::Result<std::optional<Frame>> FrameReader::next() {
  for (;;) {
    const std::string_view ahead = std::string_view(held_).substr(taken_);
    const std::size_t length = ahead.size() < kLengthBytes ? 0 : u32_at(ahead, 0);
    if (ahead.size() >= kLengthBytes) CHECK_OK(judge_length(length));
    if (ahead.size() < kLengthBytes || ahead.size() - kLengthBytes < length) {
      held_.erase(0, std::exchange(taken_, 0));
      return std::optional<Frame>();
    }
    taken_ += kLengthBytes + length;
    TRY(auto frame, decode_body(ahead.substr(kLengthBytes, length)));
    if (frame) return frame;
  }
}

}  // namespace wire
