#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "libs/wire/client/testing/server.h"

namespace wire {

// The byte at each offset follows from the offset, so that one that is missing, doubled or moved is
// seen.
inline std::string pattern(std::int64_t from, std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>(((static_cast<std::uint64_t>(from) + i) * 2654435761u) >> 13);
  return bytes;
}

// Operations of a test:
//   act    mutating; counts itself by "key", and what it did outlives a server's sessions
//   never  is not answered
//   make   gives "bytes" of the pattern in the stream "out"
//   talk   what comes in the stream "in" goes out in "out"
class EchoService : public Service {
 public:
  void handle(SessionHost& host, HostEvent event) override {
    if (std::holds_alternative<SessionEnd>(event.what)) {
      std::erase_if(jobs_, [&](const Job& job) { return job.session == event.session; });
      ++sessions_ended_;
      return;
    }
    const auto* asked = std::get_if<Asked>(&std::get<SessionEvent>(event.what));
    if (!asked) return;
    const Request& request = asked->request;
    if (request.op == "never") return;
    if (request.op == "act") ++acts_[request.args["key"]];
    ServedSession* session = host.find(event.session);
    if (!session) return;  // It has ended meanwhile.
    session->reply(request.id, {{"did", request.op}});
    if (request.op == "act") return;
    jobs_.push_back({.session = event.session, .out = request.args["out"]});
    if (request.op == "talk") jobs_.back().in = request.args["in"];
    if (request.op == "make") jobs_.back().bytes = request.args["bytes"];
  }

  void work(SessionHost& host) override {
    for (Job& job : jobs_)
      if (ServedSession* session = host.find(job.session))
        job.done = job.in ? talk(*session, job) : make(*session, job);
    std::erase_if(jobs_, [](const Job& job) { return job.done; });
  }

  // By Server::with.
  int acts(const std::string& key) { return acts_[key]; }
  int sessions_ended() const { return sessions_ended_; }
  std::size_t at_work() const { return jobs_.size(); }

 private:
  struct Job {
    std::string session;
    std::uint32_t out = 0;
    std::optional<std::uint32_t> in = std::nullopt;
    std::int64_t bytes = 0, at = 0;
    bool done = false;
  };

  static bool make(ServedSession& session, Job& job) {
    while (session.wants(job.out)) {
      const auto count =
          std::min(static_cast<std::size_t>(job.bytes - job.at), session.room(job.out));
      session.append(job.out, pattern(job.at, count));
      job.at += static_cast<std::int64_t>(count);
      if (job.at < job.bytes) return false;
      session.end(job.out);
      return true;
    }
    return true;
  }
  static bool talk(ServedSession& session, Job& job) {
    while (const std::size_t room = session.room(job.out)) {
      const auto piece = session.take(*job.in, room);
      if (!piece) return false;
      session.append(job.out, piece->bytes);
      if (!piece->end) continue;
      session.end(job.out);
      return true;
    }
    return !session.wants(job.out);
  }

  std::deque<Job> jobs_;
  std::map<std::string, int> acts_;
  int sessions_ended_ = 0;
};

}  // namespace wire
