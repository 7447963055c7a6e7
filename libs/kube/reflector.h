#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "libs/kube/client.h"
#include "libs/kube/course.h"

namespace kube {

// What a reflector keeps up to date; called from its thread alone.
class Mirror {
 public:
  virtual ~Mirror() = default;
  virtual void begin_list() = 0;  // What was listed since the last one and not completed is void.
  virtual void list_item(base::Json object) = 0;
  // The list is whole: what is not in it is gone. It is as of this resourceVersion.
  virtual void complete_list(const std::string& resource_version) = 0;
  // An object that was added, modified or deleted; or a bookmark, which only says how far we are.
  virtual void take(WatchEvent event) = 0;
};

double random_chance();  // From 0 to 1.

// How one leg of a reflector's course ended.
struct LegEnd {
  const Refusal* refusal = nullptr;  // Null: as it should.
  int failures = 0;                  // Since a watch last worked.
  base::Milliseconds next_after{0};
};

struct ReflectorSettings {
  CourseSettings course = {};
  int page_size = kPageSize;
  // Watches end by themselves after a random time between these.
  base::Seconds watch_min{300}, watch_max{600};
  base::Milliseconds silence_max{150'000};        // Of a watch.
  base::Milliseconds stream_silence_max{15'000};  // Of a streaming list.
  std::function<double()> chance = random_chance;
  // Called after each leg, from the reflector's thread, in place of a line in the log.
  std::function<void(const LegEnd&)> on_leg = {};
};

struct ReflectorStats {
  std::uint64_t lists = 0;    // Complete ones.
  std::uint64_t watches = 0;  // Begun.
  std::uint64_t events = 0;   // Bookmarks included.
  std::uint64_t failures = 0;
};

// Keeps a mirror of a collection, from a thread of its own: lists it, watches it, and begins again
// where it was, or anew, as course.h has it. Objects come without managedFields and without
// kubectl's last-applied annotation, so they must not be written back whole.
class Reflector {
 public:
  // All of them outlive it.
  Reflector(Client& client, const base::Clock& clock, Resource resource, Scope scope,
            Mirror& mirror, ReflectorSettings settings = {});
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void start();  // Once.
  ReflectorStats stats() const;

 private:
  void run(const std::stop_token& stop);
  Outcome walk(const ListPage& page, const std::stop_token& stop);
  Outcome walk(const ListStream& list, const std::stop_token& stop);
  Outcome walk(const Watch& watch, const std::stop_token& stop);
  Outcome walk(const Probe& probe, const std::stop_token& stop);
  void tell(const Leg& leg, const Outcome& outcome, const Move& next);

  Client& client_;
  const base::Clock& clock_;
  const Resource resource_;
  const Scope scope_;
  Mirror& mirror_;
  const ReflectorSettings settings_;
  mutable std::mutex mutex_;
  ReflectorStats stats_;
  std::jthread thread_;
};

// Takes away what nobody here reads and what is often the larger part.
void make_compact(base::Json& object);

}  // namespace kube
