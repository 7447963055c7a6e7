#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/fd.h"
#include "libs/base/json.h"

namespace executor {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Response {
  int status = 0;
  std::map<std::string, std::string> fields;  // Names in lower case.
  std::string body;
  base::Json json() const { return base::Json::parse(body, nullptr, false); }
};

// A raw, blocking HTTP connection to 127.0.0.1: no code of ours, so it judges ours. Every wait ends
// after 20 s.
class Connection {
 public:
  explicit Connection(int port);
  void send(std::string_view bytes);
  void send_request(const std::string& method, const std::string& target, const Fields& fields,
                    std::string_view body);
  Response read_head();
  std::string read_some();   // Of the de-chunked body; empty at its end.
  Response read_response();  // Head and whole body.
  bool fill();               // False at the end.
  bool answers_within(base::Milliseconds time);

 private:
  base::Fd socket_;
  std::string held_;
  bool chunked_ = false;
  std::size_t length_left_ = 0;
};

Response request(int port, const std::string& method, const std::string& target,
                 const Fields& fields = {}, std::string_view body = {});
Response call(int port, const std::string& method, const base::Json& message,
              const Fields& fields = {});

// A server stream of Connect.
class Events {
 public:
  Events(int port, const std::string& method, const base::Json& message, const Fields& fields = {});
  // The next message but keepalives; nothing once the end was read.
  std::optional<base::Json> next();
  const base::Json& end() const { return end_; }  // The payload of the end-of-stream envelope.
  int status() const { return status_; }

 private:
  Connection connection_;
  std::string held_;
  base::Json end_;
  int status_ = 0;
};

// All that a Start or Connect stream said.
struct Transcript {
  std::int64_t pid = 0;
  std::string out, errors, terminal;
  base::Json end;      // Of the process.
  base::Json closing;  // Of the stream.
};
Transcript read_all(Events& events);

}  // namespace executor
