#include "agentd/door/tcp_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/certificate.h"
#include "libs/base/strings.h"
#include "libs/base/testing/temporary_folder.h"

namespace agentd {
namespace {

using namespace std::chrono_literals;
using aio::testing::hear_until;
using aio::testing::kPatience;
using ::testing::HasSubstr;
using Use = base::CertificateTerms::Use;

base::Certified authority() {
  const auto now = base::SystemClock().wall();
  return *base::make_authority({"authority", {}, now - 2h, now + 1h});
}

// A door whose files stand in a folder; whoever is let in is told so.
struct Site {
  Site() {
    show("127.0.0.1");
    write("ca.pem", trusted.certificate);
    write("token", "0123456789abcdef\n");
  }
  ~Site() { loop.run(finish(*this)); }

  void write(const char* name, const std::string& text) { std::ofstream(folder / name) << text; }
  base::Certified issue(const std::string& name, Use use) const {
    const auto now = base::SystemClock().wall();
    return *base::issue(trusted, {"one", {name}, now - 1h, now + 1h, use});
  }
  void show(const std::string& name) {
    const base::Certified made = issue(name, Use::kServer);
    write("tls.pem", made.certificate);
    write("key.pem", made.key);
  }
  TcpDoorSettings settings() const {
    return {.address = "127.0.0.1",
            .certificate = folder / "tls.pem",
            .key = folder / "key.pem",
            .look = base::Milliseconds(0)};
  }
  base::Result<base::Done> open(TcpDoorSettings settings) {
    TRY(door, TcpDoor::at(loop.executor(), std::move(settings),
                          [this](auto stream, Caller caller) { greet(stream, caller); }));
    tasks.spawn(door->open());
    return base::Done{};
  }
  void greet(std::shared_ptr<aio::Stream> stream, const Caller& caller) {
    callers.push_back(caller);
    tasks.spawn(say(std::move(stream)));
  }
  static aio::Task<> say(std::shared_ptr<aio::Stream> stream) {
    static_cast<void>(co_await stream->write("come in"));
    stream->close_write();
  }
  // What a client is told, by the door or by its own TLS.
  static aio::Task<std::string> come(Site& site, aio::TlsClient::Options options) {
    options.authorities = site.trusted.certificate;
    const auto tls = *aio::TlsClient::with(options);
    auto plain = co_await aio::testing::dial(site.door->port());
    auto secured = co_await tls.secure(plain, "127.0.0.1", kPatience);
    if (!secured) co_return secured.error().message;
    co_return co_await hear_until(*secured, "come in");
  }
  static aio::Task<int> finish(Site& site) {
    site.tasks.cancel();
    co_await site.tasks.wait();
    co_return 0;
  }

  base::TemporaryFolder folder;
  const base::Certified trusted = authority();
  aio::Loop loop;
  std::vector<Caller> callers;
  std::unique_ptr<TcpDoor> door;
  aio::TaskGroup tasks{loop.executor()};
};

aio::Task<> come_with_certificates(Site& site) {
  TcpDoorSettings settings = site.settings();
  settings.client_authorities = site.folder / "ca.pem";
  EXPECT_TRUE(site.open(settings));
  EXPECT_THAT(co_await Site::come(site, {}), ::testing::Not(HasSubstr("come in")));
  const base::Certified other = authority();
  const auto now = base::SystemClock().wall();
  const auto foreign = *base::issue(other, {"two", {"h"}, now - 1h, now + 1h, Use::kClient});
  EXPECT_THAT(co_await Site::come(site, {.identity = foreign}),
              ::testing::Not(HasSubstr("come in")));
  EXPECT_TRUE(site.callers.empty());
  EXPECT_EQ(co_await Site::come(site, {.identity = site.issue("h", Use::kClient)}), "come in");
  EXPECT_EQ(site.callers.size(), 1u);
  EXPECT_THAT(site.callers.at(0).name, HasSubstr("127.0.0.1:"));
  EXPECT_THAT(site.callers.at(0).name, HasSubstr("one"));
  EXPECT_FALSE(site.callers.at(0).token);
}
TEST(TcpDoors, LetInWhoHasACertificate) { aio::testing::tell(come_with_certificates); }

aio::Task<> change_the_files(Site& site) {
  TcpDoorSettings settings = site.settings();
  settings.token = site.folder / "token";
  EXPECT_TRUE(site.open(settings));
  EXPECT_EQ(co_await Site::come(site, {}), "come in");
  EXPECT_EQ(site.callers.back().token, "0123456789abcdef");
  site.write("token", "fedcba9876543210");
  site.show("other.test");
  EXPECT_THAT(co_await Site::come(site, {}), ::testing::Not(HasSubstr("come in")))
      << "the new certificate is for another host";
  site.show("127.0.0.1");
  EXPECT_EQ(co_await Site::come(site, {}), "come in");
  EXPECT_EQ(site.callers.back().token, "fedcba9876543210");
  site.write("key.pem", "spoilt");
  site.write("token", "short");
  EXPECT_EQ(co_await Site::come(site, {}), "come in") << "what was there before holds";
  EXPECT_EQ(site.callers.back().token, "fedcba9876543210");
}
TEST(TcpDoors, FollowTheirFiles) { aio::testing::tell(change_the_files); }

aio::Task<> come_in_a_crowd(Site& site) {
  TcpDoorSettings settings = site.settings();
  settings.token = site.folder / "token";
  settings.look = 1h;
  EXPECT_TRUE(site.open(settings));
  site.write("token", "fedcba9876543210");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(co_await Site::come(site, {}), "come in");
  EXPECT_EQ(site.callers.back().token, "0123456789abcdef") << "the files were not read for each";
}
TEST(TcpDoors, ReadTheirFilesSoOften) { aio::testing::tell(come_in_a_crowd); }

aio::Task<> tell_each_trouble_once(Site& site) {
  TcpDoorSettings settings = site.settings();
  settings.token = site.folder / "token";
  EXPECT_TRUE(site.open(settings));
  ::testing::internal::CaptureStderr();
  for (const char* token : {"short", "0123456789abcdef"}) {
    site.write("token", token);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await Site::come(site, {}), "come in");
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(base::split(log, '\n').size(), 3u) << log;
  EXPECT_THAT(log, HasSubstr("are no good"));
  EXPECT_THAT(log, HasSubstr("are good again"));
}
TEST(TcpDoors, TellEachTroubleWithTheirFilesOnce) { aio::testing::tell(tell_each_trouble_once); }

aio::Task<> say_nothing(Site& site) {
  TcpDoorSettings settings = site.settings();
  settings.token = site.folder / "token";
  EXPECT_TRUE(site.open(settings));
  std::vector<std::shared_ptr<aio::Stream>> silent(2 * TcpDoor::kHandshakesMax);
  for (auto& one : silent) one = co_await aio::testing::dial(site.door->port());
  // Those beyond are hung up on, and whoever comes later gets in when the first have had their
  // time.
  EXPECT_THAT(co_await hear_until(silent.back(), ""), ::testing::AnyOf("<end>", "<broken>"));
  std::string heard;
  while (heard != "come in") heard = co_await Site::come(site, {});
  EXPECT_EQ(site.callers.size(), 1u);
}
TEST(TcpDoors, WaitOnlySoLongForThoseThatSayNothing) { aio::testing::tell(say_nothing); }

TEST(TcpDoors, SayWhichFileIsNoGood) {
  Site site;
  TcpDoorSettings settings = site.settings();
  settings.token = site.folder / "nowhere";
  EXPECT_THAT(site.open(settings).error().message, HasSubstr("nowhere"));
  site.write("short", "12345");
  settings.token = site.folder / "short";
  EXPECT_THAT(site.open(settings).error().message, HasSubstr("16 to 8192 bytes"));
  settings = site.settings();
  settings.key = site.folder / "ca.pem";
  EXPECT_FALSE(site.open(settings));
  settings = site.settings();
  settings.address = "localhost";
  EXPECT_THAT(site.open(settings).error().message, HasSubstr("not an IP address"));
}

}  // namespace
}  // namespace agentd
