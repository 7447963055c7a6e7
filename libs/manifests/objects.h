#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "libs/manifests/ledger.h"

namespace manifests {

// The records of a state folder, in memory and on disk: a change outlives the process before it is
// seen, and unless it says that it need not wait, a power loss too.
// Changes of different objects run side by side; those of one object in turn.
class Objects {
 public:
  using Durability = api::ResourceStore::Durability;
  // Whether on_change tells of a change: who makes it may be the one who would be told.
  enum class News { kTold, kKnown };
  Objects(const Layout& layout, const Disk& disk, JournalOptions journal)
      : ledger_(layout, disk, journal) {}

  base::Result<base::Done> load();
  std::shared_ptr<const Record> find(const Id& id) const;
  std::map<Id, std::shared_ptr<const Record>> all() const;

  // What the record is to become, by what it is (null: there is none); nothing: it stays.
  using Change = std::function<base::Result<std::optional<Record>>(const Record*)>;
  // Makes the change, with a new resourceVersion, and gives the record as it is then. An object
  // whose deletion was asked for and that nothing holds is gone afterwards, and given as it last
  // was.
  base::Result<Record> change(const Id& id, const Change& wanted,
                              Durability durability = Durability::kNow, News news = News::kTold);
  base::Result<base::Done> drop_tombstone(const Id& id);

  base::Result<base::Done> settle() { return ledger_.settle(); }
  std::string trouble() const { return ledger_.trouble(); }
  void start() { ledger_.start(); }
  base::Result<base::Done> close() { return ledger_.close(); }

  // Called with every change that is news, and whenever an object is gone, from the thread that
  // made it and with no lock held.
  void on_change(std::function<void(const Id&)> changed) { changed_ = std::move(changed); }
  // Called before the last trace of an object goes.
  void before_gone(std::function<base::Result<base::Done>(const Record&)> called) {
    before_gone_ = std::move(called);
  }

 private:
  bool held(const Record& record) const;
  base::Result<Record> keep(Record record, Durability durability);
  base::Result<Record> finish(Record record);
  base::Result<base::Done> remove(const Id& id);
  void install(const Id& id, std::shared_ptr<const Record> record);
  void notify(const Id& id) const;
  base::Result<base::Done> finish_providers();
  std::mutex& turn_of(const Id& id);

  Ledger ledger_;
  mutable std::mutex mutex_;  // Of records_ only; never held over a disk access.
  std::map<Id, std::shared_ptr<const Record>> records_;
  static constexpr std::size_t kTurns = 1024;  // So many that few objects share one.
  std::array<std::mutex, kTurns> turns_;
  std::atomic<std::int64_t> last_version_ = 0;
  std::function<void(const Id&)> changed_;
  std::function<base::Result<base::Done>(const Record&)> before_gone_;
};

}  // namespace manifests
