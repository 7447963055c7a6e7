#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libs/net/transport.h"

namespace net {

// What a scripted peer does with one request: FakeTransport plays it in memory, TestServer on a
// socket.
struct Answer {
  enum class End {
    kWhole,    // Head and body in full.
    kCut,      // The connection closes after what was sent so far.
    kSilence,  // Nothing more comes, and the connection stays open.
    kRefused,  // FakeTransport only: no connection; no byte of the request was sent.
  };
  int status = 200;
  Headers headers = {};
  std::vector<std::string> pieces = {};  // Of the body, in order.
  bool chunked = false;                  // Else with Content-Length.
  bool headless = false;                 // Nothing at all is sent before `end`.
  base::Milliseconds delay{0};           // Before the head.
  End end = End::kWhole;
  std::string raw = {};  // TestServer only: these bytes instead of all the above, then the end.
};

using Handler = std::function<Answer(const Request&)>;

inline Answer answer(int status, std::string body = {}, Headers headers = {}) {
  Answer made{status, std::move(headers)};
  if (!body.empty()) made.pieces.push_back(std::move(body));
  return made;
}
// It was received, and may have had its effect; no reply comes.
inline Answer lost_answer() { return Answer{.headless = true, .end = Answer::End::kCut}; }
inline Answer silent_answer() { return Answer{.headless = true, .end = Answer::End::kSilence}; }
inline Answer refused_connection() {
  return Answer{.headless = true, .end = Answer::End::kRefused};
}

}  // namespace net
