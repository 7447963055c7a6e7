#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controller/heartbeat/engine.h"
#include "controller/operations/pool.h"
#include "controller/poll/connections.h"
#include "controller/reconcile/reconciler.h"
#include "controller/sweep/sweeper.h"
#include "libs/api/resource_store.h"
#include "libs/kube/queue.h"
#include "libs/metrics/registry.h"

namespace controller {

// Providers whose documents changed; filled by the store's thread, read by the rhythm.
class ProviderNews {
 public:
  void add(const std::string& name) {
    std::lock_guard lock(mutex_);
    names_.insert(name);
  }
  std::set<std::string> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(names_, {});
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

// For who begins to act: one provider's list tells of everything that is bound, so those wait for
// it, a few seconds at most, rather than be asked for one by one.
void queue_first_look(kube::Queue& queue, const api::Sandbox& sandbox);

// A provider that was full may have room: what is not bound yet decides anew.
void queue_what_waits_for_room(kube::Queue& queue, const api::ResourceStore& store,
                               const std::string& provider);

// A lease that was not there is looked for; late beats are measured.
Engine::News heartbeat_news(metrics::Registry& registry, Memories& memories,
                            const api::ResourceStore& store, kube::Queue& queue,
                            const base::Clock& clock);

// Asks an executor at once that somebody could not get to. Where another replica acts for it,
// nothing is known of it here, and nothing is done.
std::function<void(const api::Sandbox&)> news_of_failed_ways(Memories& memories, kube::Queue& queue,
                                                             const base::Clock& clock);

struct Pace {
  std::size_t workers = 8;
  base::Milliseconds poll{30'000}, sweep{60'000};
  base::Milliseconds finish{100'000};  // For creates and pauses that are under way at the end.
};

// The threads of the program: workers that reconcile, the heartbeat, and one rhythm of polls and
// sweeps for each provider.
class Controller {
 public:
  struct Parts {
    api::ResourceStore& store;
    kube::Queue& queue;
    Reconciler& reconciler;
    Connections& connections;
    Engine& engine;
    Pool& pool;
    Sweeper& sweeper;
    Memories& memories;
    const Mandate& mandate;
    const base::Clock& clock;
    metrics::Registry& registry;
    ProviderNews& provider_news;
  };
  Controller(Parts parts, Pace pace);
  ~Controller();

  void start();
  // Ends in order: nothing new is begun, creates and pauses under way finish, heartbeats stop last.
  // No sandbox is touched.
  void stop();
  // Another acts in our place: ends at once, heartbeats too.
  void leave();
  // Why it is not ready to work; empty when it is.
  std::string trouble() const;

 private:
  void end(base::Milliseconds finish);
  void work(std::stop_token stop);
  kube::Requeue take_turn(const api::Key& key);
  void keep_rhythm(std::stop_token stop);
  bool poll(const std::string& provider, std::stop_token stop);
  void sweep(const std::string& provider, std::stop_token stop);
  using Poll = base::Result<std::set<std::string>, ProviderProblem>;
  void tell_provider(const std::string& name, const Poll& polled);
  void hold_provider(const std::string& name, bool polled);
  bool is_in_use(const std::string& provider) const;
  void forget_all_but(const std::set<std::string>& providers);
  void wake_all_of(const std::string& provider);

  const Parts parts_;
  const Pace pace_;
  std::atomic<bool> working_ = false;
  std::vector<std::jthread> threads_;  // Workers and rhythm.
  std::jthread heart_;
};

}  // namespace controller
