#pragma once

// Where an executor has its links opened: a WebSocket at this path, of this subprotocol
// (docs/protocol.md, "Frames").
namespace wire {

inline constexpr char kSessionPath[] = "/v1/session";
inline constexpr char kSessionSubprotocol[] = "sandfleet.1";

}  // namespace wire
