#include "libs/manifests/ledger.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <fstream>
#include <thread>

#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/testing/power_loss.h"

namespace manifests {
namespace {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Result;
using enum api::ResourceStore::Durability;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Record record(const std::string& name, std::int64_t version, const std::string& note = "") {
  api::Sandbox sandbox;
  sandbox.metadata.key = {"default", name};
  sandbox.metadata.uid = "uid-" + name;
  sandbox.metadata.resource_version = std::to_string(version);
  if (!note.empty()) sandbox.metadata.annotations["note"] = note;
  Record made{{Kind::kSandbox, sandbox.metadata.key}};
  made.sandbox = std::make_shared<const api::Sandbox>(std::move(sandbox));
  return made;
}
const Id kA = record("a", 1).id;

// One life of a ledger after another on one folder, with a disk that does as it is told.
class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() { begin(); }

  void begin() {
    ledger_ = std::make_unique<Ledger>(layout_, disk_, options_);
    const auto kept = ledger_->load();
    ASSERT_TRUE(kept) << kept.error().message;
    versions_.clear();
    for (const auto& [id, each] : kept->records)
      versions_[id.key.name] = each.metadata() ? std::stoll(each.metadata()->resource_version) : 0;
    last_version_ = kept->last_version;
  }
  void crash() {
    ledger_.reset();
    begin();
  }
  Result<Done> put(const std::string& name, std::int64_t version,
                   api::ResourceStore::Durability durability = kNow, const std::string& note = "") {
    return ledger_->put(record(name, version, note), version, durability);
  }
  std::vector<fs::path> journal_files() const {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(layout_.journal(), none))
      files.push_back(entry.path());
    return files;
  }
  std::uintmax_t journal_bytes() const {
    std::uintmax_t bytes = 0;
    for (const auto& file : journal_files()) bytes += fs::file_size(file);
    return bytes;
  }
  std::string file_of(const std::string& name) const {
    return base::read_file(layout_.record({Kind::kSandbox, {"default", name}})).ok() ? name : "";
  }

  const base::TemporaryFolder folder_;
  const Layout layout_{folder_.path() / "state"};
  Disk::Gate gate_;
  Disk disk_{[this](const fs::path& path, Disk::Step step) -> Result<Done> {
    return gate_ ? gate_(path, step) : Done{};
  }};
  JournalOptions options_;
  std::unique_ptr<Ledger> ledger_;
  std::map<std::string, std::int64_t> versions_;  // As they were loaded.
  std::int64_t last_version_ = 0;
};

using Versions = std::map<std::string, std::int64_t>;

TEST_F(LedgerTest, RemembersTheLastOfEveryRecordWithoutBeingClosed) {
  ASSERT_TRUE(put("a", 1));
  ASSERT_TRUE(put("b", 2, kSoon));
  ASSERT_TRUE(put("a", 3, kSoon));
  ASSERT_TRUE(put("c", 4));
  ASSERT_TRUE(ledger_->drop(record("c", 4).id, 5));
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 3}, {"b", 2}}));
  EXPECT_EQ(last_version_, 5);
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 3}, {"b", 2}}));
}

TEST_F(LedgerTest, IsReadByAnyVersionOnceItIsClosed) {
  ASSERT_TRUE(put("a", 1));
  ASSERT_TRUE(put("b", 2, kSoon));
  ASSERT_TRUE(ledger_->close());
  EXPECT_THAT(journal_files(), IsEmpty());
  const auto records = read_records(layout_, Kind::kSandbox);
  ASSERT_TRUE(records);
  EXPECT_THAT(*records, SizeIs(2));
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 1}, {"b", 2}}));
}

TEST_F(LedgerTest, ReadsAFolderOfBeforeThereWasAJournal) {
  ASSERT_TRUE(put("a", 1));
  ASSERT_TRUE(ledger_->close());
  fs::remove_all(layout_.journal());
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 1}}));
  ASSERT_TRUE(put("a", 2));
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 2}}));
}

TEST_F(LedgerTest, BelievesAFileThatIsNewerThanTheJournal) {
  ASSERT_TRUE(put("a", 3));
  ASSERT_TRUE(put("b", 4));
  for (const auto& [name, version] : {std::pair("a", 9), std::pair("b", 2)})
    ASSERT_TRUE(base::write_file_atomically(layout_.record(record(name, 1).id),
                                            base::to_text(to_json(record(name, version))), 0600));
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 9}, {"b", 4}}));
  EXPECT_EQ(last_version_, 9);
}

TEST_F(LedgerTest, MendsFilesThatAPowerLossSpoilt) {
  ASSERT_TRUE(put("a", 1));
  ASSERT_TRUE(put("b", 2));
  ASSERT_TRUE(base::write_file_atomically(layout_.record(kA), "", 0600));
  fs::remove(layout_.record(record("b", 2).id));
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 1}, {"b", 2}}));
  ASSERT_TRUE(ledger_->settle());
  EXPECT_TRUE(read_records(layout_, Kind::kSandbox));
  EXPECT_EQ(file_of("b"), "b");
}

// ---- Torn ends -------------------------------------------------------------------------------

TEST_F(LedgerTest, PassesOverATailThatIsNotWhole) {
  ASSERT_TRUE(put("a", 1));
  ASSERT_TRUE(put("b", 2));
  ASSERT_TRUE(put("a", 3));
  ledger_.reset();
  const fs::path file = journal_files().at(0);
  const std::string whole = *base::read_file(file);
  std::vector<std::size_t> ends = {0};  // Of lines.
  for (std::size_t at = 0; (at = whole.find('\n', at)) != std::string::npos;) ends.push_back(++at);
  const std::vector<Versions> after = {{}, {{"a", 1}}, {{"a", 1}, {"b", 2}}, {{"a", 3}, {"b", 2}}};
  ASSERT_EQ(ends.size(), after.size());
  const auto expect = [&](std::size_t lines, std::size_t cut, const std::string& tail) {
    SCOPED_TRACE(std::to_string(cut) + " bytes, then " + std::to_string(tail.size()));
    fs::remove_all(layout_.state);
    fs::create_directories(layout_.journal());
    std::ofstream(file, std::ios::binary) << whole.substr(0, cut) << tail;
    begin();
    EXPECT_EQ(versions_, after[lines]);
    // What is appended after it is found after the next crash, too.
    ASSERT_TRUE(put("n", 50));
    crash();
    EXPECT_EQ(versions_.at("n"), 50);
    EXPECT_EQ(versions_.size(), after[lines].size() + 1);
  };
  for (std::size_t lines = 0; lines < after.size(); ++lines) {
    for (const std::string& tail :
         {std::string(), std::string(4096, '\0'), std::string("\xff\xfe{\"version\":7}\n"),
          std::string("\n"), std::string(100'000, 'x'), whole.substr(ends[1] / 2, ends[1])})
      expect(lines, ends[lines], tail);
    if (lines + 1 == after.size()) break;
    for (const std::size_t cut : {ends[lines] + 1, ends[lines] + 16, ends[lines] + 17,
                                  (ends[lines] + ends[lines + 1]) / 2, ends[lines + 1] - 1})
      expect(lines, cut, "");
  }
}

TEST_F(LedgerTest, IsLedAstrayByNoFileThatIsNotItsOwn) {
  fs::create_directories(layout_.journal());
  for (const char* stray : {"9223372036854775807.log", "1000000000000000.log", "007.log", "+1.log",
                            "99999999999999999999.log", "0.log", "-1.log", "notes", "2.log.swp"})
    std::ofstream(layout_.journal() / stray) << "not of a journal\n";
  crash();
  ASSERT_TRUE(put("a", 1));
  EXPECT_TRUE(fs::exists(layout_.journal() / "1.log"));
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 1}}));
  ASSERT_TRUE(put("a", 2));
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 2}}));
  ASSERT_TRUE(ledger_->close());
  EXPECT_THAT(journal_files(), SizeIs(9)) << "what is not its own it leaves alone";
}

TEST_F(LedgerTest, TakesNothingItCouldNotReadAgainWhenNumbersEnd) {
  fs::create_directories(layout_.journal());
  std::ofstream(layout_.journal() / "999999999999999.log") << "";
  crash();
  const auto refused = put("a", 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no number left"));
  ASSERT_TRUE(ledger_->close());
  crash();
  EXPECT_TRUE(put("a", 1)) << "after a clean end it begins anew";
}

TEST_F(LedgerTest, SaysWhatItCostsToRemoveARecordThatIsSpoilt) {
  ASSERT_TRUE(put("a", 1));
  ASSERT_TRUE(ledger_->close());
  const fs::path file = layout_.record(kA);
  for (const char* content : {"{", R"({"format": 7})"}) {
    std::ofstream(file) << content;
    const auto kept = Ledger(layout_, disk_, options_).load();
    ASSERT_FALSE(kept);
    EXPECT_THAT(kept.error().message, HasSubstr(file.string()));
    EXPECT_THAT(kept.error().message,
                HasSubstr("with a new E2B sandbox, and the old one is ended"));
  }
}

TEST_F(LedgerTest, TakesNoChangedByteForTheTruth) {
  ASSERT_TRUE(put("a", 1));
  ASSERT_TRUE(put("a", 2));
  ledger_.reset();
  const auto file = journal_files().at(0);
  const std::string whole = *base::read_file(file);
  const std::size_t first = whole.find('\n') + 1;
  for (std::size_t at = first; at < whole.size(); at += 7) {
    fs::remove_all(layout_.records(Kind::kSandbox));
    std::string changed = whole;
    changed[at] ^= 0x01;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << changed;
    begin();
    EXPECT_EQ(versions_, (Versions{{"a", 1}})) << at;
    ledger_.reset();
  }
}

// ---- Disks that refuse -----------------------------------------------------------------------

// Files cannot grow beyond this: a write is cut short, as on a disk that fills up.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(LedgerTest, KeepsNothingOfALineThatTheDiskCutsShort) {
  ASSERT_TRUE(put("a", 1));
  const auto file = journal_files().at(0);
  const auto before = fs::file_size(file);
  {
    const FullDisk full(before + 100);
    const auto refused = put("b", 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(refused.error().message, HasSubstr(file.string()));
  }
  EXPECT_EQ(fs::file_size(file), before);
  ASSERT_TRUE(put("c", 3));
  EXPECT_EQ(journal_files(), std::vector{file});
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 1}, {"c", 3}}));
}

// Lets the disk refuse steps of one kind on the paths that contain `part`, and counts them.
struct Refusal {
  Disk::Step step;
  std::string part;
  int count = 0;  // So many.
  int asked = 0;
  Result<Done> operator()(const fs::path& path, Disk::Step asked_for) {
    if (asked_for != step || path.string().find(part) == std::string::npos) return Done{};
    ++asked;
    if (count == 0) return Done{};
    --count;
    return base::error(ErrorCode::kUnavailable, "input/output error: ", path.string());
  }
};

TEST_F(LedgerTest, NeverBelievesASecondSyncOfWhatAFirstCouldNot) {
  PowerLoss power;
  Refusal refusal{Disk::Step::kSync, "journal/1.log"};
  gate_ = [&](const fs::path& path, Disk::Step step) -> Result<Done> {
    if (auto refused = refusal(path, step); !refused) return refused;
    power.before(path, step);
    return Done{};
  };
  ASSERT_TRUE(put("a", 1));
  const int before = refusal.asked;
  ASSERT_TRUE(put("soon", 2, kSoon));
  refusal.count = 1;
  EXPECT_FALSE(put("b", 3));
  ASSERT_TRUE(put("c", 4));  // It settles, too.
  EXPECT_EQ(refusal.asked, before + 1);
  EXPECT_FALSE(fs::exists(layout_.journal() / "1.log")) << "what it told stands elsewhere";
  power.strike(1);
  gate_ = {};
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 1}, {"c", 4}, {"soon", 2}}));
}

TEST_F(LedgerTest, WritesARecordAnewWhoseFileCouldNotBeSynced) {
  options_.file_bytes_max = 1;  // Each line makes a file, so that records are synced at once.
  ledger_.reset();
  begin();
  PowerLoss power;
  Refusal refusal{Disk::Step::kSync, "default/a.json", 1};
  gate_ = [&](const fs::path& path, Disk::Step step) -> Result<Done> {
    if (auto refused = refusal(path, step); !refused) return refused;
    power.before(path, step);
    return Done{};
  };
  ASSERT_TRUE(put("a", 1));
  ASSERT_TRUE(put("b", 2));
  ASSERT_TRUE(put("c", 3));
  EXPECT_EQ(refusal.count, 0);
  EXPECT_EQ(refusal.asked, 1) << "not asked again";
  EXPECT_FALSE(power.may_take(layout_.record(kA)));
  power.strike(1);
  gate_ = {};
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", 1}, {"b", 2}, {"c", 3}}));
}

TEST_F(LedgerTest, MakesFoldersWhoseNamesOutliveAPowerLoss) {
  const fs::path outer = folder_ / "outer";
  std::vector<fs::path> synced;
  Refusal refusal{Disk::Step::kSync, "outer", 1};
  gate_ = [&](const fs::path& path, Disk::Step step) -> Result<Done> {
    if (step == Disk::Step::kSync) synced.push_back(path);
    return refusal(path, step);
  };
  EXPECT_FALSE(disk_.make_folders(outer / "inner"));
  EXPECT_FALSE(fs::exists(outer / "inner")) << "the next try would take it for durable";
  synced.clear();
  EXPECT_TRUE(disk_.make_folders(outer / "inner"));
  EXPECT_THAT(synced, ElementsAre(outer));
  EXPECT_TRUE(disk_.make_folders(outer / "inner"));
  EXPECT_THAT(synced, SizeIs(1)) << "it is there already";
}

// ---- Bounds ----------------------------------------------------------------------------------

TEST_F(LedgerTest, LeavesNoMoreJournalThanItMust) {
  options_.file_bytes_max = 4096;
  ledger_.reset();
  begin();
  for (int version = 1; version <= 300; ++version) {
    ASSERT_TRUE(put("s" + std::to_string(version % 7), version, version % 3 ? kNow : kSoon));
    ASSERT_LE(journal_bytes(), 2 * options_.file_bytes_max);
  }
  crash();
  EXPECT_THAT(versions_, SizeIs(7));
  EXPECT_EQ(versions_.at("s6"), 300);
}

TEST_F(LedgerTest, TakesNoMoreWhenRecordsCannotBeWritten) {
  options_ = {.file_bytes_max = 4096, .files_max = 3};
  ledger_.reset();
  begin();
  ASSERT_TRUE(put("a", 1));
  Refusal refusal{Disk::Step::kLoose, ".json", 1'000'000};
  gate_ = [&](const fs::path& path, Disk::Step step) { return refusal(path, step); };
  int version = 1;
  Result<Done> put_last = Done{};
  while (put_last && version < 1'000) put_last = put("a", ++version);
  ASSERT_FALSE(put_last);
  EXPECT_THAT(put_last.error().message, HasSubstr("has 3 files"));
  EXPECT_LE(journal_bytes(), options_.files_max * options_.file_bytes_max);
  gate_ = {};
  ledger_->start();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!put("a", version + 1) && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  EXPECT_LE(journal_files().size(), 2u);
  crash();
  EXPECT_EQ(versions_, (Versions{{"a", version + 1}}));
}

TEST_F(LedgerTest, LeavesRoomForRecordsOnASmallDisk) {
  if (::geteuid() != 0) GTEST_SKIP() << "makes a disk of its own, which needs root";
  ledger_.reset();
  fs::create_directories(layout_.state);
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", layout_.state.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "no mounts may be made here";
  begin();
  const std::string note(2'000, 'x');
  for (int version = 1; version <= 500; ++version)
    ASSERT_TRUE(put("s" + std::to_string(version % 5), version, kNow, note)) << version;
  crash();
  EXPECT_THAT(versions_, SizeIs(5));
  EXPECT_EQ(versions_.at("s0"), 500);
  ledger_.reset();
  EXPECT_EQ(::umount(layout_.state.c_str()), 0);
}

// ---- Threads ---------------------------------------------------------------------------------

TEST_F(LedgerTest, LetsOneSyncServeAllWhoWait) {
  constexpr int kWriters = 6;
  std::mutex mutex;
  std::condition_variable changed;
  int appends = 0, syncs = 0;
  gate_ = [&](const fs::path& path, Disk::Step step) -> Result<Done> {
    if (path.parent_path() != layout_.journal()) return Done{};
    std::unique_lock lock(mutex);
    if (step == Disk::Step::kAppend) ++appends;
    if (step == Disk::Step::kSync) ++syncs;
    changed.notify_all();
    // The first waits until every line is there.
    if (step == Disk::Step::kSync && syncs == 1)
      changed.wait_for(lock, std::chrono::seconds(30), [&] { return appends == kWriters; });
    return Done{};
  };
  ledger_->start();
  {
    std::vector<std::jthread> writers;
    for (int index = 0; index < kWriters; ++index)
      writers.emplace_back(
          [this, index] { EXPECT_TRUE(put("s" + std::to_string(index), index + 1)); });
  }
  {
    std::lock_guard lock(mutex);
    EXPECT_EQ(appends, kWriters);
    EXPECT_LE(syncs, 3) << "the first, one for the rest, and one for a line that came meanwhile";
  }
  ledger_.reset();
  gate_ = {};
  begin();
  EXPECT_THAT(versions_, SizeIs(kWriters));
}

TEST_F(LedgerTest, ShowsWholeRecordsThatNeverGoBackToWhoReadsBesideIt) {
  options_.file_bytes_max = 16 << 10;
  ledger_.reset();
  begin();
  ledger_->start();
  constexpr int kChanges = 400;
  std::jthread writer([this] {
    for (int version = 1; version <= kChanges; ++version)
      EXPECT_TRUE(put("a", version, version % 2 ? kNow : kSoon, std::string(2'000, 'x')));
  });
  std::int64_t seen = 0;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (seen < kChanges && std::chrono::steady_clock::now() < limit) {
    const auto records = read_records(layout_, Kind::kSandbox);
    ASSERT_TRUE(records) << records.error().message;
    if (records->empty()) continue;
    const auto version = std::stoll((*records)[0].metadata()->resource_version);
    ASSERT_GE(version, seen);
    seen = version;
  }
  EXPECT_EQ(seen, kChanges) << "files follow without anybody asking";
}

TEST_F(LedgerTest, ClosesWhileItIsAtWork) {
  options_.file_bytes_max = 2048;  // So little that writers make room for themselves.
  ledger_.reset();
  begin();
  ledger_->start();
  for (int version = 1; version <= 100; ++version)
    ASSERT_TRUE(put("s" + std::to_string(version), version, kSoon));
  ASSERT_TRUE(ledger_->close());
  EXPECT_THAT(journal_files(), IsEmpty());
  EXPECT_THAT(*read_records(layout_, Kind::kSandbox), SizeIs(100));
}

TEST_F(LedgerTest, KeepsAChangeThatComesWhileItCloses) {
  const auto me = std::this_thread::get_id();
  for (const auto step : {Disk::Step::kLoose, Disk::Step::kSync}) {
    const auto version = last_version_;
    bool late = false;
    gate_ = [&](const fs::path& path, Disk::Step now) -> Result<Done> {
      if (path.filename() != "early.json") return Done{};
      if (std::this_thread::get_id() != me)
        return base::error(ErrorCode::kUnavailable, "whoever closes it writes it");
      if (now != step || late) return Done{};
      late = true;
      return put("late", version + 2);
    };
    ledger_->start();
    ASSERT_TRUE(put("early", version + 1));
    ASSERT_TRUE(ledger_->close());
    ASSERT_TRUE(late);
    gate_ = {};
    crash();
    EXPECT_EQ(versions_, (Versions{{"early", version + 1}, {"late", version + 2}}));
    ASSERT_TRUE(ledger_->drop(record("late", 0).id, version + 3));
    last_version_ = version + 3;
  }
}

}  // namespace
}  // namespace manifests
