#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "bench/contenders/commands.h"

// Messages and nothing else, over what requests to a sandbox travel over: what the hops themselves
// cost. A message says how many are to come back for it, and how long each.
namespace contenders {

struct EchoHead {
  std::uint32_t bytes = 0;  // Of all of the message.
  std::uint32_t times = 0, reply_bytes = 0;
};

inline constexpr std::uint32_t kEchoBytesMax = 1u << 20;

inline std::string echo_message(EchoHead head) {
  head.bytes = std::clamp<std::uint32_t>(head.bytes, sizeof head, kEchoBytesMax);
  std::string message(head.bytes, '.');
  std::memcpy(message.data(), &head, sizeof head);
  return message;
}

inline EchoHead head_of(std::string_view message) {
  EchoHead head;
  if (message.size() < sizeof head) give_up("no message of an echo");
  std::memcpy(&head, message.data(), sizeof head);
  return head;
}

// What one time is: so many messages there, the last of which is answered so often.
struct Exchange {
  std::uint64_t sends = 1;
  std::uint32_t send_bytes = 0;
  std::uint32_t replies = 1, reply_bytes = 0;
};

inline Exchange exchange_of(const Command& command) {
  if (command.numbers.size() != 4) give_up("WORD TIMES SENDS BYTES REPLIES BYTES");
  const auto& numbers = command.numbers;
  return {numbers[0], std::uint32_t(numbers[1]), std::uint32_t(numbers[2]),
          std::uint32_t(numbers[3])};
}

inline std::string nth_message(const Exchange& exchange, std::uint64_t number) {
  return echo_message({exchange.send_bytes, number + 1 == exchange.sends ? exchange.replies : 0,
                       exchange.reply_bytes});
}

// Over a Unix socket, with as little between as the kernel allows.
int serve_unix(const std::string& path);
int ask_unix(const std::string& path);

// Over a WebSocket, by Beast, as an executor serves it and agentd dials it.
struct WebPlace {
  std::string address;
  int port = 0;
  std::string sandbox_id, port_inside, traffic_token;  // For the router.
};
int serve_web(int port);
int ask_web(const WebPlace& place);

}  // namespace contenders
