#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "libs/base/clock.h"
#include "libs/base/fd.h"
#include "libs/base/unix_socket.h"
#include "libs/wire/client/connection.h"
#include "libs/wire/client/link.h"
#include "libs/wire/session/session_host.h"

namespace wire {

// What serves requests; called on the server's thread only, or by Server::with.
class Service {
 public:
  virtual ~Service() = default;
  virtual void handle(SessionHost& host, HostEvent event) = 0;
  virtual void work(SessionHost&) {}  // A little of whatever is at work.
};

// The real serving side of sessions behind a Unix socket, in a thread of its own, whose links a
// test may cut, and which it may take away and bring back.
class Server {
 public:
  Server(std::string socket, Service& service);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Credential credential() const;  // That it lets in.
  void cut();                     // Every link.
  void go_away();                 // With the links; the socket's file too. Sessions stay.
  void come_back();
  void begin_anew();  // Another executor in its place, that knows no session.
  // With the server standing still.
  void with(const std::function<void(SessionHost&)>& use);
  int links_made() const { return links_made_; }

 private:
  void run(const std::stop_token& stop);
  void serve();
  void drop_links();
  void accept_all();
  void carry(LinkId id, Link& link);
  void wake() const;
  void make_host();
  static Now now();

  std::string socket_;
  Service& service_;
  std::mutex mutex_;
  std::unique_ptr<base::UnixListener> listener_;
  base::Fd accepts_, wake_;
  std::unique_ptr<SessionHost> host_;
  std::map<LinkId, Link> links_;
  std::atomic<int> links_made_ = 0;
  std::jthread thread_;
};

}  // namespace wire
