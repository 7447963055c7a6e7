#include "libs/manifests/plan.h"

#include <gmock/gmock.h>

namespace manifests {
namespace {

using base::Milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Id id_of(const std::string& name) { return {Kind::kSandbox, {"default", name}}; }

class Seen {
 public:
  Comparison seen;

  Seen& record(const std::string& name, const std::string& file, const std::string& digest = "1") {
    api::Sandbox sandbox;
    sandbox.metadata.key = {"default", name};
    records_[name] = {id_of(name), std::make_shared<const api::Sandbox>(sandbox)};
    records_[name].file = file;
    records_[name].digest = digest;
    return *this;
  }
  Seen& deleting(const std::string& name, bool passed_over) {
    api::Sandbox sandbox = *records_[name].sandbox;
    sandbox.metadata.deleted = base::WallTime{};
    records_[name].sandbox = std::make_shared<const api::Sandbox>(sandbox);
    records_[name].passed_over = passed_over;
    return *this;
  }
  Seen& tombstone(const std::string& name) {
    records_[name].sandbox.reset();
    records_[name].passed_over = true;
    return *this;
  }
  Seen& file(const std::string& name, const std::vector<std::string>& objects,
             const std::string& digest = "1") {
    auto reading = std::make_shared<Reading>();
    for (const std::string& object : objects) {
      Declared declared{Kind::kSandbox, {"default", object}};
      declared.file = name;
      declared.digest = digest;
      reading->objects.push_back(declared);
    }
    seen.files.push_back({name, reading});
    kept().push_back(reading);
    return *this;
  }
  Seen& folder(const std::string& name) {
    seen.files.push_back({name, std::make_shared<Reading>(), true});
    return *this;
  }
  Seen& broken(const std::string& name) {
    auto reading = std::make_shared<Reading>();
    reading->problems.push_back({name, 1, 1, "", "broken", "mend it"});
    seen.files.push_back({name, reading});
    return *this;
  }
  Seen& missing_since(const std::string& name, Milliseconds ago) {
    seen.missing[id_of(name)] = seen.now - ago;
    return *this;
  }
  Plan plan() {
    for (const auto& [name, record] : records_)
      seen.records[record.id] = std::make_shared<const Record>(record);
    return compare(seen);
  }

  Seen() { seen.now = base::Moment(std::chrono::hours(1)); }

 private:
  // A plan points into the documents, so they outlive the comparison.
  static std::vector<std::shared_ptr<const Reading>>& kept() {
    static std::vector<std::shared_ptr<const Reading>> readings;
    return readings;
  }

  std::map<std::string, Record> records_;
};

std::vector<std::string> names(const std::vector<const Declared*>& documents) {
  std::vector<std::string> found;
  found.reserve(documents.size());
  for (const Declared* document : documents)
    found.push_back(document->file + "/" + document->key.name);
  return found;
}

std::vector<std::string> names(const std::vector<Id>& ids) {
  std::vector<std::string> found;
  found.reserve(ids.size());
  for (const Id& id : ids) found.push_back(id.key.name);
  return found;
}

TEST(Plan, MakesWhatIsNewAndUpdatesWhatChanged) {
  const Plan plan = Seen()
                        .record("b", "a.yaml")
                        .record("c", "a.yaml")
                        .file("a.yaml", {"a", "b"}, "1")
                        .file("c.yaml", {"c"}, "2")
                        .plan();
  EXPECT_THAT(names(plan.creations), ElementsAre("a.yaml/a"));
  EXPECT_THAT(names(plan.updates), ElementsAre("c.yaml/c"));
  EXPECT_THAT(plan.missing, IsEmpty());
}

TEST(Plan, FollowsAnObjectIntoAnotherFile) {
  const Plan plan = Seen().record("a", "a.yaml").file("b.yaml", {"a"}).plan();
  EXPECT_THAT(names(plan.updates), ElementsAre("b.yaml/a"));
  EXPECT_THAT(plan.missing, IsEmpty());
}

TEST(Plan, BelievesARemovalOnlyWhenItHasHeld) {
  const auto with = [](Milliseconds ago) {
    return Seen().record("a", "a.yaml").missing_since("a", ago).plan();
  };
  const Plan first = Seen().record("a", "a.yaml").plan();
  EXPECT_THAT(first.removals, IsEmpty());
  EXPECT_THAT(first.missing, SizeIs(1));
  EXPECT_TRUE(first.next_look.has_value());
  EXPECT_THAT(with(Milliseconds(1999)).removals, IsEmpty());
  EXPECT_THAT(names(with(Milliseconds(2000)).removals), ElementsAre("a"));
}

TEST(Plan, KeepsWhatABrokenFileDeclared) {
  const Plan plan =
      Seen().record("a", "a.yaml").missing_since("a", Milliseconds(9000)).broken("a.yaml").plan();
  EXPECT_THAT(plan.removals, IsEmpty());
  EXPECT_THAT(plan.missing, IsEmpty());
  EXPECT_THAT(plan.problems, SizeIs(1));
}

TEST(Plan, LetsTheFirstOfTwoDocumentsWin) {
  const Plan fresh = Seen().file("a.yaml", {"x"}).file("b.yaml", {"x"}, "2").plan();
  EXPECT_THAT(names(fresh.creations), ElementsAre("a.yaml/x"));
  ASSERT_THAT(fresh.problems, SizeIs(1));
  EXPECT_EQ(
      to_text(fresh.problems[0]),
      "b.yaml:1:1: metadata.name: Sandbox default/x stands in a.yaml already; remove one of the "
      "two, or rename it");
  // The file that had it keeps it, whatever its name.
  const Plan known =
      Seen().record("x", "b.yaml").file("a.yaml", {"x"}, "2").file("b.yaml", {"x"}).plan();
  EXPECT_THAT(known.updates, IsEmpty());
  EXPECT_THAT(known.problems, SizeIs(1));
}

TEST(Plan, LetsABrokenFileKeepItsObjectsFromOthers) {
  const Plan plan = Seen().record("x", "a.yaml").broken("a.yaml").file("b.yaml", {"x"}, "2").plan();
  EXPECT_THAT(plan.updates, IsEmpty());
  EXPECT_THAT(plan.creations, IsEmpty());
  ASSERT_THAT(plan.problems, SizeIs(2));
  EXPECT_EQ(plan.problems[1].rule,
            "Sandbox default/x stands in a.yaml already, which cannot be read now");
}

TEST(Plan, KeepsWhatAFileDeclaredThatHoldsNoDocumentAnyMore) {
  const auto held_long = Milliseconds(9000);
  struct Case {
    const char* name;
    Seen seen;
    std::vector<std::string> missing, problems;
  };
  const std::string cure = "; put the manifest back, or remove the file to delete what it declared";
  const Case kCases[] = {
      {"it held one",
       Seen().record("a", "a.yaml").missing_since("a", held_long).file("a.yaml", {}),
       {},
       {"a.yaml: holds no document any more, and Sandbox default/a was declared in it" + cure}},
      {"it held three",
       Seen().record("a", "a.yaml").record("b", "a.yaml").record("c", "a.yaml").file("a.yaml", {}),
       {},
       {"a.yaml: holds no document any more, and Sandbox default/a and 2 more were declared in it" +
        cure}},
      {"a folder took its place",
       Seen().record("a", "a.yaml").folder("a.yaml"),
       {},
       {"a.yaml: is a folder now, and Sandbox default/a was declared in it; put the manifest back, "
        "or remove the folder to delete what it declared"}},
      {"it holds another one", Seen().record("a", "a.yaml").file("a.yaml", {"b"}), {"a"}, {}},
      {"it is gone", Seen().record("a", "a.yaml").file("b.yaml", {}), {"a"}, {}},
      {"it never held any",
       Seen().record("a", "b.yaml").file("b.yaml", {"a"}).file("a.yaml", {}),
       {},
       {}},
      {"a folder never held any", Seen().folder("a.yaml"), {}, {}},
      {"all moved", Seen().record("a", "a.yaml").file("a.yaml", {}).file("b.yaml", {"a"}), {}, {}},
      {"one of two moved",
       Seen().record("a", "a.yaml").record("b", "a.yaml").file("a.yaml", {}).file("b.yaml", {"a"}),
       {},
       {"a.yaml: holds no document any more, and Sandbox default/b was declared in it" + cure}},
      {"what it held is being deleted",
       Seen().record("a", "a.yaml").deleting("a", true).file("a.yaml", {}),
       {"a"},
       {}},
      {"what it held was deleted",
       Seen().record("a", "a.yaml").tombstone("a").file("a.yaml", {}),
       {"a"},
       {}},
      {"some of what it held was deleted",
       Seen().record("a", "a.yaml").tombstone("a").record("b", "a.yaml").file("a.yaml", {}),
       {},
       {"a.yaml: holds no document any more, and Sandbox default/b was declared in it" + cure}},
  };
  for (Case each : kCases) {
    SCOPED_TRACE(each.name);
    const Plan plan = each.seen.plan();
    std::vector<std::string> missing, problems;
    for (const auto& [id, since] : plan.missing) missing.push_back(id.key.name);
    for (const yaml::Problem& problem : plan.problems) problems.push_back(to_text(problem));
    EXPECT_EQ(missing, each.missing);
    EXPECT_EQ(problems, each.problems);
    EXPECT_THAT(plan.removals, IsEmpty());
  }
}

TEST(Plan, PassesOverATombstoneUntilItsDocumentChanges) {
  EXPECT_THAT(Seen().record("a", "a.yaml").tombstone("a").file("a.yaml", {"a"}).plan().creations,
              IsEmpty());
  EXPECT_THAT(
      names(
          Seen().record("a", "a.yaml").tombstone("a").file("a.yaml", {"a"}, "2").plan().creations),
      ElementsAre("a.yaml/a"));
}

TEST(Plan, ForgetsATombstoneWhoseDocumentIsGone) {
  const Plan plan =
      Seen().record("a", "a.yaml").tombstone("a").missing_since("a", Milliseconds(2000)).plan();
  EXPECT_THAT(names(plan.forgotten), ElementsAre("a"));
  EXPECT_THAT(plan.removals, IsEmpty());
}

TEST(Plan, DoesNotDeleteTwice) {
  const Plan plan = Seen()
                        .record("a", "a.yaml")
                        .deleting("a", false)
                        .missing_since("a", Milliseconds(9000))
                        .plan();
  EXPECT_THAT(plan.removals, IsEmpty());
  EXPECT_THAT(plan.missing, IsEmpty());
}

struct BrakeCase {
  const char* name;
  int live, gone;
  bool braked;
};

TEST(Plan, BrakesWhenMoreThanTenAndMoreThanHalfGoAtOnce) {
  const BrakeCase kCases[] = {
      {"ten of ten", 10, 10, false},
      {"eleven of eleven", 11, 11, true},
      {"eleven of 21", 21, 11, true},
      {"eleven of 22", 22, 11, false},
      {"one of one", 1, 1, false},
      {"none of many", 30, 0, false},
      {"fifty of a hundred", 100, 50, false},
      {"51 of a hundred", 100, 51, true},
  };
  for (const BrakeCase& each : kCases) {
    SCOPED_TRACE(each.name);
    Seen seen;
    std::vector<std::string> left;
    for (int index = 0; index < each.live; ++index) {
      const std::string name = "s" + std::to_string(index);
      seen.record(name, index < each.gone ? "gone.yaml" : "a.yaml");
      if (index < each.gone)
        seen.missing_since(name, Milliseconds(2000));
      else
        left.push_back(name);
    }
    const Plan plan = seen.file("a.yaml", left).plan();
    EXPECT_EQ(!plan.brake_reason.empty(), each.braked);
    EXPECT_THAT(plan.removals, SizeIs(each.braked ? 0 : each.gone));
  }
}

TEST(Plan, HoldsEverythingBackWhileBraked) {
  Seen seen;
  seen.record("a", "a.yaml").record("b", "a.yaml").missing_since("a", Milliseconds(2000));
  seen.file("a.yaml", {"b"});
  seen.seen.braked = true;
  EXPECT_THAT(seen.plan().removals, IsEmpty());
  seen.seen.released.insert(id_of("a"));
  EXPECT_THAT(names(seen.plan().removals), ElementsAre("a"));
}

TEST(Plan, CountsReleasedRemovalsNoMore) {
  Seen seen;
  for (int index = 0; index < 20; ++index) {
    const std::string name = "s" + std::to_string(index);
    seen.record(name, "a.yaml").missing_since(name, Milliseconds(2000));
    seen.seen.released.insert(id_of(name));
  }
  const Plan plan = seen.plan();
  EXPECT_EQ(plan.brake_reason, "");
  EXPECT_THAT(plan.removals, SizeIs(20));
}

}  // namespace
}  // namespace manifests
