#include "libs/manifests/file_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdio.h>
#include <sys/stat.h>

#include <thread>
#include <utility>

#include "libs/api/reasons.h"
#include "libs/manifests/testing/store_fixture.h"

namespace manifests {
namespace {

using api::Key;
using base::ErrorCode;
using base::Milliseconds;
using enum api::ResourceStore::Durability;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string provider_yaml(const std::string& name) {
  return "apiVersion: sandfleet.dev/v1alpha1\nkind: SandboxProvider\nmetadata:\n  name: " + name +
         "\nspec:\n  api:\n    url: http://127.0.0.1:1\n  data:\n    url: http://127.0.0.1:1\n"
         "  credentialsSecretRef:\n    name: keys\n";
}

const std::string kSecretYaml =
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\nstringData:\n  apiKey: CANARY-123\n";

TEST_F(Store, MakesAnObjectOfAFile) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const auto found = store_->find_sandbox(kA);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->metadata.uid, SizeIs(36));
  EXPECT_EQ(found->metadata.generation, 1);
  EXPECT_EQ(found->metadata.created, clock_.wall());
  EXPECT_EQ(found->spec.keep_alive.timeout, base::Seconds(300));
  EXPECT_THAT(store_->sandboxes(), SizeIs(1));
  EXPECT_THAT(store_->problems(), IsEmpty());
}

TEST_F(Store, CountsGenerationsAndKeepsWhatOthersWrote) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  ASSERT_TRUE(store_->update_metadata(kA, {before}, {{"mine", "1"}}, {}));
  write("a.yaml", "# edited\n" + sandbox_yaml("a", "  desiredState: Paused\n"));
  scan();
  const auto found = store_->find_sandbox(kA);
  EXPECT_EQ(found->metadata.uid, before);
  EXPECT_EQ(found->metadata.generation, 2);
  EXPECT_EQ(found->spec.desired_state, api::DesiredState::kPaused);
  EXPECT_EQ(found->metadata.annotations.at("mine"), "1");
  // A comment is no change.
  const std::string version = found->metadata.resource_version;
  write("a.yaml", "# other\n" + sandbox_yaml("a", "  desiredState: Paused\n"));
  scan();
  EXPECT_EQ(store_->find_sandbox(kA)->metadata.resource_version, version);
}

TEST_F(Store, TakesAwayWhatOnlyTheDocumentBeforeGave) {
  open();
  const std::string text = sandbox_yaml("a");
  const auto with = [&](const std::string& annotation) {
    std::string changed = text;
    changed.insert(changed.find("spec:"), "  annotations:\n    " + annotation + "\n");
    return changed;
  };
  write("a.yaml", with("one: x"));
  scan();
  auto found = store_->find_sandbox(kA);
  auto annotations = found->metadata.annotations;
  annotations["controller"] = "y";
  ASSERT_TRUE(store_->update_metadata(kA, {uid()}, annotations, {}));
  write("a.yaml", with("two: z"));
  scan();
  found = store_->find_sandbox(kA);
  EXPECT_THAT(found->metadata.annotations,
              ElementsAre(std::pair("controller", "y"), std::pair("two", "z")));
  EXPECT_EQ(found->metadata.generation, 1);
}

TEST_F(Store, BelievesARemovalOnlyAfterTwoSeconds) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  remove("a.yaml");
  scan();
  clock_.advance(Milliseconds(1999));
  scan();
  EXPECT_NE(uid(), "");
  clock_.advance(Milliseconds(1));
  scan();
  EXPECT_EQ(uid(), "");
}

TEST_F(Store, TakesAFileThatIsBackInTimeForTheSameObject) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  remove("a.yaml");
  scan();
  clock_.advance(Milliseconds(1500));
  write("b.yaml", sandbox_yaml("a"));
  scan();
  clock_.advance(Milliseconds(1500));
  scan();
  EXPECT_EQ(uid(), before);
}

TEST_F(Store, KeepsADeletedObjectUntilNothingHoldsIt) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  hold("a");
  remove("a.yaml");
  settle();
  const auto found = store_->find_sandbox(kA);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->deleting());
  open();
  scan();
  EXPECT_TRUE(store_->find_sandbox(kA)->deleting());
  let_go("a");
  EXPECT_FALSE(store_->find_sandbox(kA));
  open();
  EXPECT_FALSE(store_->find_sandbox(kA));
}

TEST_F(Store, GivesAFileThatComesBackDuringDeletionANewUidAfterwards) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  hold("a");
  remove("a.yaml");
  settle();
  write("a.yaml", sandbox_yaml("a"));
  settle();
  EXPECT_EQ(uid(), before);
  EXPECT_TRUE(store_->find_sandbox(kA)->deleting());
  let_go("a");
  scan();
  EXPECT_NE(uid(), "");
  EXPECT_NE(uid(), before);
}

TEST_F(Store, KeepsTheLastGoodVersionOfABrokenFileAcrossRestarts) {
  open();
  write("a.yaml", sandbox_yaml("a") + "---\n" + sandbox_yaml("b"));
  scan();
  const std::string before = uid();
  write("a.yaml", sandbox_yaml("a", "  desiredState: Pausd\n"));
  settle();
  EXPECT_EQ(uid(), before);
  EXPECT_NE(uid("b"), "");
  ASSERT_THAT(store_->problems(), SizeIs(1));
  EXPECT_THAT(to_text(store_->problems()[0]), HasSubstr("a.yaml:8:17: spec.desiredState: "));
  open();
  settle();
  EXPECT_EQ(uid(), before);
  EXPECT_NE(uid("b"), "");
  // The object hears of it, once.
  const auto events = StateReader(options_.state).events();
  ASSERT_TRUE(events);
  ASSERT_FALSE(events->empty());
  EXPECT_EQ(events->front().event.reason, api::reason::kInvalidManifest);
  write("a.yaml", sandbox_yaml("a", "  desiredState: Paused\n"));
  settle();
  EXPECT_EQ(store_->find_sandbox(kA)->spec.desired_state, api::DesiredState::kPaused);
  EXPECT_EQ(uid("b"), "");
  EXPECT_THAT(store_->problems(), IsEmpty());
}

TEST_F(Store, DeletesNothingOfAFileThatCannotBeRead) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  remove("a.yaml");
  fs::create_symlink("nowhere", options_.manifests / "a.yaml");
  settle();
  EXPECT_NE(uid(), "");
  ASSERT_THAT(store_->problems(), SizeIs(1));
  EXPECT_EQ(
      to_text(store_->problems()[0]),
      "a.yaml: cannot be read: No such file or directory; make it readable to the controller");
}

TEST_F(Store, DeletesNothingOfAFileThatWasEmptied) {
  for (const std::string left : {"", "---\n# nothing\n---\n", " \n", "null\n"}) {
    SCOPED_TRACE(left);
    write("a.yaml", sandbox_yaml("a") + "---\n" + sandbox_yaml("b"));
    open();
    scan();
    const std::string before = uid();
    write("a.yaml", left);
    settle();
    open();  // What was known is on record.
    settle();
    EXPECT_EQ(uid(), before);
    ASSERT_THAT(store_->problems(), SizeIs(1));
    EXPECT_EQ(to_text(store_->problems()[0]),
              "a.yaml: holds no document any more, and Sandbox default/a and 1 more were declared "
              "in it; put the manifest back, or remove the file to delete what it declared");
    const auto events = StateReader(options_.state).events();
    ASSERT_TRUE(events && !events->empty());
    EXPECT_THAT(events->back().event.note, HasSubstr("holds no document any more"));
    // A document that is left says that the others are to go.
    write("a.yaml", sandbox_yaml("a"));
    settle();
    EXPECT_EQ(uid(), before);
    EXPECT_EQ(uid("b"), "");
    EXPECT_THAT(store_->problems(), IsEmpty());
  }
  remove("a.yaml");
  settle();
  EXPECT_EQ(uid(), "");
  write("a.yaml", "");
  settle();
  EXPECT_THAT(store_->problems(), IsEmpty()) << "nothing on record was ever in it";
}

TEST_F(Store, DeletesNothingOfAFileWhosePlaceAFolderTook) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  const auto manifest = options_.manifests / "a.yaml", folder = options_.manifests / "folder";
  fs::create_directory(folder);
  ASSERT_EQ(::renameat2(AT_FDCWD, manifest.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE), 0);
  settle();
  open();
  settle();
  EXPECT_EQ(uid(), before);
  ASSERT_THAT(store_->problems(), SizeIs(1));
  EXPECT_THAT(to_text(store_->problems()[0]), HasSubstr("a.yaml: is a folder now"));
  fs::remove(manifest);
  settle();
  EXPECT_EQ(uid(), "");
}

TEST_F(Store, NamesWhatIsTooLargeOrNoFile) {
  open();
  write("big.yaml", std::string(2 << 20, '#'));
  ASSERT_EQ(::mkfifo((options_.manifests / "pipe.yaml").c_str(), 0600), 0);
  fs::create_directory(options_.manifests / "folder.yaml");
  write("notes.txt", "not: a manifest");
  write(".hidden.yaml", "not: a manifest");
  scan();
  const auto problems = store_->problems();
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_THAT(to_text(problems[0]), HasSubstr("big.yaml: the file has"));
  EXPECT_THAT(to_text(problems[1]), HasSubstr("pipe.yaml: is not a regular file"));
}

TEST_F(Store, LetsTheFirstOfTwoFilesWin) {
  open();
  write("b.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  write("a.yaml", sandbox_yaml("a", "  desiredState: Paused\n"));
  settle();
  EXPECT_EQ(uid(), before);
  EXPECT_EQ(store_->find_sandbox(kA)->spec.desired_state, api::DesiredState::kRunning);
  ASSERT_THAT(store_->problems(), SizeIs(1));
  EXPECT_EQ(to_text(store_->problems()[0]),
            "a.yaml:1:1: metadata.name: Sandbox default/a stands in b.yaml already; remove one of "
            "the two, or rename it");
}

TEST_F(Store, KeepsTheLastGoodCopyWhenAnImmutableFieldIsEdited) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  std::string edited = sandbox_yaml("a", "  desiredState: Paused\n");
  edited.replace(edited.find("base"), 4, "other");
  write("a.yaml", edited);
  settle();
  const auto found = store_->find_sandbox(kA);
  EXPECT_EQ(found->spec.template_id, "base");
  EXPECT_EQ(found->spec.desired_state, api::DesiredState::kRunning);
  EXPECT_EQ(found->metadata.generation, 1);
  ASSERT_THAT(store_->problems(), SizeIs(1));
  EXPECT_EQ(to_text(store_->problems()[0]),
            "a.yaml:7:5: spec.template: template cannot be changed; put the old value back, or "
            "declare another object");
  open();
  scan();
  EXPECT_THAT(store_->problems(), SizeIs(1));
  EXPECT_EQ(store_->find_sandbox(kA)->spec.template_id, "base");
}

TEST_F(Store, LeavesATombstoneOfAnObjectEndedByItsTtl) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const std::string before = uid();
  ASSERT_TRUE(store_->delete_sandbox(kA, before));
  EXPECT_EQ(uid(), "");
  settle();
  EXPECT_EQ(uid(), "");
  open();
  settle();
  EXPECT_EQ(uid(), "");
  // A comment is no change of the document; a field is.
  write("a.yaml", "# again\n" + sandbox_yaml("a"));
  settle();
  EXPECT_EQ(uid(), "");
  write("a.yaml", sandbox_yaml("a", "  desiredState: Running\n"));
  settle();
  EXPECT_NE(uid(), "");
  EXPECT_NE(uid(), before);
}

TEST_F(Store, MakesAnObjectAnewWhenItsDocumentWasGoneInBetween) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  ASSERT_TRUE(store_->delete_sandbox(kA, uid()));
  remove("a.yaml");
  settle();
  write("a.yaml", sandbox_yaml("a"));
  settle();
  EXPECT_NE(uid(), "");
}

TEST_F(Store, MakesAnObjectAnewWhenAsked) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  EXPECT_TRUE(ask({Request::Kind::kDelete, kA}).done);
  EXPECT_EQ(uid(), "");
  EXPECT_TRUE(ask({Request::Kind::kRecreate, kA}).done);
  EXPECT_NE(uid(), "");
}

TEST_F(Store, DeletesByRequestUnderThePolicyAsked) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  hold("a");
  EXPECT_TRUE(ask({Request::Kind::kDelete, kA, "", api::DeletionPolicy::kLeave}).done);
  const auto found = store_->find_sandbox(kA);
  EXPECT_TRUE(found->deleting());
  EXPECT_EQ(found->spec.deletion_policy, api::DeletionPolicy::kLeave);
  let_go("a");
  settle();
  EXPECT_EQ(uid(), "");
}

TEST_F(Store, AnswersRequestsThatFindNothing) {
  open();
  scan();
  EXPECT_EQ(ask({Request::Kind::kDelete, kA}), (RequestResult{false, "there is no such object"}));
  EXPECT_EQ(ask({Request::Kind::kDelete, kA, "uid-1"}), (RequestResult{true, "already gone"}));
  EXPECT_EQ(ask({Request::Kind::kReconcile, kA}),
            (RequestResult{false, "there is no such object"}));
  EXPECT_EQ(ask({Request::Kind::kReleaseBrake}), (RequestResult{true, "the brake is not on"}));
  write("a.yaml", sandbox_yaml("a"));
  scan();
  EXPECT_EQ(ask({Request::Kind::kDelete, kA, "uid-1"}),
            (RequestResult{true, "already gone: another object has that name now"}));
  EXPECT_NE(uid(), "");
}

TEST_F(Store, TakesAWishToWake) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  std::vector<Key> changed;
  store_->on_sandbox_change([&](const Key& key) { changed.push_back(key); });
  EXPECT_TRUE(ask({Request::Kind::kWake, kA}).done);
  EXPECT_THAT(changed, ElementsAre(kA));
  EXPECT_TRUE(
      store_->find_sandbox(kA)->metadata.annotations.contains("sandfleet.dev/wake-requested-at"));
}

TEST_F(Store, LooksAgainWhenAsked) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  std::vector<Key> changed;
  store_->on_sandbox_change([&](const Key& key) { changed.push_back(key); });
  EXPECT_TRUE(ask({Request::Kind::kReconcile, kA}).done);
  EXPECT_THAT(changed, ElementsAre(kA));
  EXPECT_TRUE(store_->find_sandbox(kA)->metadata.annotations.contains(
      "sandfleet.dev/reconcile-requested-at"));
}

TEST_F(Store, RefusesRequestsThatItCannotRead) {
  open();
  const fs::path requests = options_.state / "requests";
  ASSERT_TRUE(base::write_file_atomically(requests / "1.json", "{", 0600));
  ASSERT_TRUE(base::write_file_atomically(requests / "2.json", R"({"kind":"Explode"})", 0600));
  ASSERT_TRUE(base::write_file_atomically(requests / "3.json",
                                          R"({"kind":"Delete","name":"a","policy":"Burn"})", 0600));
  scan();
  EXPECT_EQ((*request_result(options_.state, "1"))->message, "not JSON");
  EXPECT_EQ((*request_result(options_.state, "2"))->message,
            "the kind \"Explode\" is none of Delete, Reconcile, Wake, Recreate, ReleaseBrake");
  EXPECT_EQ((*request_result(options_.state, "3"))->message,
            "the policy \"Burn\" is none of Kill, Pause, Leave");
  EXPECT_EQ(request_result(options_.state, "4").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(request_result(options_.state, "../x").error().code, ErrorCode::kInvalid);
}

TEST_F(Store, RefusesWritesWhosePreconditionFailed) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const auto found = store_->find_sandbox(kA);
  const std::string version = found->metadata.resource_version;
  api::SandboxStatus status;
  status.state = "Pending";
  const auto first = store_->update_status(kA, {found->metadata.uid, version}, status, kNow);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_NE(first->metadata.resource_version, version);
  const auto stale = store_->update_status(kA, {found->metadata.uid, version}, status, kNow);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->update_status(kA, {"other"}, status, kNow).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->update_metadata(kA, {"other"}, {}, {}).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->delete_sandbox(kA, "other").error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->update_status({"default", "b"}, {"x"}, status, kNow).error().code,
            ErrorCode::kNotFound);
}

TEST_F(Store, WritesAndTellsNothingWhenNothingChanges) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  int told = 0;
  store_->on_sandbox_change([&](const Key&) { ++told; });
  const auto before = store_->find_sandbox(kA);
  const auto same = store_->update_status(kA, {before->metadata.uid}, before->status, kNow);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->metadata.resource_version, before->metadata.resource_version);
  scan();
  EXPECT_EQ(told, 0);
}

TEST_F(Store, NeverGoesBackInItsVersions) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  hold("a");
  const auto before = std::stoll(store_->find_sandbox(kA)->metadata.resource_version);
  open();
  let_go("a");
  EXPECT_GT(std::stoll(store_->find_sandbox(kA)->metadata.resource_version), before);
}

TEST_F(Store, BindsOnlyWhatHasThatAttemptOnRecord) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const api::Attempt attempt{"0123456789abcdef0123456789abcdef", 1, 0};
  ASSERT_TRUE(store_->update_metadata(
      kA, {uid()}, {{std::string(api::kAttemptAnnotation), api::to_text(attempt)}}, {}));
  api::SandboxStatus status;
  status.sandbox_id = "sb-1";
  status.epoch = 1;
  EXPECT_EQ(store_->bind(kA, "other", attempt, status).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->bind(kA, uid(), {attempt.nonce, 1, 1}, status).error().code,
            ErrorCode::kConflict);
  ASSERT_TRUE(store_->bind(kA, uid(), attempt, status));
  EXPECT_EQ(store_->bind(kA, uid(), attempt, status).error().code, ErrorCode::kConflict);
  status.sandbox_id = "sb-2";
  EXPECT_EQ(store_->update_status(kA, {uid()}, status, kNow).error().code, ErrorCode::kInvalid);
  status.epoch = 2;
  EXPECT_TRUE(store_->bind(kA, uid(), attempt, status));
  open();
  EXPECT_EQ(store_->find_sandbox(kA)->status.sandbox_id, "sb-2");
}

TEST_F(Store, LetsASandboxWaitForTwoSyncsUntilItIsReady) {
  const auto me = std::this_thread::get_id();
  int waits = 0;
  options_.before_step = [&](const fs::path&, Disk::Step step) {
    if (std::this_thread::get_id() == me && step != Disk::Step::kAppend) ++waits;
    return base::Done{};
  };
  write("a.yaml", sandbox_yaml("a"));
  open();
  scan();
  store_->start();
  const auto takes = [&](const auto& written) {
    EXPECT_TRUE(written) << written.error().message;
    return std::exchange(waits, 0);
  };
  waits = 0;
  const api::Attempt attempt{"0123456789abcdef0123456789abcdef", 1, 0};
  EXPECT_EQ(takes(store_->update_metadata(
                kA, {uid()}, {{std::string(api::kAttemptAnnotation), api::to_text(attempt)}},
                {std::string(api::kFinalizer)})),
            1);
  api::SandboxStatus status;
  status.sandbox_id = "sb-1";
  status.epoch = 1;
  EXPECT_EQ(takes(store_->bind(kA, uid(), attempt, status)), 0);
  status.state = "Preparing";
  EXPECT_EQ(takes(store_->update_status(kA, {uid()}, status, kSoon)), 0);
  status.run = 1;
  EXPECT_EQ(takes(store_->update_status(kA, {uid()}, status, kNow)), 1);
  EXPECT_EQ(takes(store_->update_status(kA, {uid()}, status, kNow)), 0) << "nothing changed";
  store_.reset();
}

TEST_F(Store, TakesNoIntentBeforeTheUidIsOnDisk) {
  write("a.yaml", sandbox_yaml("a"));
  open();
  scan();
  int refused = 0;
  options_.before_step = [&](const fs::path& path, Disk::Step step) -> base::Result<base::Done> {
    if (path.filename() != "uids.log" || refused > 1) return base::Done{};
    if (step != Disk::Step::kSync && refused == 0) return base::Done{};
    ++refused;
    return base::error(ErrorCode::kUnavailable, "input/output error");
  };
  open();
  write("a2.yaml", sandbox_yaml("a2"));
  scan();  // The list is written anew by the first change after a start.
  write("b.yaml", sandbox_yaml("b"));
  EXPECT_FALSE(store_->scan_once());
  const Key b{"default", "b"};
  const std::string made = uid("b");
  ASSERT_NE(made, "");
  const auto intend = [&] {
    return store_->update_metadata(b, {made}, {}, {std::string(api::kFinalizer)});
  };
  EXPECT_FALSE(intend()) << "the list could not be written anew either";
  EXPECT_EQ(refused, 2);
  EXPECT_TRUE(intend());
  EXPECT_THAT(*base::read_file(options_.manifests / ".sandfleet" / "uids.log"), HasSubstr(made));
  store_.reset();
}

TEST_F(Store, KeepsAProviderWhileSandboxesReferToIt) {
  open();
  write("p.yaml", provider_yaml("default"));
  write("a.yaml", sandbox_yaml("a"));
  scan();
  hold("a");
  remove("p.yaml");
  remove("a.yaml");
  settle();
  ASSERT_TRUE(store_->find_provider("default"));
  EXPECT_TRUE(store_->find_provider("default")->metadata.deleted);
  let_go("a");
  EXPECT_FALSE(store_->find_provider("default"));
}

TEST_F(Store, UpdatesTheStatusOfAProvider) {
  open();
  write("p.yaml", provider_yaml("default"));
  scan();
  std::vector<std::string> changed;
  store_->on_provider_change([&](const std::string& name) { changed.push_back(name); });
  const auto provider = store_->find_provider("default");
  const auto updated = store_->update_provider_status("default", {provider->metadata.uid}, {1});
  ASSERT_TRUE(updated);
  EXPECT_EQ(updated->status.observed_generation, 1);
  EXPECT_THAT(changed, IsEmpty()) << "whoever wrote it knows";
  EXPECT_THAT(store_->providers(), SizeIs(1));
}

TEST_F(Store, KeepsSecretsInMemoryOnly) {
  open();
  write("keys.yaml", kSecretYaml);
  write("p.yaml", provider_yaml("default"));
  scan();
  EXPECT_EQ(*store_->get_secret({"default", "keys"}, "apiKey"), "CANARY-123");
  EXPECT_EQ(store_->get_secret({"default", "keys"}, "other").error().message,
            "the Secret default/keys has no key \"other\"");
  EXPECT_EQ(store_->get_secret({"default", "none"}, "x").error().code, ErrorCode::kNotFound);
  const std::string all = files_in(options_.state);
  EXPECT_EQ(all.find("CANARY"), std::string::npos);
  EXPECT_EQ(all.find("Q0FOQVJZ"), std::string::npos);  // In base64.
}

TEST_F(Store, RetainsASecretThatIsGoneWhileItIsNeededAndNoLonger) {
  open();
  write("keys.yaml", kSecretYaml);
  write("p.yaml", provider_yaml("default"));
  write("a.yaml", sandbox_yaml("a"));
  scan();
  hold("a");
  for (const char* name : {"keys.yaml", "p.yaml", "a.yaml"}) remove(name);
  settle();
  open();
  scan();
  EXPECT_EQ(*store_->get_secret({"default", "keys"}, "apiKey"), "CANARY-123");
  struct stat found{};
  ASSERT_EQ(::stat((options_.state / "secrets.json").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  let_go("a");
  scan();
  EXPECT_FALSE(store_->get_secret({"default", "keys"}, "apiKey"));
  EXPECT_FALSE(fs::exists(options_.state / "secrets.json"));
}

TEST_F(Store, CountsRepeatedEvents) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const auto sandbox = store_->find_sandbox(kA);
  const api::Event event{"Normal", "Created", "Create", "sandbox sb-1"};
  store_->record_event(*sandbox, event);
  clock_.advance(Milliseconds(1000));
  store_->record_event(*sandbox, {"Normal", "Prepared", "Prepare", ""});
  clock_.advance(Milliseconds(1000));
  store_->record_event(*sandbox, event);
  open();
  store_->record_event(*sandbox, event);
  const auto events = StateReader(options_.state).events();
  ASSERT_TRUE(events);
  ASSERT_THAT(*events, SizeIs(2));
  EXPECT_EQ((*events)[0].event.reason, "Prepared");
  EXPECT_EQ((*events)[1].event, event);
  EXPECT_EQ((*events)[1].count, 3);
  EXPECT_EQ((*events)[1].last - (*events)[1].first, Milliseconds(2000));
  EXPECT_EQ((*events)[1].regarding, kA);
}

TEST_F(Store, KeepsTheLastThousandEvents) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const auto sandbox = store_->find_sandbox(kA);
  for (int index = 0; index < 5500; ++index)
    store_->record_event(*sandbox, {"Normal", "Seen", "Look", std::to_string(index)});
  const auto events = StateReader(options_.state).events();
  ASSERT_TRUE(events);
  ASSERT_THAT(*events, SizeIs(1000));
  EXPECT_EQ(events->front().event.note, "4500");
  EXPECT_EQ(events->back().event.note, "5499");
  const std::string lines = *base::read_file(options_.state / "events.log");
  EXPECT_LE(std::ranges::count(lines, '\n'), 4001);
}

TEST_F(Store, KeepsReleaseRecordsUntilTheyAreFull) {
  open();
  const auto release = [&](int index) {
    return store_->add_release(
        {"sb-" + std::to_string(index), "uid", "default", "Leave", clock_.wall()});
  };
  ASSERT_TRUE(release(0));
  ASSERT_TRUE(release(1));
  ASSERT_TRUE(release(1));  // Again is no second one.
  open();
  ASSERT_THAT(*store_->releases("default"), SizeIs(2));
  EXPECT_EQ((*store_->releases("default"))[1].sandbox_id, "sb-1");
  EXPECT_EQ((*store_->releases("default"))[1].time, clock_.wall());
  ASSERT_TRUE(store_->remove_release("default", "sb-0"));
  ASSERT_THAT(*store_->releases("default"), SizeIs(1));
  EXPECT_THAT(*store_->releases("other"), IsEmpty());
  EXPECT_FALSE(store_->releases("../x"));
}

TEST_F(Store, RefusesAReleaseWhenTheRecordIsFull) {
  open();
  std::string full = "[";
  for (int index = 0; index < 1000; ++index)
    full +=
        std::string(index ? "," : "") + R"({"sandboxID":"sb-)" + std::to_string(index) + R"("})";
  fs::create_directory(options_.state / "releases");
  ASSERT_TRUE(
      base::write_file_atomically(options_.state / "releases/default.json", full + "]", 0600));
  const auto refused = store_->add_release({"sb-new", "uid", "default", "Leave"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRateLimited);
}

TEST_F(Store, TakesNoBrokenReleaseRecordForAnEmptyOne) {
  open();
  fs::create_directory(options_.state / "releases");
  const fs::path record = options_.state / "releases/default.json";
  for (const std::string broken : {"[{", "{}"}) {
    ASSERT_TRUE(base::write_file_atomically(record, broken, 0600));
    EXPECT_EQ(store_->releases("default").error().code, ErrorCode::kInvalid) << broken;
    EXPECT_FALSE(store_->add_release({"sb-new", "uid", "default", "Leave"}));
    EXPECT_EQ(*base::read_file(record), broken);
  }
}

TEST_F(Store, KeepsTheWayInOfAnObjectForItselfAloneUntilThatIsGone) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const FileStore::WayIn first{"sb-1", "0.6.13", "CANARY-1", {}};
  const FileStore::WayIn second{"sb-1", "0.6.13", {}, "CANARY-2"};
  EXPECT_EQ(*store_->kept_way_in(uid()), std::nullopt);
  ASSERT_TRUE(store_->keep_way_in(kA, uid(), first));
  ASSERT_TRUE(store_->keep_way_in(kA, uid(), second));
  open();
  EXPECT_EQ(*store_->kept_way_in(uid()), second);
  const fs::path file = options_.state / "ways-in" / (uid() + ".json");
  struct stat found{};
  ASSERT_EQ(::stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_EQ(store_->keep_way_in(kA, "another", first).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->keep_way_in({"default", "b"}, "x", first).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_->kept_way_in("../x").error().code, ErrorCode::kInvalid);
  fs::remove(options_.manifests / "a.yaml");
  scan();
  clock_.advance(Milliseconds(2'000));
  scan();
  EXPECT_EQ(store_->find_sandbox(kA), nullptr);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(Store, KeepsOneFleetKeyForItselfAlone) {
  open();
  const auto key = store_->fleet_key();
  ASSERT_TRUE(key);
  EXPECT_THAT(*key, SizeIs(32));
  open();
  EXPECT_EQ(*store_->fleet_key(), *key);
  struct stat found{};
  ASSERT_EQ(::stat((options_.state / "fleet.key").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat(options_.state.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0700u);
}

TEST_F(Store, ShowsTheSameToAReaderBesideIt) {
  open();
  write("a.yaml",
        provider_yaml("default") + "---\n" + sandbox_yaml("b") + "---\n" + sandbox_yaml("a"));
  write("bad.yaml", "x: 1\n");
  scan();
  const StateReader reader(options_.state);
  const auto sandboxes = reader.sandboxes();
  ASSERT_TRUE(sandboxes) << sandboxes.error().message;
  ASSERT_THAT(*sandboxes, SizeIs(2));
  EXPECT_EQ((*sandboxes)[0], *store_->find_sandbox(kA));
  EXPECT_EQ(**reader.sandbox(kA), *store_->find_sandbox(kA));
  EXPECT_FALSE(*reader.sandbox({"default", "none"}));
  ASSERT_THAT(*reader.providers(), SizeIs(1));
  EXPECT_EQ(*reader.problems(), store_->problems());
  EXPECT_EQ(*reader.manifests(), options_.manifests);
  EXPECT_EQ(*reader.source_of(Kind::kSandbox, kA), (Source{options_.manifests / "a.yaml", 2}));
  EXPECT_EQ(reader.source_of(Kind::kSandbox, {"default", "none"}).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(StateReader(folder_.path()).sandboxes().error().code, ErrorCode::kNotFound);
}

TEST_F(Store, SaysWhichStateFileIsBroken) {
  open();
  write("a.yaml", sandbox_yaml("a"));
  scan();
  const fs::path file = options_.state / "sandboxes/default/a.json";
  ASSERT_TRUE(base::write_file_atomically(file, "{", 0600));
  open();  // As after a power cut: the journal knows better.
  ASSERT_TRUE(store_->find_sandbox(kA));
  ASSERT_TRUE(store_->close());
  ASSERT_TRUE(base::write_file_atomically(file, "{", 0600));
  EXPECT_THAT(refusal(), HasSubstr("sandboxes/default/a.json is not JSON; restore it"));
}

}  // namespace
}  // namespace manifests
