#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "libs/wire/frames/frame.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/frames/operations.h"

namespace {

// What was read once is written such that it is read as the same.
void expect(bool holds) {
  if (!holds) std::abort();
}

template <typename Args>
void round_trip(const base::Json& json) {
  const auto read = wire::from_json<Args>(json);
  if (!read) return;
  const auto again = wire::from_json<Args>(wire::to_json(*read));
  expect(again && *again == *read);
}

void look_at(wire::Frame frame) {
  const auto message = wire::to_message(std::move(frame));
  if (!message) return;
  const std::string bytes = wire::encode(wire::to_frame(*message));
  const auto decoded = wire::decode(bytes);
  expect(decoded && *decoded);
  const auto again = wire::to_message(**decoded);
  expect(again && *again == *message);
  if (const auto* request = std::get_if<wire::Request>(&*message)) {
    const base::Json& args = request->args;
    const std::string& op = request->op;
    wire::for_each_operation([&]<typename Args>() {
      if (Args::kOp == op) round_trip<Args>(args);
    });
  }
  if (const auto* reply = std::get_if<wire::Reply>(&*message); reply && reply->ok) {
    const base::Json& ok = *reply->ok;
    wire::for_each_operation([&]<typename Args>() { round_trip<typename Args::Ok>(ok); });
  }
}

}  // namespace

// The bytes of a connection. They come in pieces whose size the first byte tells.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = data[0] + std::size_t{1};
  std::string_view ahead(reinterpret_cast<const char*>(data) + 1, size - 1);
  wire::FrameReader reader;
  while (!ahead.empty()) {
    reader.add(ahead.substr(0, piece));
    ahead.remove_prefix(std::min(piece, ahead.size()));
    for (;;) {
      auto frame = reader.next();
      if (!frame) return 0;
      if (!*frame) break;
      look_at(**std::move(frame));
    }
    expect(reader.held() <= wire::kFrameBytesMax + piece);
  }
  return 0;
}
