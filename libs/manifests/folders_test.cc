// The two folders of a store: whose they are, and what happens to them.

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "libs/base/staged.h"
#include "libs/manifests/testing/store_fixture.h"

namespace manifests {
namespace {

using api::Key;
using base::ErrorCode;
using base::Milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Store, RemovesWhatAProcessThatDiedLeftHalfWritten) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  store_.reset();
  const auto leave = [&](const fs::path& folder) {
    fs::create_directories(folder);
    std::ofstream(folder / base::staged_name("x.json")) << "half";
    return folder;
  };
  const fs::path state = options_.state;
  const std::vector<fs::path> folders = {leave(state),
                                         leave(state / "sandboxes"),
                                         leave(state / "sandboxes/default"),
                                         leave(state / "sandboxproviders"),
                                         leave(state / "releases"),
                                         leave(state / "ways-in"),
                                         leave(state / "requests/results"),
                                         leave(options_.manifests / ".sandfleet")};
  const fs::path asked = leave(state / "requests") / base::staged_name("old.json");
  std::ofstream(asked) << "half";
  fs::last_write_time(asked, fs::file_time_type::clock::now() - std::chrono::hours(2));
  std::ofstream(state / ".notes.tmp") << "a person's";
  const auto left_in = [](const fs::path& folder) {
    return std::ranges::count_if(fs::directory_iterator(folder), [](const auto& entry) {
      return base::is_staged_name(entry.path().filename().string());
    });
  };
  open();
  for (const auto& folder : folders) EXPECT_EQ(left_in(folder), 0) << folder;
  EXPECT_EQ(left_in(state / "requests"), 1) << "one that is being written";
  EXPECT_FALSE(fs::exists(asked));
  EXPECT_TRUE(fs::exists(state / ".notes.tmp"));
  EXPECT_TRUE(store_->find_sandbox(kA));
}

TEST_F(Store, WantsTwoFoldersThatLieApart) {
  const fs::path folder = fs::canonical(folder_.path());
  const fs::path manifests = folder / "manifests";
  fs::create_directory_symlink(manifests, folder / "link");
  const std::string advice =
      "; give the controller a state folder of its own, beside the manifests";
  const std::string one = "the folder of manifests (" + manifests.string() +
                          ") and the state folder (" + manifests.string() + ") are one" + advice;
  for (const fs::path& state : {manifests, folder / "link", manifests / "", manifests / ".",
                                folder / "state/../manifests"}) {
    options_.state = state;
    EXPECT_EQ(refusal(), one) << state;
  }
  for (const fs::path& state : {manifests / "state", folder / "link/deep/er"}) {
    options_.state = state;
    EXPECT_THAT(refusal(), HasSubstr(") are one inside the other" + advice)) << state;
  }
  options_.manifests = folder / "state/requests";
  fs::create_directories(options_.manifests);
  options_.state = folder / "state";
  EXPECT_THAT(refusal(), HasSubstr(") are one inside the other" + advice));
  EXPECT_FALSE(fs::exists(folder / "state/lock")) << "nothing was made";
  EXPECT_TRUE(fs::is_empty(manifests));

  options_.manifests = manifests;
  options_.state = folder / "manifests-state";
  EXPECT_EQ(refusal(), "opened") << "a name that begins the same is no folder within";
}

TEST_F(Store, BrakesWhenTheFolderIsGoneAndDeletesNothing) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  fs::rename(options_.manifests, folder_.path() / "elsewhere");
  settle();
  EXPECT_NE(uid(), "");
  ASSERT_TRUE(store_->brake());
  EXPECT_THAT(store_->brake()->reason, HasSubstr("No such file or directory"));
  const auto early = ask({Request::Kind::kReleaseBrake});
  EXPECT_FALSE(early.done);
  EXPECT_THAT(early.message, HasSubstr("cannot be used yet"));
  // Across a restart, too.
  open();
  settle();
  EXPECT_NE(uid(), "");
  ASSERT_TRUE(store_->brake());
  // The same folder is back: it is read again, but nothing is deleted until released.
  fs::rename(folder_.path() / "elsewhere", options_.manifests);
  write("b.yaml", sandbox_yaml("b"));
  remove("a.yaml");
  settle();
  EXPECT_NE(uid("a"), "");
  EXPECT_NE(uid("b"), "");
  EXPECT_TRUE(ask({Request::Kind::kReleaseBrake}).done);
  EXPECT_FALSE(store_->brake());
  settle();
  EXPECT_EQ(uid("a"), "");
}

TEST_F(Store, BrakesWhenAnotherFolderTookThePlace) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  write("b.yaml", sandbox_yaml("b"));
  scan();
  const std::string before = uid("b");
  fs::rename(options_.manifests, folder_.path() / "elsewhere");
  fs::create_directory(options_.manifests);
  write("b.yaml", sandbox_yaml("b"));
  settle();
  EXPECT_NE(uid("a"), "");
  ASSERT_TRUE(store_->brake());
  EXPECT_THAT(store_->brake()->reason, HasSubstr("is another folder than before"));
  EXPECT_TRUE(ask({Request::Kind::kReleaseBrake}).done);
  settle();
  EXPECT_EQ(uid("a"), "");
  EXPECT_EQ(uid("b"), before);
  EXPECT_TRUE(fs::exists(options_.manifests / ".sandfleet" / "identity.json"));
  open();
  scan();
  EXPECT_FALSE(store_->brake());
  EXPECT_EQ(uid("b"), before);
}

TEST_F(Store, BrakesWhenMostObjectsGoAtOnce) {
  open();
  write_many(12);
  scan();
  for (int index = 0; index < 12; ++index) remove("s" + std::to_string(index) + ".yaml");
  settle();
  EXPECT_THAT(store_->sandboxes(), SizeIs(12));
  ASSERT_TRUE(store_->brake());
  EXPECT_EQ(store_->brake()->reason, "12 of 12 objects are gone from the manifests at once");
  open();
  settle();
  EXPECT_THAT(store_->sandboxes(), SizeIs(12));
  const auto shown = StateReader(options_.state).brake();
  ASSERT_TRUE(shown);
  EXPECT_EQ(*shown, store_->brake());
  EXPECT_TRUE(ask({Request::Kind::kReleaseBrake}).done);
  settle();
  EXPECT_THAT(store_->sandboxes(), IsEmpty());
  EXPECT_FALSE(store_->brake());
}

TEST_F(Store, LetsARequestToDeleteThroughTheBrake) {
  open();
  write_many(12);
  scan();
  for (int index = 0; index < 12; ++index) remove("s" + std::to_string(index) + ".yaml");
  settle();
  ASSERT_TRUE(store_->brake());
  EXPECT_TRUE(ask({Request::Kind::kDelete, {"default", "s3"}}).done);
  EXPECT_EQ(uid("s3"), "");
  EXPECT_THAT(store_->sandboxes(), SizeIs(11));
}

TEST_F(Store, FindsItsUidsAgainWhenTheStateFolderIsLost) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid(), fleet = store_->fleet_id();
  const auto created = store_->find_sandbox(kA)->metadata.created;
  store_.reset();
  fs::remove_all(options_.state);
  clock_.advance(Milliseconds(60'000));
  open();
  scan();
  EXPECT_EQ(uid(), before);
  EXPECT_EQ(store_->find_sandbox(kA)->metadata.created, created);
  EXPECT_EQ(store_->fleet_id(), fleet);
}

TEST_F(Store, MarksWhatItKnowsNothingButTheUidOf) {
  const auto marked = [&](const Key& key) {
    const auto& annotations = store_->find_sandbox(key)->metadata.annotations;
    return annotations.contains(std::string(api::kRecoveredAnnotation));
  };
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  EXPECT_FALSE(marked(kA));
  store_.reset();
  fs::remove_all(options_.state);
  open();
  write("b.yaml", sandbox_yaml("b"));
  scan();
  EXPECT_TRUE(marked(kA));
  EXPECT_FALSE(marked({"default", "b"}));
  open();
  scan();
  EXPECT_TRUE(marked(kA)) << "a restart teaches nothing about what was lost";
}

TEST_F(Store, FindsUidsAgainAlsoWhenThatWasInterrupted) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  store_.reset();
  fs::remove_all(options_.state);
  open();
  open();  // A second start before the first scan.
  scan();
  EXPECT_EQ(uid(), before);
}

TEST_F(Store, RefusesAClonedFolderUnlessThatIsMeant) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  store_.reset();
  fs::copy(options_.manifests, folder_.path() / "clone", fs::copy_options::recursive);
  options_.manifests = folder_.path() / "clone";
  options_.state = folder_.path() / "state-of-the-clone";
  EXPECT_THAT(refusal(), HasSubstr("was made for another folder: it was moved or copied"));
  options_.claim_moved_manifests = true;
  open();
  scan();
  EXPECT_EQ(uid(), before);
  options_.claim_moved_manifests = false;
  open();
}

TEST_F(Store, RefusesAFolderOfAnotherMachine) {
  open();
  options_.machine_id = "machine-2";
  options_.state = folder_.path() / "other-state";
  EXPECT_THAT(refusal(), HasSubstr("was made on another machine"));
}

TEST_F(Store, MakesAnInstallationOfItsOwnOfACopyWithoutIdentity) {
  open();
  const std::string fleet = store_->fleet_id();
  store_.reset();
  fs::copy(options_.manifests, folder_.path() / "clone", fs::copy_options::recursive);
  fs::remove_all(folder_.path() / "clone" / ".sandfleet");
  options_.manifests = folder_.path() / "clone";
  options_.state = folder_.path() / "state-of-the-clone";
  open();
  EXPECT_NE(store_->fleet_id(), fleet);
}

TEST_F(Store, RefusesAStateFolderOfOtherManifests) {
  open();
  store_.reset();
  options_.fleet_id = "another";
  EXPECT_THAT(refusal(), HasSubstr("but the flag for the fleet id says another"));
}

TEST_F(Store, KeepsGitOutOfItsIdentity) {
  open();
  EXPECT_EQ(*base::read_file(options_.manifests / ".sandfleet" / ".gitignore"), "*\n");
}

TEST_F(Store, LetsOneControllerHaveTheFolders) {
  open();
  auto other = options_;
  other.state = folder_.path() / "other-state";
  auto refused = FileStore::open(other, clock_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("manifests is used by another controller"));
  other = options_;
  other.manifests = folder_.path() / "other-manifests";
  fs::create_directory(other.manifests);
  refused = FileStore::open(other, clock_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("state is used by another controller"));
}

// Takes the state folder from under a store that is at work, and puts it back.
struct Loss {
  const char* words;
  std::function<void(const fs::path& state, const fs::path& aside)> take, restore;
};

const Loss kLosses[] = {
    {"was removed", [](const fs::path& state, const fs::path& aside) { fs::rename(state, aside); },
     [](const fs::path& state, const fs::path& aside) { fs::rename(aside, state); }},
    {"is not the one that this controller began with",
     [](const fs::path& state, const fs::path& aside) {
       fs::rename(state, aside);
       fs::copy(aside, state, fs::copy_options::recursive);
     },
     [](const fs::path& state, const fs::path& aside) {
       fs::remove_all(state);
       fs::rename(aside, state);
     }},
    {"or was emptied",
     [](const fs::path& state, const fs::path& aside) {
       fs::create_directory(aside);
       for (const auto& each : fs::directory_iterator(state))
         fs::rename(each.path(), aside / each.path().filename());
     },
     [](const fs::path& state, const fs::path& aside) {
       for (const auto& each : fs::directory_iterator(aside))
         fs::rename(each.path(), state / each.path().filename());
     }},
};

TEST_F(Store, RecordsAndDeletesNothingWhileItsStateFolderIsNotTheOneOfBefore) {
  for (const Loss& loss : kLosses) {
    SCOPED_TRACE(loss.words);
    fs::remove_all(options_.state);
    write("a.yaml", sandbox_yaml("a"));
    open();
    scan();
    hold("a");
    const std::string known = uid();
    ASSERT_TRUE(store_->add_release({"sb-1", "uid", "default", "Leave", clock_.wall()}));
    ASSERT_TRUE(store_->scan_once()) << "everything is in its file";
    EXPECT_EQ(store_->trouble(), "");

    loss.take(options_.state, folder_.path() / "aside");
    EXPECT_THAT(store_->trouble(), HasSubstr(loss.words));
    const std::string left = files_in(options_.state);
    remove("a.yaml");
    write("b.yaml", sandbox_yaml("b"));
    for (int looks = 0; looks < 3; ++looks) {
      const auto scanned = store_->scan_once();
      ASSERT_FALSE(scanned);
      EXPECT_EQ(scanned.error().code, ErrorCode::kUnavailable);
      clock_.advance(options_.removal_hold);
    }
    const auto found = store_->find_sandbox(kA);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->deleting());
    EXPECT_EQ(uid("b"), "");
    EXPECT_EQ(store_->releases("default").error().code, ErrorCode::kUnavailable)
        << "that it is not there says nothing of what was let go";
    EXPECT_EQ(store_->kept_way_in(known).error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(store_->update_metadata(kA, {known}, {{"k", "v"}}, found->metadata.finalizers));
    EXPECT_FALSE(store_->add_release({"sb-2", "uid", "default", "Leave", clock_.wall()}));
    EXPECT_EQ(files_in(options_.state), left) << "another's folder";

    loss.restore(options_.state, folder_.path() / "aside");
    fs::remove_all(folder_.path() / "aside");
    settle();
    EXPECT_EQ(store_->trouble(), "");
    EXPECT_THAT(*store_->releases("default"), SizeIs(1));
    EXPECT_TRUE(store_->find_sandbox(kA)->deleting()) << "the removal holds";
    EXPECT_NE(uid("b"), "");
    store_.reset();
    remove("b.yaml");
    fs::remove_all(options_.manifests / ".sandfleet");
  }
}

TEST_F(Store, WantsItsFolderToBeThereTheFirstTime) {
  options_.manifests = folder_.path() / "nowhere";
  EXPECT_THAT(refusal(), HasSubstr("make it first"));
}

TEST_F(Store, KeepsUidsInTheStateFolderWhenTheManifestsCannotBeWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "makes a read-only mount, which needs root";
  write("a.yaml", sandbox_yaml("a"));
  const char* path = options_.manifests.c_str();
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount(path, path, nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "no mounts may be made here";
  ASSERT_EQ(::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
  open();
  scan();
  const std::string before = uid();
  EXPECT_NE(before, "");
  EXPECT_THAT(store_->notice(), HasSubstr("cannot be written"));
  EXPECT_THAT(store_->notice(), HasSubstr("no longer known"));
  EXPECT_FALSE(fs::exists(options_.manifests / ".sandfleet"));
  EXPECT_TRUE(fs::exists(options_.state / "identity" / "uids.log"));
  open();
  scan();
  EXPECT_EQ(uid(), before);
  store_.reset();
  EXPECT_EQ(::umount(path), 0);
}

TEST_F(Store, PassesOverALineOfUidsThatWasCutShort) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  store_.reset();
  const fs::path journal = options_.manifests / ".sandfleet" / "uids.log";
  ASSERT_TRUE(
      base::write_file_atomically(journal, *base::read_file(journal) + "{\"kind\":\"Sa", 0644));
  fs::remove_all(options_.state);
  open();
  write("b.yaml", sandbox_yaml("b"));
  scan();
  const std::string other = uid("b");
  EXPECT_EQ(uid(), before);
  store_.reset();
  fs::remove_all(options_.state);
  open();
  scan();
  EXPECT_EQ(uid(), before);
  EXPECT_EQ(uid("b"), other);
}

}  // namespace
}  // namespace manifests
