#include "libs/manifests/plan.h"

#include <algorithm>

namespace manifests {
namespace {

// Which document speaks for each object, and what the others get.
class Declarations {
 public:
  Declarations(const Comparison& seen, std::vector<yaml::Problem>& problems) : seen_(seen) {
    for (const ReadFile& file : seen.files)
      if (!file.good()) broken_.insert(file.name);
    for (const ReadFile& file : seen.files)
      for (const Declared& object : file.reading->objects)
        if (object.kind != Kind::kSecret) all_[{object.kind, object.key}].push_back(&object);
    for (auto& [id, candidates] : all_) choose(id, candidates, problems);
  }

  const std::map<Id, const Declared*>& chosen() const { return chosen_; }
  bool is_broken(const std::string& file) const { return broken_.contains(file); }

 private:
  void choose(const Id& id, const std::vector<const Declared*>& candidates,
              std::vector<yaml::Problem>& problems) {
    const auto record = seen_.records.find(id);
    const std::string incumbent =
        record == seen_.records.end() || record->second->tombstone() ? "" : record->second->file;
    const bool held_by_broken = !incumbent.empty() && is_broken(incumbent);
    const Declared* winner = nullptr;
    if (!held_by_broken) {
      winner = candidates.front();
      for (const Declared* candidate : candidates)
        if (candidate->file == incumbent) winner = candidate;
      chosen_[id] = winner;
    }
    const std::string first = winner ? winner->file : incumbent;
    for (const Declared* candidate : candidates) {
      if (candidate == winner) continue;
      problems.push_back({candidate->file, candidate->line, 1, "metadata.name",
                          to_text(id) + " stands in " + first +
                              (winner ? " already" : " already, which cannot be read now"),
                          "remove one of the two, or rename it"});
    }
  }

  const Comparison& seen_;
  std::set<std::string> broken_;
  std::map<Id, std::vector<const Declared*>> all_;
  std::map<Id, const Declared*> chosen_;
};

void plan_declared(const Comparison& seen, const Declarations& declarations, Plan& plan) {
  for (const auto& [id, document] : declarations.chosen()) {
    const auto found = seen.records.find(id);
    if (found == seen.records.end()) {
      plan.creations.push_back(document);
      continue;
    }
    const Record& record = *found->second;
    const bool same = record.digest == document->digest;
    if (record.tombstone()) {
      if (!same) plan.creations.push_back(document);
      continue;
    }
    const bool moved = record.file != document->file || record.document != document->document;
    if (!same || moved) plan.updates.push_back(document);
  }
}

bool is_removal(const Record& record) { return !record.tombstone() && !record.deleting(); }

yaml::Problem hollow(const ReadFile& file, const std::vector<Id>& left) {
  std::string what = file.folder ? "is a folder now" : "holds no document any more";
  what += ", and " + to_text(left.front());
  if (left.size() > 1) what += " and " + std::to_string(left.size() - 1) + " more";
  what += left.size() > 1 ? " were declared in it" : " was declared in it";
  return {file.name,
          0,
          0,
          "",
          what,
          std::string("put the manifest back, or remove the ") + (file.folder ? "folder" : "file") +
              " to delete what it declared"};
}

// Files that are there, held objects and say nothing now: what a full disk leaves of an edit, or a
// folder put in the place. That is no wish; whoever wants the objects gone removes the file. What
// stands in another file has moved, and was not lost.
std::set<std::string> hollow_files(const Comparison& seen, const Declarations& declarations,
                                   std::vector<yaml::Problem>& problems) {
  std::map<std::string, std::vector<Id>> left;
  for (const auto& [id, record] : seen.records)
    if (is_removal(*record) && !declarations.chosen().contains(id))
      left[record->file].push_back(id);
  std::set<std::string> files;
  for (const ReadFile& file : seen.files) {
    const auto found = left.find(file.name);
    if (!file.good() || !file.reading->objects.empty() || found == left.end()) continue;
    problems.push_back(hollow(file, found->second));
    files.insert(file.name);
  }
  return files;
}

void plan_missing(const Comparison& seen, const Declarations& declarations, Plan& plan) {
  const std::set<std::string> hollow = hollow_files(seen, declarations, plan.problems);
  for (const auto& [id, record] : seen.records) {
    if (declarations.chosen().contains(id) || declarations.is_broken(record->file)) continue;
    if (hollow.contains(record->file)) continue;
    if (record->deleting() && !record->passed_over) continue;
    const auto before = seen.missing.find(id);
    plan.missing[id] = before == seen.missing.end() ? seen.now : before->second;
  }
}

// Everything that is missing counts, held long enough or not: a folder that empties slowly is
// caught before its first removal is believed.
std::string too_much(const Comparison& seen, const Plan& plan) {
  std::size_t live = 0, going = 0;
  for (const auto& [id, record] : seen.records) {
    if (!is_removal(*record)) continue;
    ++live;
    if (plan.missing.contains(id) && !seen.released.contains(id)) ++going;
  }
  if (going <= kRemovalsMax || going * 2 <= live) return "";
  return std::to_string(going) + " of " + std::to_string(live) +
         " objects are gone from the manifests at once";
}

void plan_removals(const Comparison& seen, Plan& plan) {
  const bool braked = seen.braked || !plan.brake_reason.empty();
  for (const auto& [id, since] : plan.missing) {
    const base::Moment due = since + seen.removal_hold;
    if (seen.now < due) {
      plan.next_look = plan.next_look ? std::min(*plan.next_look, due) : due;
      continue;
    }
    if (!is_removal(*seen.records.at(id)))
      plan.forgotten.push_back(id);
    else if (!braked || seen.released.contains(id))
      plan.removals.push_back(id);
  }
}

}  // namespace

Plan compare(const Comparison& seen) {
  Plan plan;
  for (const ReadFile& file : seen.files)
    plan.problems.insert(plan.problems.end(), file.reading->problems.begin(),
                         file.reading->problems.end());
  const Declarations declarations(seen, plan.problems);
  plan_declared(seen, declarations, plan);
  plan_missing(seen, declarations, plan);
  plan.brake_reason = too_much(seen, plan);
  plan_removals(seen, plan);
  return plan;
}

}  // namespace manifests
