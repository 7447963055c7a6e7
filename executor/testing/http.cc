#include "executor/testing/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "libs/base/crypto.h"
#include "libs/base/strings.h"

namespace executor {

Connection::Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{20, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
}

void Connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Connection::send_request(const std::string& method, const std::string& target,
                              const Fields& fields, std::string_view body) {
  std::string head = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const auto& [name, value] : fields) head += name + ": " + value + "\r\n";
  head += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  send(head.append(body));
}

bool Connection::fill() {
  char bytes[64 << 10];
  const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (got > 0) held_.append(bytes, static_cast<std::size_t>(got));
  return got > 0;
}

bool Connection::answers_within(base::Milliseconds time) {
  pollfd watched{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return !held_.empty() || ::poll(&watched, 1, static_cast<int>(time.count())) > 0;
}

Response Connection::read_head() {
  Response response;
  std::size_t end = 0;
  while ((end = held_.find("\r\n\r\n")) == std::string::npos)
    if (!fill()) return response;
  const auto lines = base::split(held_.substr(0, end), '\n');
  held_.erase(0, end + 4);
  response.status = static_cast<int>(base::parse_integer(lines[0].substr(9, 3)).value_or(0));
  for (const std::string& line : lines) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    response.fields[base::lower(line.substr(0, colon))] = base::trim(line.substr(colon + 1));
  }
  chunked_ = response.fields["transfer-encoding"] == "chunked";
  length_left_ =
      static_cast<std::size_t>(base::parse_integer(response.fields["content-length"]).value_or(0));
  return response;
}

std::string Connection::read_some() {
  if (!chunked_) {
    if (length_left_ == 0) return {};
    while (held_.empty())
      if (!fill()) return {};
    std::string bytes = held_.substr(0, length_left_);
    held_.erase(0, bytes.size());
    length_left_ -= bytes.size();
    return bytes;
  }
  std::size_t end = 0;
  while ((end = held_.find("\r\n")) == std::string::npos)
    if (!fill()) return {};
  const std::size_t size = std::stoul(held_.substr(0, end), nullptr, 16);
  while (held_.size() < end + 2 + size + 2)
    if (!fill()) return {};
  std::string bytes = held_.substr(end + 2, size);
  held_.erase(0, end + 2 + size + 2);
  return bytes;
}

Response Connection::read_response() {
  Response response = read_head();
  for (std::string bytes = read_some(); !bytes.empty(); bytes = read_some()) response.body += bytes;
  return response;
}

Response request(int port, const std::string& method, const std::string& target,
                 const Fields& fields, std::string_view body) {
  Connection connection(port);
  connection.send_request(method, target, fields, body);
  return connection.read_response();
}

Response call(int port, const std::string& method, const base::Json& message,
              const Fields& fields) {
  Fields all = {{"Content-Type", "application/json"}};
  all.insert(all.end(), fields.begin(), fields.end());
  return request(port, "POST", "/" + method, all, message.dump());
}

Events::Events(int port, const std::string& method, const base::Json& message, const Fields& fields)
    : connection_(port) {
  Fields all = {{"Content-Type", "application/connect+json"}};
  all.insert(all.end(), fields.begin(), fields.end());
  const std::string payload = message.dump();
  std::string body(1, '\0');
  for (const int shift : {24, 16, 8, 0}) body += static_cast<char>(payload.size() >> shift & 0xff);
  connection_.send_request("POST", "/" + method, all, body + payload);
  status_ = connection_.read_head().status;
}

std::optional<base::Json> Events::next() {
  for (;;) {
    std::size_t size = 0;
    if (held_.size() >= 5)
      for (std::size_t i = 1; i < 5; ++i) size = size << 8 | static_cast<unsigned char>(held_[i]);
    if (held_.size() < 5 || held_.size() < 5 + size) {
      const std::string bytes = connection_.read_some();
      if (bytes.empty()) return std::nullopt;
      held_ += bytes;
      continue;
    }
    auto message = base::Json::parse(held_.substr(5, size), nullptr, false);
    const bool last = held_[0] & 2;
    held_.erase(0, 5 + size);
    if (last) {
      end_ = std::move(message);
      return std::nullopt;
    }
    const bool ping = message.contains("keepalive") ||
                      (message.contains("event") && message["event"].contains("keepalive"));
    if (!ping) return message;
  }
}

Transcript read_all(Events& events) {
  Transcript seen;
  while (const auto message = events.next()) {
    const base::Json& event = message->at("event");
    if (event.contains("start")) seen.pid = event["start"].value("pid", 0);
    if (event.contains("end")) seen.end = event["end"];
    if (!event.contains("data")) continue;
    for (const auto& [channel, text] : event["data"].items()) {
      const auto bytes = base::from_base64(text.get<std::string>());
      std::string& to = channel == "stdout"   ? seen.out
                        : channel == "stderr" ? seen.errors
                                              : seen.terminal;
      if (bytes) to += *bytes;
    }
  }
  seen.closing = events.end();
  return seen;
}

}  // namespace executor
