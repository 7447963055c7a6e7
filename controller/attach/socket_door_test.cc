#include "controller/attach/socket_door.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <condition_variable>

#include "controller/attach/peer_access.h"
#include "controller/attach/testing/scene.h"
#include "libs/base/json.h"
#include "libs/base/testing/eventually.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/base/time.h"
#include "libs/wire/attach.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::HasSubstr;

// The whole reply to one question; empty: none.
std::string ask(const fs::path& path, const std::string& name = "box") {
  auto socket = base::connect_to(path);
  if (!socket) return "";
  ::fcntl(socket->get(), F_SETFL, 0);
  const std::string body = R"({"namespace":"team-a","name":")" + name + "\"}";
  const std::string request = "POST " + std::string(wire::kAttachPath) +
                              " HTTP/1.1\r\nHost: attach\r\nConnection: close\r\nContent-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body;
  if (::send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string all;
  char piece[4096];
  ssize_t got;
  while ((got = ::recv(socket->get(), piece, sizeof piece, 0)) > 0)
    all.append(piece, static_cast<std::size_t>(got));
  return all;
}

int status_of(const std::string& reply) {
  return reply.size() < 12 ? 0 : std::atoi(reply.c_str() + 9);
}

class SocketDoorTest : public testing::Test {
 protected:
  SocketDoorSettings settings() {
    return {.path = folder_ / "attach.sock",
            .hindrance = [this] { return std::string(hindered_ ? "the folder is another" : ""); },
            .look = 20ms};
  }

  const base::TemporaryFolder folder_;
  const fs::path path_ = folder_ / "attach.sock";
  std::atomic<bool> hindered_ = false;
  base::SystemClock clock_;
  OneSandbox store_;
  PeerAccess access_{{}};
  metrics::Registry registry_{attach_metrics()};
  AttachService service_{{store_, access_, clock_, registry_},
                         kFleetKey,
                         [](const api::Sandbox&, std::stop_token) -> base::Result<envd::Route> {
                           return envd::Route{"https://24984-i1.example.dev", {}};
                         }};
};

TEST_F(SocketDoorTest, IsOpenForUsAlone) {
  SocketDoor door(service_, settings());
  EXPECT_EQ(door.trouble(), "the attach service: not opened yet");
  EXPECT_EQ(ask(path_), "");
  testing::internal::CaptureStderr();
  door.open();
  EXPECT_EQ(door.trouble(), "");
  struct stat about{};
  ASSERT_EQ(::lstat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  const std::string reply = ask(path_);
  EXPECT_EQ(status_of(reply), 200) << reply;
  const base::Json told = base::Json::parse(reply.substr(reply.find("\r\n\r\n")));
  EXPECT_EQ(told["endpoint"]["url"], "https://24984-i1.example.dev");
  const std::string refusal = ask(path_, "none");
  EXPECT_EQ(status_of(refusal), 404);
  EXPECT_THAT(refusal, HasSubstr(R"("reason":"NotFound")"));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("caller=uid:" + std::to_string(::geteuid())));
  EXPECT_THAT(log, HasSubstr("client=pid:" + std::to_string(::getpid())));
  EXPECT_THAT(log, Not(HasSubstr(told["token"].get<std::string>())));
}

TEST_F(SocketDoorTest, TakesItsSocketAlongAtTheEnd) {
  {
    SocketDoor door(service_, settings());
    door.open();
    EXPECT_TRUE(fs::exists(path_));
  }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(SocketDoorTest, MakesItsSocketAnewWhenItIsGone) {
  SocketDoor door(service_, settings());
  door.open();
  fs::remove(path_);
  EXPECT_TRUE(base::eventually([&] { return status_of(ask(path_)) == 200; }));
}

TEST_F(SocketDoorTest, MakesNoneInAFolderThatIsNotOurs) {
  SocketDoor door(service_, settings());
  door.open();
  hindered_ = true;
  EXPECT_EQ(status_of(ask(path_)), 200) << "what stands there is ours";
  fs::remove(path_);
  EXPECT_TRUE(base::eventually(
      [&] { return door.trouble() == "the attach service: the folder is another"; }));
  EXPECT_FALSE(fs::exists(path_));
  hindered_ = false;
  EXPECT_TRUE(base::eventually([&] { return status_of(ask(path_)) == 200; }));
  EXPECT_EQ(door.trouble(), "");
}

TEST_F(SocketDoorTest, WaitsForItsPlaceWhileAnotherHasIt) {
  auto other = base::UnixListener::at(path_, {});
  ASSERT_TRUE(other);
  SocketDoor door(service_, settings());
  door.open();
  EXPECT_THAT(door.trouble(), HasSubstr("another process listens there"));
  other->reset();
  EXPECT_TRUE(base::eventually([&] { return status_of(ask(path_)) == 200; }));
}

TEST_F(SocketDoorTest, HasRoomForSoManyAtOnce) {
  SocketDoorSettings few = settings();
  few.connections_max = 2;
  SocketDoor door(service_, few);
  door.open();
  auto first = base::connect_to(path_), second = base::connect_to(path_);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(base::eventually([&] { return ask(path_).empty(); })) << "both are taken up";
  first->reset();
  EXPECT_TRUE(base::eventually([&] { return status_of(ask(path_)) == 200; }));
}

TEST_F(SocketDoorTest, WaitsForNobodyAtItsEnd) {
  std::mutex mutex;
  std::condition_variable_any changed;
  bool asked = false;
  AttachService slow({store_, access_, clock_, registry_}, kFleetKey,
                     [&](const api::Sandbox&, std::stop_token stop) -> base::Result<envd::Route> {
                       std::unique_lock lock(mutex);
                       asked = true;
                       changed.notify_all();
                       changed.wait(lock, stop, [] { return false; });
                       return base::Error{base::ErrorCode::kUnavailable, "stopped"};
                     });
  auto door = std::make_unique<SocketDoor>(slow, settings());
  door->open();
  std::jthread caller([&] { EXPECT_THAT(status_of(ask(path_)), testing::AnyOf(0, 503)); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return asked; });
  }
  door.reset();
}

}  // namespace
}  // namespace controller
