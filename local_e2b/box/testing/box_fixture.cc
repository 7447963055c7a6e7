#include "local_e2b/box/testing/box_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/strings.h"
#include "libs/base/testing/eventually.h"
#include "local_e2b/box/remove_tree.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

// Only the lines that name our state folder: other programs mount and unmount meanwhile.
std::string mounts_naming(const fs::path& state) {
  const auto text = base::read_file("/proc/self/mountinfo");
  std::string found;
  for (const std::string& line : base::split(text ? *text : "", '\n'))
    if (line.find(state.string()) != std::string::npos) found += line + "\n";
  return found;
}

// Those that a box has left behind see where its root comes from.
std::string processes_with_mounts_of(const std::string& name) {
  std::string found;
  for (const fs::path& process : base::entries_of("/proc")) {
    const auto mounts = base::read_file(process / "mountinfo");
    if (mounts && mounts->find(name) != std::string::npos) found += process.string() + "\n";
  }
  return found;
}

}  // namespace

void BoxTest::SetUp() {
  machine_ = probe_capabilities();
  if (!machine_.lacks.empty())
    GTEST_SKIP() << "this machine cannot hold boxes: " << base::join(machine_.lacks, "; ");
  const std::string name = "sandfleet-test-" + base::random_hex(6);
  state_ = parent_ / name;
  cgroup_name_ = name;
  boxes_ = std::make_unique<Boxes>(settings(), machine_);
}

void BoxTest::TearDown() {
  if (!boxes_) return;
  boxes_->destroy_unknown({});
  EXPECT_EQ(leftovers(), "");
  EXPECT_TRUE(remove_tree(state_).ok());
  if (!machine_.cgroup2.empty()) ::rmdir((machine_.cgroup2 / cgroup_name_).c_str());
}

BoxSettings BoxTest::settings() const {
  const char* const init = std::getenv(kInitVariable);
  return {
      .state = state_,
      .executor = init ? init : fs::read_symlink("/proc/self/exe").parent_path() / "box_shell_init",
      .cgroup_name = cgroup_name_};
}

BoxRecord BoxTest::make(const std::string& id) {
  auto made = boxes_->create({.id = id});
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made ? *made : BoxRecord{};
}

base::Fd BoxTest::connect(const BoxRecord& box) {
  base::Fd connected;
  base::eventually([&] {
    auto socket = boxes_->socket_inside(box);
    if (!socket) return false;
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(49983);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::connect(socket->get(), reinterpret_cast<sockaddr*>(&there), sizeof there);
    pollfd writable{socket->get(), POLLOUT, 0};
    ::poll(&writable, 1, 1000);
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(socket->get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0 || !(writable.revents & POLLOUT)) return false;
    connected = *std::move(socket);
    return true;
  });
  return connected;
}

std::string BoxTest::run(const BoxRecord& box, const std::string& command) {
  const base::Fd connection = connect(box);
  if (!connection) return "(cannot connect)";
  EXPECT_TRUE(base::write_all(connection.get(), command + "\n").ok());
  std::string printed;
  for (;;) {
    pollfd readable{connection.get(), POLLIN, 0};
    if (::poll(&readable, 1, 20'000) != 1) return printed + "(no answer)";
    char part[4096];
    const ssize_t got = ::read(connection.get(), part, sizeof part);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return printed;
    printed.append(part, static_cast<std::size_t>(got));
  }
}

std::string BoxTest::leftovers() const {
  std::string found = mounts_naming(state_) + processes_with_mounts_of(cgroup_name_);
  for (const fs::path& entry : base::entries_of(state_ / "boxes")) found += entry.string() + "\n";
  if (machine_.cgroup2.empty()) return found;
  for (const fs::path& entry : base::entries_of(machine_.cgroup2 / cgroup_name_))
    if (fs::is_directory(entry)) found += entry.string() + "\n";
  return found;
}

}  // namespace local_e2b
