#include "libs/kube/store.h"

#include <gmock/gmock.h>

namespace kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct Box {
  api::Metadata metadata;
  std::string color = {};
};
using Pointer = Store<Box>::Pointer;

const api::Key kA{"", "a"}, kB{"", "b"}, kC{"", "c"};

Pointer box(const api::Key& key, const std::string& version, const std::string& uid = "u",
            const std::string& color = "red") {
  api::Metadata metadata{.key = key, .uid = uid, .resource_version = version};
  return std::make_shared<const Box>(Box{std::move(metadata), color});
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    store_.add_index("color", [](const Box& each) -> const std::string& { return each.color; });
  }
  std::string version_of(const api::Key& key) {
    const Pointer found = store_.find(key);
    return found ? found->metadata.resource_version : "none";
  }
  std::vector<std::string> names(const std::string& color) {
    std::vector<std::string> found;
    for (const Pointer& each : store_.find_by("color", color))
      found.push_back(each->metadata.key.name);
    return found;
  }

  Store<Box> store_;
};

TEST_F(StoreTest, TellsOnlyWhatIsNoLongerAsItWas) {
  EXPECT_THAT(store_.replace({box(kA, "1"), box(kB, "2")}, "5"), UnorderedElementsAre(kA, kB));
  EXPECT_THAT(store_.replace({box(kA, "1"), box(kB, "2")}, "6"), IsEmpty());
  EXPECT_THAT(store_.replace({box(kB, "7"), box(kC, "3")}, "8"), UnorderedElementsAre(kA, kB, kC));
  EXPECT_FALSE(store_.put(box(kB, "7")));
  EXPECT_TRUE(store_.put(box(kB, "9")));
  EXPECT_TRUE(store_.remove(box(kB, "10")->metadata));
  EXPECT_FALSE(store_.remove(box(kB, "10")->metadata));
  EXPECT_EQ(store_.size(), 1u);
}

TEST_F(StoreTest, TellsAnObjectThatWasMadeAnewUnderItsName) {
  store_.replace({box(kA, "1", "first")}, "5");
  EXPECT_THAT(store_.replace({box(kA, "1", "second")}, "6"), ElementsAre(kA));
}

TEST_F(StoreTest, FindsByIndex) {
  store_.replace({box(kA, "1"), box(kB, "2", "u", "blue"), box(kC, "3")}, "5");
  EXPECT_THAT(names("red"), ElementsAre("a", "c"));
  store_.put(box(kA, "6", "u", "blue"));
  EXPECT_THAT(names("red"), ElementsAre("c"));
  EXPECT_THAT(names("blue"), ElementsAre("a", "b"));
  store_.remove(box(kB, "7")->metadata);
  EXPECT_THAT(names("blue"), ElementsAre("a"));
  store_.replace({}, "9");
  EXPECT_THAT(names("red"), IsEmpty());
  EXPECT_THAT(names("blue"), IsEmpty());
}

// --- Our own writes: what they returned is never taken back by events of before.

TEST_F(StoreTest, IsNeverOlderThanOurOwnWrite) {
  store_.replace({box(kA, "1")}, "5");
  EXPECT_TRUE(store_.put_written(box(kA, "8")));
  EXPECT_FALSE(store_.put(box(kA, "6")));  // Somebody else's, before ours.
  EXPECT_EQ(version_of(kA), "8");
  EXPECT_FALSE(store_.put(box(kA, "8")));  // Ours, as an event.
  EXPECT_TRUE(store_.put(box(kA, "9")));
  EXPECT_FALSE(store_.put_written(box(kA, "8")));
  EXPECT_EQ(version_of(kA), "9");
}

TEST_F(StoreTest, KeepsOurOwnWriteOverAListOfBefore) {
  store_.replace({box(kA, "1")}, "5");
  store_.put_written(box(kA, "8"));
  store_.put_written(box(kB, "9"));  // Created by us.
  EXPECT_THAT(store_.replace({box(kA, "1")}, "7"), IsEmpty());
  EXPECT_EQ(version_of(kA), "8");
  EXPECT_EQ(version_of(kB), "9");
  EXPECT_THAT(store_.replace({box(kA, "8")}, "10"), ElementsAre(kB));
}

TEST_F(StoreTest, DoesNotBringBackWhatWasDeletedSinceWeWroteIt) {
  store_.replace({box(kA, "1")}, "5");
  store_.remove(box(kA, "9")->metadata);
  EXPECT_FALSE(store_.put_written(box(kA, "8")));
  EXPECT_EQ(version_of(kA), "none");
  store_.reach("20");
  EXPECT_FALSE(store_.put_written(box(kA, "19")));
  EXPECT_TRUE(store_.put_written(box(kA, "21")));
}

TEST_F(StoreTest, DoesNotTakeADeletionOfBeforeForOneOfWhatWeMade) {
  store_.replace({box(kA, "1", "first")}, "5");
  store_.put_written(box(kA, "8", "second"));
  EXPECT_FALSE(store_.remove(box(kA, "7", "first")->metadata));
  EXPECT_EQ(version_of(kA), "8");
}

TEST_F(StoreTest, BelievesAServerThatWasRestoredFromABackup) {
  store_.replace({box(kA, "50"), box(kB, "60")}, "70");
  EXPECT_THAT(store_.replace({box(kA, "40")}, "45"), UnorderedElementsAre(kA, kB));
  EXPECT_EQ(version_of(kA), "40");
  EXPECT_EQ(version_of(kB), "none");
}

TEST_F(StoreTest, KnowsWhatNeedNotBeReadAgain) {
  store_.replace({box(kA, "1", "u")}, "5");
  EXPECT_EQ(store_.find_same(kA, "u", "1"), store_.find(kA));
  EXPECT_EQ(store_.find_same(kA, "u", "2"), nullptr);
  EXPECT_EQ(store_.find_same(kA, "v", "1"), nullptr);
  EXPECT_EQ(store_.find_same(kB, "u", "1"), nullptr);
}

}  // namespace
}  // namespace kube
