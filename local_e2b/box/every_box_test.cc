#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "libs/base/descriptors.h"
#include "libs/base/files.h"
#include "libs/base/kernel_files.h"
#include "libs/base/testing/eventually.h"
#include "local_e2b/box/box.h"
#include "local_e2b/box/testing/box_fixture.h"

// What holds for boxes of the host's root and of an ordinary user alike.
namespace local_e2b {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(BoxTest, HidesWhatIsTheHosts) {
  const BoxRecord box = make("hides");
  const std::string secret = "host-secret-" + cgroup_name_;
  const fs::path file = state_ / "secret";
  ASSERT_TRUE(base::write_file_atomically(file, secret, 0644).ok());
  EXPECT_THAT(run(box, "cat " + file.string()), HasSubstr("No such file"));
  EXPECT_THAT(run(box, "cat /etc/shadow"), StartsWith("root:*:"));
  EXPECT_EQ(run(box, "ls /root; ls /etc/ssl"), "certs\nopenssl.cnf\n");
  EXPECT_THAT(run(box, "ls /etc"), Not(HasSubstr("npmrc")));
  EXPECT_THAT(run(box, "cat /proc/1/environ | tr '\\0' '\\n'"), Not(HasSubstr("CTEST")));
  // Standard streams and the listener of the test's init: nothing was left open by the builder.
  EXPECT_EQ(run(box, "ls /proc/1/fd | xargs"), "0 1 2 3\n");
  EXPECT_THAT(run(box, "readlink /proc/1/fd/1"), HasSubstr("envd.log"));
}

TEST_F(BoxTest, HasALoopbackOfItsOwn) {
  const BoxRecord box = make("network");
  const base::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&here), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&here), &size);
  const auto dial = [&](int port) {
    return run(
        box, "bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(port) + " && echo open' 2>&1");
  };
  EXPECT_EQ(dial(49983), "open\n");
  EXPECT_THAT(dial(ntohs(here.sin_port)), HasSubstr("refused"));
  EXPECT_THAT(run(box, "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | xargs"), "lo\n");
}

TEST_F(BoxTest, LeavesTheBoxItsPortsWhereWeDialFromThem) {
  const BoxRecord box = make("ports");
  const base::Fd dialed = connect(box);
  sockaddr_in from{};
  socklen_t size = sizeof from;
  ASSERT_EQ(::getsockname(dialed.get(), reinterpret_cast<sockaddr*>(&from), &size), 0);
  auto server = boxes_->socket_inside(box);
  ASSERT_TRUE(server.ok()) << server.error().message;
  const int on = 1;
  ::setsockopt(server->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  from.sin_addr.s_addr = htonl(INADDR_ANY);
  EXPECT_EQ(::bind(server->get(), reinterpret_cast<sockaddr*>(&from), size), 0)
      << std::strerror(errno);
  EXPECT_EQ(::listen(server->get(), 1), 0) << std::strerror(errno);
}

TEST_F(BoxTest, ShowsTheExecutorWhereATemplateHasIt) {
  const auto baked = boxes_->create({.id = "baked", .executor_baked_in = true});
  ASSERT_TRUE(baked.ok()) << baked.error().message;
  EXPECT_EQ(run(*baked, std::string("cmp ") + kEnvdPath + " " + kBakedExecutorPath +
                            " && stat -c %a " + kBakedExecutorPath),
            "755\n");
  EXPECT_EQ(run(*baked, std::string("cd /opt/sandfleet/bin && sha256sum sandfleet-executor | "
                                    "cut -d' ' -f1 | cmp - sandfleet-executor.sha256 && "
                                    "[ -O sandfleet-executor.sha256 ] && "
                                    "[ ! sandfleet-executor -nt sandfleet-executor.sha256 ] && "
                                    "stat -c %a sandfleet-executor.sha256")),
            "644\n");
  EXPECT_THAT(run(make("plain"), std::string("ls ") + kBakedExecutorPath),
              HasSubstr("No such file"));
}

TEST_F(BoxTest, ShowsExtraFolders) {
  const fs::path lower = fs::path("/var/tmp") / (cgroup_name_ + "-lower,:x");
  fs::create_directory(lower);
  ASSERT_TRUE(base::write_file_atomically(lower / "seen", "yes", 0644).ok());
  BoxSettings wider = settings();
  wider.extra_lowers = {lower};
  boxes_ = std::make_unique<Boxes>(wider, machine_);
  const BoxRecord box = make("extra");
  EXPECT_EQ(run(box, "cd '" + lower.string() + "' && cat seen && echo no > seen && cat seen"),
            "yesno\n");
  EXPECT_EQ(*base::read_file(lower / "seen"), "yes");
  wider.extra_lowers = {"/"};
  const auto refused = Boxes(wider, machine_).create({.id = "all"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  fs::remove_all(lower);
}

TEST_F(BoxOnDiskTest, RemovesFilesThatDoNotWantToGo) {
  const fs::path outside = state_ / "outside";
  ASSERT_TRUE(base::make_folders(outside, 0755).ok());
  ASSERT_TRUE(base::write_file_atomically(outside / "keep", "kept", 0644).ok());
  const BoxRecord box = make("stubborn");
  EXPECT_EQ(run(box, "cd /home/user && ln -s " + outside.string() +
                         " link && ln -s / all && "
                         "mkfifo pipe && mkdir shut && touch shut/file && chmod 000 shut && "
                         "touch \"$(printf 'new\\nline')\" && "
                         "mkdir -p kept/full && touch kept/full/file && chmod -R a-w kept && "
                         "for i in $(seq 300); do mkdir d; cd d; done; touch bottom; chmod a-w .; "
                         "chmod 000 /; echo deep"),
            "deep\n");
  const auto destroyed = boxes_->destroy(box);
  EXPECT_TRUE(destroyed.ok()) << destroyed.error().message;
  EXPECT_FALSE(fs::exists(box.folder));
  EXPECT_EQ(*base::read_file(outside / "keep"), "kept");
}

TEST_F(BoxTest, OutlivesItsServer) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t server = ::fork();
  if (server == 0) {
    const auto made = Boxes(settings(), machine_).create({.id = "orphan"});
    const std::string text = made ? base::to_text(to_json(*made)) + "\n" : "\n";
    (void)base::write_all(ends[1], text);
    for (;;) ::pause();
  }
  base::Fd read_end(ends[0]);
  base::Fd(ends[1]).reset();
  std::string text;
  for (char letter; ::read(read_end.get(), &letter, 1) == 1 && letter != '\n';) text += letter;
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);

  const auto json = base::parse_json(text);
  ASSERT_TRUE(json.ok());
  const auto box = box_record_from_json(*json);
  ASSERT_TRUE(box.ok()) << box.error().message;
  EXPECT_TRUE(boxes_->alive(*box));
  EXPECT_EQ(run(*box, "hostname"), "orphan\n");
  EXPECT_EQ(boxes_->freeze(*box).ok(), machine_.no_pause.empty());
  EXPECT_TRUE(boxes_->thaw(*box).ok());
  EXPECT_THAT(boxes_->destroy_unknown({*box}).destroyed, IsEmpty());
  EXPECT_TRUE(boxes_->alive(*box));
  EXPECT_TRUE(boxes_->destroy(*box).ok());
  EXPECT_EQ(leftovers(), "");
  EXPECT_FALSE(base::runs(box->init_pid));
}

TEST_F(BoxTest, LeavesNothingThatTheNextServerCannotRemove) {
  std::set<std::string> met;
  for (int moment = 0; moment < 24; ++moment) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t server = ::fork();
    if (server == 0) {
      Boxes boxes(settings(), machine_);
      (void)boxes.create({.id = "whole"});
      (void)base::write_all(ends[1], "y");
      for (int number = 0;; ++number)
        (void)boxes.create({.id = "dying-" + std::to_string(number % 50)});
    }
    const base::Fd told(ends[0]);
    base::Fd(ends[1]).reset();
    char byte = 0;
    ASSERT_EQ(::read(told.get(), &byte, 1), 1);
    ::poll(nullptr, 0, moment * 4);  // The moment of death is what is tried here.
    ::kill(server, SIGKILL);
    ::waitpid(server, nullptr, 0);
    for (const std::string& id : boxes_->destroy_unknown({}).destroyed) met.insert(id);
    // An init that was not yet let go on ends by itself.
    EXPECT_TRUE(base::eventually([&] { return leftovers().empty(); }))
        << "killed after " << moment * 4 << " ms: " << leftovers();
  }
  EXPECT_THAT(met, testing::IsSupersetOf({"whole", "dying-0"}));
}

TEST_F(BoxTest, BelievesNoRecordOfAnotherProcess) {
  const BoxRecord box = make("believed");
  BoxRecord later = box;
  later.init_start += 1;
  EXPECT_FALSE(boxes_->alive(later));
  BoxRecord stranger = box;
  stranger.init_pid = ::getpid();
  stranger.init_start = base::look_at_process(::getpid())->start;
  EXPECT_FALSE(boxes_->alive(stranger)) << "it is another process";
  EXPECT_TRUE(boxes_->dead(later) && boxes_->dead(stranger));
  BoxRecord pointing_out = box;
  pointing_out.folder = "/etc";
  EXPECT_EQ(boxes_->destroy(pointing_out).error().code, ErrorCode::kInvalid);
  pointing_out = box;
  pointing_out.id = "../believed";
  EXPECT_EQ(boxes_->destroy(pointing_out).error().code, ErrorCode::kInvalid);
  pointing_out = box;
  pointing_out.cgroup = "/sys/fs/cgroup/unified/another";
  EXPECT_EQ(boxes_->destroy(pointing_out).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(boxes_->alive(box));
}

TEST_F(BoxTest, TakesNoBoxForDeadThatItCannotLookAt) {
  const BoxRecord box = make("unseen");
  const auto limit = base::raise_descriptor_limit();
  base::set_descriptor_limit(0);
  const bool dead = boxes_->dead(box), alive = boxes_->alive(box);
  base::set_descriptor_limit(limit.before);
  EXPECT_FALSE(dead);
  EXPECT_FALSE(alive);
  EXPECT_TRUE(boxes_->alive(box));
}

TEST_F(BoxTest, KnowsWhenInitIsGone) {
  const BoxRecord box = make("gone");
  ASSERT_EQ(::kill(box.init_pid, SIGKILL), 0);
  EXPECT_TRUE(base::eventually([&] { return boxes_->dead(box); }));
  EXPECT_FALSE(boxes_->alive(box));
  EXPECT_EQ(boxes_->freeze(box).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(boxes_->destroy(box).ok());
}

TEST_F(BoxTest, LeavesNothingWhereverBuildingFails) {
  const auto steps = build_steps();
  EXPECT_GT(steps.size(), 20u);
  for (const std::string& step : steps) {
    BoxSettings failing = settings();
    failing.fail_at = step;
    const auto made = Boxes(failing, machine_).create({.id = "failing"});
    ASSERT_FALSE(made.ok()) << step;
    EXPECT_THAT(made.error().message, HasSubstr("\"" + step + "\""));
    EXPECT_EQ(leftovers(), "") << step;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left after " << step;
  }
}

TEST_F(BoxTest, MountsNothingOnTheHost) {
  make("mounts");
  const auto mounts = base::read_file("/proc/self/mountinfo");
  EXPECT_THAT(*mounts, Not(HasSubstr(cgroup_name_)));
  EXPECT_THAT(*mounts, Not(HasSubstr("tmp/0/lower")));
}

}  // namespace
}  // namespace local_e2b
