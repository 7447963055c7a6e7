#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "libs/api/resource_store.h"
#include "libs/manifests/journal.h"
#include "libs/manifests/record.h"

namespace manifests {

// The records on disk: a file each, which people and other programs read, and before them the
// journal. A change is a line there first, and the file follows once that line is synced; what the
// journal tells counts more than a file that is older, or that a power loss has spoilt. The file
// of a journal is dropped when the records that it tells of are synced themselves. Safe to use from
// many threads; changes of one object come one after another.
class Ledger {
 public:
  using Durability = api::ResourceStore::Durability;
  Ledger(Layout layout, const Disk& disk, JournalOptions options);
  // Leaves everything as a crash would.
  ~Ledger();

  struct Kept {
    std::map<Id, Record> records;
    std::int64_t last_version = 0;
  };
  // What there is; once, before anything else.
  base::Result<Kept> load();

  // The record is this from now on. Versions grow from change to change of an object.
  base::Result<base::Done> put(const Record& record, std::int64_t version, Durability durability);
  // There is none any more. Durable when it returns: no file is left that could be newer than what
  // the journal told before.
  base::Result<base::Done> drop(const Id& id, std::int64_t version);

  // The last change of this one outlives a power loss when it returns.
  base::Result<base::Done> sync(const Id& id);
  // Every change that was acknowledged is durable, and in its file, when it returns.
  base::Result<base::Done> settle();
  // Why changes cannot be kept, or not be shown in their files; empty when the last one was.
  std::string trouble() const;
  // From now on that happens by itself, a moment after each change, and the journal is kept short.
  // Before, whoever waits for a change to be durable does it.
  void start();
  // Settles for good: no journal is left, and a program that knows none may read the folder. A
  // change that comes after all waits in the journal for the next start.
  base::Result<base::Done> close();

 private:
  using Text = std::shared_ptr<const std::string>;  // Null: the file is to go.
  struct Change {
    Text text;
    Journal::Mark mark;
  };
  struct Loose {
    Text text;
    bool doubtful = false;  // A sync failed that it needed: only writing it anew helps.
  };
  base::Result<base::Done> change(const Id& id, const std::string& line, Text text,
                                  Durability durability);
  base::Result<base::Done> try_change(const Id& id, const std::string& line, Text text,
                                      Durability durability);
  std::map<Id, Change> waiting();
  base::Result<base::Done> settle_in_turn();
  base::Result<base::Done> settle_and_trim();
  base::Result<base::Done> trim();
  base::Result<base::Done> write(const Id& id, const Text& text, Durable durable) const;
  base::Result<base::Done> sync_files();
  void run(const std::stop_token& stop);

  const Layout layout_;
  const Disk& disk_;
  Journal journal_;
  mutable std::mutex mutex_;  // Of waiting_ and both troubles.
  std::condition_variable_any changed_;
  std::map<Id, Change> waiting_;  // Acknowledged, and not in their files yet.
  std::string not_kept_, not_in_files_;
  std::mutex settling_;        // One at a time; of all below.
  std::map<Id, Loose> loose_;  // In their files, which are not synced.
  bool behind_ = false;        // The last time failed, and that was told.
  std::atomic<bool> started_ = false;
  std::jthread thread_;  // Last, so that it stops first.
};

}  // namespace manifests
