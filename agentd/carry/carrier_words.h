#pragma once

#include <string>
#include <string_view>

#include "libs/base/result.h"
#include "libs/base/strings.h"
#include "libs/wire/frames/message.h"

// What the parts of Carrier share. Private to this folder.
namespace agentd {

inline constexpr base::Milliseconds kFarAhead = std::chrono::hours(24);

inline wire::Close close_of(wire::CloseReason reason, std::string_view message) {
  return {.reason = reason, .message = std::string(base::cut(message, 1024))};
}

inline base::Result<wire::Message> message_in(std::string_view bytes) {
  TRY(auto frame, wire::decode(bytes));
  if (!frame) return base::error(base::ErrorCode::kInvalid, "a frame of a later version");
  return wire::to_message(*std::move(frame));
}

}  // namespace agentd
