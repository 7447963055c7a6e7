#pragma once

#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "libs/api/resource_store.h"
#include "libs/manifests/disk.h"

namespace manifests {

inline constexpr std::size_t kEventsMax = 1000;  // The eldest go first.

// Events, one JSON line each time one happens; a later line of the same event takes the place of
// the earlier. The file is rewritten when it has several lines for each event that is kept. Not
// synced: an event may be lost with the machine, never with the process.
class EventLog {
 public:
  EventLog(std::filesystem::path path, const Disk& disk, const base::Clock& clock);
  void record(const api::Key& regarding, const std::string& uid, const api::Event& event);

 private:
  using Same = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  void rewrite();

  const std::filesystem::path path_;
  const Disk& disk_;
  const base::Clock& clock_;
  std::mutex mutex_;
  std::list<api::RecordedEvent> events_;  // By last occurrence.
  std::map<Same, std::list<api::RecordedEvent>::iterator> known_;
  std::size_t lines_ = 0;
};

// By last occurrence, eldest first. Lines that a crash cut short are passed over.
base::Result<std::vector<api::RecordedEvent>> read_events(const std::filesystem::path& path);

}  // namespace manifests
