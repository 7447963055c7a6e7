#include "libs/wire/client/testing/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <chrono>
#include <vector>

#include "libs/wire/proof.h"

namespace wire {
namespace {

const Identity kIdentity{"uid-1", 3, 4, 7};

std::string attach_key() {
  return derive_key("fleet", TokenKind::kAttach, kIdentity.uid, kIdentity.epoch);
}

}  // namespace

Server::Server(std::string socket, Service& service)
    : socket_(std::move(socket)), service_(service), wake_(::eventfd(0, EFD_CLOEXEC)) {
  make_host();
  come_back();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Server::~Server() {
  thread_.request_stop();
  wake();
  thread_.join();
  go_away();
}

Now Server::now() {
  const base::SystemClock clock;
  return {clock.now(), clock.wall()};
}

void Server::make_host() {
  host_ = std::make_unique<SessionHost>(HostSettings{.instance = new_nonce(),
                                                     .attach_key = attach_key(),
                                                     .cwd = "/w",
                                                     .workspace_root = "/w",
                                                     .features = {"files", "processes"}},
                                        kIdentity, now().moment);
}

Credential Server::credential() const {
  const Claims claims{.uid = kIdentity.uid,
                      .epoch = kIdentity.epoch,
                      .run = kIdentity.run,
                      .issued = now().wall,
                      .expires = now().wall + std::chrono::hours(1)};
  return *split_token(sign(claims, attach_key()));
}

void Server::cut() {
  with([this](SessionHost&) { drop_links(); });
}

void Server::drop_links() {
  for (const auto& [id, link] : links_) host_->link_down(id);
  links_.clear();
}

void Server::go_away() {
  with([this](SessionHost&) {
    drop_links();
    listener_.reset();
    accepts_.reset();
  });
}

void Server::come_back() {
  std::lock_guard lock(mutex_);
  listener_ = *base::UnixListener::at(socket_, {});
  accepts_ = *listener_->share();
  wake();
}

void Server::begin_anew() {
  with([this](SessionHost&) {
    drop_links();
    make_host();
  });
}

void Server::with(const std::function<void(SessionHost&)>& use) {
  std::lock_guard lock(mutex_);
  use(*host_);
  wake();
}

void Server::wake() const { ::eventfd_write(wake_.get(), 1); }

void Server::run(const std::stop_token& stop) {
  constexpr int kTickMs = 20;
  while (!stop.stop_requested()) {
    std::vector<pollfd> set = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    {
      std::lock_guard lock(mutex_);
      set.push_back({.fd = accepts_.get(), .events = POLLIN, .revents = 0});
      for (const auto& [id, link] : links_) {
        const auto events = static_cast<short>(POLLIN | (link.blocked() ? POLLOUT : 0));
        set.push_back({.fd = link.descriptor(), .events = events, .revents = 0});
      }
    }
    ::poll(set.data(), set.size(), kTickMs);
    eventfd_t count = 0;
    if (set[0].revents != 0) ::eventfd_read(wake_.get(), &count);
    std::lock_guard lock(mutex_);
    serve();
  }
}

void Server::serve() {
  accept_all();
  std::vector<LinkId> known;
  known.reserve(links_.size());
  for (const auto& [id, link] : links_) known.push_back(id);
  for (const LinkId id : known) carry(id, links_.at(id));
  host_->tick(now());
  for (HostEvent& event : host_->take_events()) service_.handle(*host_, std::move(event));
  service_.work(*host_);
  for (const LinkId id : known) {
    const auto found = links_.find(id);
    if (found == links_.end()) continue;
    const bool takes_more = found->second.send([&] { return host_->next(id); });
    if (takes_more && (!host_->over(id) || found->second.blocked())) continue;
    host_->link_down(id);
    links_.erase(found);
  }
}

void Server::accept_all() {
  while (accepts_) {
    base::Fd socket(::accept4(accepts_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    ++links_made_;
    if (const auto id = host_->link_up(now())) links_.emplace(*id, Link(std::move(socket)));
  }
}

void Server::carry(LinkId id, Link& link) {
  const auto received =
      link.receive([&](Frame frame) { host_->receive(id, std::move(frame), now()); });
  if (received && *received != Link::Received::kEnd) return;
  host_->link_down(id);
  links_.erase(id);
}

}  // namespace wire
