#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "libs/base/files.h"
#include "libs/manifests/disk.h"

namespace manifests {

// Knows what a power loss may take, and takes it. A file that was replaced and not synced is as it
// was before, or there with nothing in it, or as it is; a name outlives it when its folder was
// synced; what was added and not synced is there in part, with anything in it. For one thread.
class PowerLoss {
 public:
  // To be told of each step before it is taken (Disk::Gate), unless it is refused.
  void before(const std::filesystem::path& path, Disk::Step step) {
    switch (step) {
      case Disk::Step::kChange:
        loose_.erase(path);
        return;
      case Disk::Step::kLoose:
        if (!loose_.contains(path)) loose_[path] = {content_of(path)};
        loose_.at(path).synced = false;
        return;
      case Disk::Step::kAppend:
        if (!loose_.contains(path)) loose_[path] = {content_of(path), true};
        return;
      case Disk::Step::kSync:
        return sync(path);
    }
  }
  bool may_take(const std::filesystem::path& path) const { return loose_.contains(path); }

  // 0 takes everything; other seeds each take something else.
  void strike(std::uint64_t seed) {
    std::minstd_rand chance(seed);
    for (const auto& [path, loose] : loose_) {
      if (seed == 0)
        put(path, loose.durable);
      else if (loose.appended)
        tear(path, loose, chance);
      else
        undo(path, loose, chance);
    }
    loose_.clear();
  }

 private:
  using Content = std::optional<std::string>;
  struct Loose {
    Content durable = {};  // Nothing: no such file.
    bool appended = false;
    bool synced = false;  // Its content is, its name is not.
  };

  static Content content_of(const std::filesystem::path& path) {
    auto content = base::read_file(path);
    return content ? Content(*std::move(content)) : std::nullopt;
  }
  static void put(const std::filesystem::path& path, const Content& content) {
    if (content)
      std::ofstream(path, std::ios::binary | std::ios::trunc) << *content;
    else
      std::filesystem::remove(path);
  }

  void sync(const std::filesystem::path& path) {
    if (const auto found = loose_.find(path); found != loose_.end()) {
      if (found->second.appended)
        loose_.erase(found);
      else
        found->second.synced = true;
    }
    std::erase_if(loose_, [&](const auto& entry) {
      const auto& [file, loose] = entry;
      return file.parent_path() == path && !loose.appended &&
             (loose.synced || !std::filesystem::exists(file));
    });
  }

  static void tear(const std::filesystem::path& path, const Loose& loose,
                   std::minstd_rand& chance) {
    const std::string before = loose.durable.value_or("");
    std::string added = content_of(path).value_or("").substr(before.size());
    if (added.empty()) return;
    switch (chance() % 4) {
      case 0:
        added.clear();
        break;
      case 1:
        added.resize(chance() % added.size());
        break;
      case 2:  // The file grew, and its blocks never came.
        added.assign(added.size(), '\0');
        break;
      default:
        added[chance() % added.size()] ^= 0x20;
    }
    put(path, before + added);
  }

  static void undo(const std::filesystem::path& path, const Loose& loose,
                   std::minstd_rand& chance) {
    switch (chance() % 3) {
      case 0:
        return put(path, loose.durable);
      case 1:
        if (!loose.synced && std::filesystem::exists(path)) put(path, std::string());
        return;
      default:
        return;
    }
  }

  std::map<std::filesystem::path, Loose> loose_;
};

}  // namespace manifests
