#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <future>
#include <thread>

#include "libs/base/awake_time.h"
#include "libs/base/crypto.h"
#include "libs/base/file_digest.h"
#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/log.h"
#include "libs/base/reading.h"
#include "libs/base/rest.h"
#include "libs/base/staged.h"
#include "libs/base/strings.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/base/time.h"

namespace base {
namespace {

TEST(AwakeTime, CountsAGapAsTwoSecondsAtMost) {
  using std::chrono::milliseconds, std::chrono::seconds;
  const Moment start(seconds(1000));
  AwakeTime awake(start);
  EXPECT_EQ(awake.look(start + milliseconds(1500)), milliseconds(1500));
  EXPECT_EQ(awake.look(start + seconds(3600)), milliseconds(3500));
  EXPECT_EQ(awake.look(start + seconds(3600)), milliseconds(3500));
  EXPECT_EQ(awake.look(start + seconds(3601)), milliseconds(4500));
}

TEST(Crypto, MatchesPublishedVectors) {
  // FIPS 180-4 "abc"; RFC 4231 case 2; RFC 4648 §10.
  EXPECT_EQ(to_hex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(*from_base64("Zm8="), "fo");
  EXPECT_EQ(*from_base64url(to_base64url("\xff\xfe\xfd?")), "\xff\xfe\xfd?");
  EXPECT_FALSE(from_base64("Zm8*"));
  Sha256 parts;
  parts.add("a");
  parts.add("bc");
  EXPECT_EQ(parts.finish(), sha256("abc"));
}

TEST(FileDigest, IsOfWhatAnOpenFileHolds) {
  const TemporaryFolder folder;
  const std::string content(1'000'000, 'x');
  ASSERT_TRUE(write_file_atomically(folder / "file", content, 0600));
  const Fd file(::open((folder / "file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(*sha256_of(file, folder / "file"), to_hex(sha256(content)));
  const Fd no_file(::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
  const auto failed = sha256_of(no_file, folder.path());
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find(folder.path().string()), std::string::npos);
}

TEST(Crypto, RandomNamesDiffer) {
  EXPECT_NE(random_hex(8), random_hex(8));
  EXPECT_EQ(random_uuid().size(), 36u);
  EXPECT_TRUE(equal_secrets("same", "same"));
  EXPECT_FALSE(equal_secrets("same", "samE"));
}

TEST(Time, ReadsAndWritesRfc3339) {
  const auto time = parse_rfc3339("2026-11-29T17:46:31.123456789Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(to_rfc3339(*time), "2026-11-29T17:46:31.123Z");
  EXPECT_EQ(to_rfc3339(*parse_rfc3339("2026-11-29T18:46:31+01:00")), "2026-11-29T17:46:31Z");
  for (const char* bad :
       {"", "2026", "2026-13-01T00:00:00Z", "2026-11-29T17:46:31", "2026-11-29T17:46:31.Z", "soon"})
    EXPECT_FALSE(parse_rfc3339(bad)) << bad;
}

TEST(Time, ReadsHttpDates) {
  const auto time = parse_http_date("Sun, 29 Nov 2026 17:46:31 GMT");
  ASSERT_TRUE(time);
  EXPECT_EQ(to_rfc3339(*time), "2026-11-29T17:46:31Z");
  EXPECT_EQ(to_http_date(*time), "Sun, 29 Nov 2026 17:46:31 GMT");
  EXPECT_FALSE(parse_http_date("yesterday"));
}

TEST(Rest, LastsAsLongAsItIsToldTo) {
  const SystemClock clock;
  const Moment begun = clock.now();
  rest(Milliseconds(20), {});
  EXPECT_GE(clock.now() - begun, Milliseconds(20));
}

TEST(Rest, EndsWithAStop) {
  const SystemClock clock;
  const Moment begun = clock.now();
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  rest(std::chrono::hours(1), stop.get_token());
  rest(std::chrono::hours(1), stop.get_token());
  EXPECT_LT(clock.now() - begun, std::chrono::minutes(1));
}

TEST(Files, ReplacesAFileWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const auto path = folder / "state.json";
  ASSERT_TRUE(write_file_atomically(path, "one", 0600));
  ASSERT_TRUE(write_file_atomically(path, "two", 0600));
  EXPECT_EQ(*read_file(path), "two");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}),
            1);  // Nothing staged is left.
  EXPECT_EQ(write_file_atomically(path.parent_path() / "no" / "where", "x", 0600).error().code,
            ErrorCode::kNotFound);
}

TEST(Files, RefusesMoreThanAskedFor) {
  const TemporaryFolder folder;
  const auto path = folder / "big";
  ASSERT_TRUE(write_file_atomically(path, std::string(100, 'x'), 0600));
  EXPECT_EQ(read_file(path, 99).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(read_file(path, 100)->size(), 100u);
  EXPECT_EQ(read_file(path.parent_path() / "none").error().code, ErrorCode::kNotFound);
}

TEST(Files, KnowWhatWasStagedFromWhatIsSomebodys) {
  EXPECT_TRUE(is_staged_name(staged_name("state.json")));
  EXPECT_TRUE(is_staged_name(staged_name("a")));
  EXPECT_NE(staged_name("a"), staged_name("a"));
  for (const char* name : {"", ".tmp", "a.tmp", ".a.tmp", ".0123456789ab.tmp", "a.0123456789ab.tmp",
                           ".a.0123456789AB.tmp", ".a.0123456789ab.tmp~", ".a-0123456789ab.tmp"})
    EXPECT_FALSE(is_staged_name(name)) << name;
}

TEST(Files, ReadsNothingThatWouldMakeItWait) {
  const TemporaryFolder folder;
  const auto path = folder / "key", link = folder / "link", pipe = folder / "pipe";
  ASSERT_TRUE(write_file_atomically(path, "content", 0600));
  std::filesystem::create_symlink(path, link);
  EXPECT_EQ(*read_regular_file(path, 7), "content");
  EXPECT_EQ(*read_regular_file(link, 7), "content");
  EXPECT_EQ(read_regular_file(path, 6).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(read_regular_file(folder / "none", 7).error().code, ErrorCode::kNotFound);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& other :
       {pipe, folder.path(), std::filesystem::path("/dev/zero"),
        std::filesystem::path("/dev/tty")}) {
    const auto refused = read_regular_file(other, 7);
    ASSERT_FALSE(refused) << other;
    EXPECT_EQ(refused.error().message, other.string() + " is not a regular file");
  }
}

TEST(ReadLine, EndsAtTheLinesEndAndReadsNothingBehindIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd out(ends[0]);
  Fd in(ends[1]);
  ASSERT_TRUE(write_all(in.get(), "first\nsecond\ncut"));
  EXPECT_EQ(read_line(out.get(), 64, Milliseconds(60'000)), "first");
  EXPECT_EQ(read_line(out.get(), 3, Milliseconds(60'000)), "sec") << "no more than the maximum";
  EXPECT_EQ(read_line(out.get(), 64, Milliseconds(60'000)), "ond");
  EXPECT_EQ(read_line(out.get(), 64, Milliseconds(500)), "cut") << "when the time is over";
  ASSERT_TRUE(write_all(in.get(), "end"));
  in.reset();
  EXPECT_EQ(read_line(out.get(), 64, Milliseconds(60'000)), "end") << "where the other side ends";
  EXPECT_EQ(read_line(out.get(), 64, Milliseconds(60'000)), "");
}

TEST(Files, LocksOnce) {
  const TemporaryFolder folder;
  const auto path = folder / "lock";
  const auto held = lock_file(path);
  ASSERT_TRUE(held);
  EXPECT_EQ(lock_file(path).error().code, ErrorCode::kConflict);
}

TEST(Files, TellsWhetherALockIsHeld) {
  const TemporaryFolder folder;
  const auto path = folder / "lock";
  EXPECT_EQ(*is_locked(path), false);
  {
    const auto held = lock_file(path);
    EXPECT_EQ(*is_locked(path), true);
  }
  EXPECT_EQ(*is_locked(path), false);
}

TEST(Files, WaitsOutThoseWhoOnlyLook) {
  const TemporaryFolder folder;
  const auto path = folder / "lock";
  Fd look(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(look.get(), LOCK_SH), 0);
  auto locked = std::async(std::launch::async, [&] { return lock_file(path); });
  EXPECT_EQ(locked.wait_for(Milliseconds(20)), std::future_status::timeout);
  look.reset();
  EXPECT_TRUE(locked.get());
}

TEST(Strings, EncodesAndDecodesPercents) {
  EXPECT_EQ(percent_encode("a b&c=ü"), "a%20b%26c%3D%C3%BC");
  EXPECT_EQ(percent_decode("a%20b%26c"), "a b&c");
  EXPECT_FALSE(percent_decode("%2"));
  EXPECT_FALSE(percent_decode("%zz"));
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_FALSE(parse_integer("42x"));
}

TEST(Strings, CutBetweenCharacters) {
  EXPECT_EQ(cut("aü", 3), "aü");
  EXPECT_EQ(cut("aü", 2), "a");
  EXPECT_EQ(cut("ü", 1), "");
}

TEST(Strings, KeepAStrangersTextWithinItsLine) {
  const struct {
    std::string_view text, line;
  } cases[] = {
      {"", ""},
      {"a\nb\x1b[31mc\x7f ü", "a b [31mc  ü"},
      {std::string_view("a\0b", 3), "a b"},
      {"a\u0080b\u009b31mc\u009fd", "a b 31mc d"},
      {"\u00a0ß語😀", "\u00a0ß語😀"},
      {"a\u061Cb\u200Ec\u200Fd", "a b c d"},
      {"a\u202Ab\u202Bc\u202Cd\u202De\u202Ef", "a b c d e f"},
      {"a\u2066b\u2067c\u2068d\u2069e", "a b c d e"},
      {"a\u2028b\u2029c", "a b c"},
      {"\u200D\u2027\u202F\u2065\u206A", "\u200D\u2027\u202F\u2065\u206A"},
      {"a\x9b", "a?"},
      {"\xff\xfe"
       "b\n",
       "??b "},
      {"half \xc2", "half ?"},
      {"half \xe2\x80", "half ??"},
      {"\xc0\x8a\xed\xa0\x80", "?????"},
  };
  for (const auto& each : cases) EXPECT_EQ(on_one_line(each.text), each.line);
}

TEST(JsonText, NeverThrows) {
  EXPECT_FALSE(parse_json("{"));
  EXPECT_EQ(to_text(Json("\xff")), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(text_at(Json{{"a", 1}}, "a"), std::nullopt);
  EXPECT_EQ(integer_at(Json{{"a", 1}}, "a"), 1);
}

TEST(Log, WritesTextAndJson) {
  EXPECT_EQ(log::text_line("bound", {{"uid", "u 1"}, {"epoch", 2}}), "bound uid=\"u 1\" epoch=2");
  EXPECT_EQ(log::json_line(log::Level::kInfo, "t", "bound", {{"uid", "u\"1"}, {"ok", true}}),
            R"({"time":"t","level":"info","message":"bound","uid":"u\"1","ok":true})");
}

TEST(Log, ShowsNoCharacterThatSteersWhoReadsIt) {
  const struct {
    std::string_view value, shown;
  } cases[] = {
      {"über", "über"},
      {"über\r", R"("\u00fcber\r")"},
      {"a\x1b[31m", R"("a\u001b[31m")"},
      {"a\x7f", R"("a\u007f")"},
      {"a\u009b31m", R"("a\u009b31m")"},
      {"a\u202eb", R"("a\u202eb")"},
      {"a\xff", R"("a\ufffd")"},
      {"ü b", R"("ü b")"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(log::text_line("told", {{"by", each.value}}), "told by=" + std::string(each.shown));
    if (each.shown.front() != '"') continue;
    EXPECT_EQ(
        log::json_line(log::Level::kInfo, "t", "told", {{"by", each.value}}),
        R"({"time":"t","level":"info","message":"told","by":)" + std::string(each.shown) + "}");
  }
}

}  // namespace
}  // namespace base
