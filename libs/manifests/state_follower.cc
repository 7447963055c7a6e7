#include "libs/manifests/state_follower.h"

#include <sys/stat.h>

#include <utility>

#include "libs/base/folder.h"
#include "libs/base/log.h"
#include "libs/manifests/record.h"

namespace manifests {

namespace fs = std::filesystem;

namespace {

constexpr base::Milliseconds kLookEvery{2'000};  // Whether somebody is at work shows in no file.

std::vector<fs::path> folders_in(const fs::path& state) {
  const fs::path records = Layout{state}.records(Kind::kSandbox);
  std::vector<fs::path> folders = {state, records};
  for (const fs::path& space : base::entries_of(records)) folders.push_back(space);
  return folders;
}

}  // namespace

StateFollower::StateFollower(fs::path state, std::function<void(const News&)> tell)
    : state_(std::move(state)),
      tell_(std::move(tell)),
      reader_(state_),
      watcher_([this] { return folders_in(state_); }, [this] { return look(); }) {
  watcher_.start();
}

// A folder that nobody holds may be on its way out, or not be the one that it was.
base::Milliseconds StateFollower::look() {
  News news;
  const auto held = reader_.held();
  news.held = held && *held;
  if (news.held) compare(files_now(), news);
  if (!news.changed.empty() || news.held != told_held_) tell_(news);
  told_held_ = news.held;
  return kLookEvery;
}

StateFollower::Files StateFollower::files_now() const {
  Files files;
  for (const fs::path& space : base::entries_of(Layout{state_}.records(Kind::kSandbox)))
    for (const fs::path& file : base::entries_of(space)) {
      struct stat about{};
      if (!is_record(file) || ::stat(file.c_str(), &about) != 0) continue;
      constexpr std::int64_t kNanoseconds = 1'000'000'000;
      files.emplace(file, Seen{about.st_dev, about.st_ino,
                               about.st_mtim.tv_sec * kNanoseconds + about.st_mtim.tv_nsec});
    }
  return files;
}

// What cannot be read keeps its last readable version.
void StateFollower::compare(Files now, News& news) {
  for (auto& [file, seen] : now) {
    const auto before = files_.find(file);
    if (before != files_.end()) {
      const Seen& old = before->second;
      seen.sandbox = old.sandbox;
      if (seen.device == old.device && seen.inode == old.inode && seen.changed_ns == old.changed_ns)
        continue;
    }
    const auto record = read_record(file, Kind::kSandbox);
    if (!record) {
      base::log::warn("a record cannot be read, its last readable version stands",
                      {{"error", record.error()}});
      continue;
    }
    const auto sandbox = *record ? (*record)->sandbox : nullptr;
    if (seen.sandbox && (!sandbox || sandbox->metadata.key != seen.sandbox->metadata.key))
      news.changed.insert_or_assign(seen.sandbox->metadata.key, nullptr);
    seen.sandbox = sandbox;
    if (sandbox) news.changed.insert_or_assign(sandbox->metadata.key, sandbox);
  }
  for (const auto& [file, seen] : files_)
    if (seen.sandbox && !now.contains(file))
      news.changed.insert_or_assign(seen.sandbox->metadata.key, nullptr);
  files_ = std::move(now);
}

}  // namespace manifests
