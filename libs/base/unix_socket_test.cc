#include "libs/base/unix_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

namespace base {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<UnixListener> listener_at(const fs::path& path, const SocketRights& rights = {}) {
  auto listener = UnixListener::at(path, rights);
  EXPECT_TRUE(listener) << listener.error().message;
  return listener ? *std::move(listener) : nullptr;
}

struct stat about(const fs::path& path) {
  struct stat found{};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0);
  return found;
}

TEST(UnixListener, IsForItsOwnerUnlessMoreAreLetIn) {
  const TemporaryFolder folder;
  const fs::path path = folder / "s";
  const auto closed = listener_at(path);
  EXPECT_EQ(about(path).st_mode & 0777, 0600u);
  const fs::path shared = folder / "g";
  const auto open = listener_at(shared, {.mode = 0660, .group = ::getgid()});
  EXPECT_EQ(about(shared).st_mode & 0777, 0660u);
  EXPECT_EQ(about(shared).st_gid, ::getgid());
}

TEST(UnixListener, HearsWhoConnectsAndWhoThatIs) {
  const TemporaryFolder folder;
  const auto listener = listener_at(folder / "s");
  const auto connected = connect_to(folder / "s");
  ASSERT_TRUE(connected) << connected.error().message;
  const auto shared = listener->share();
  ASSERT_TRUE(shared);
  const Fd accepted(::accept(shared->get(), nullptr, nullptr));
  ASSERT_TRUE(accepted);
  const auto peer = peer_of(accepted.get());
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::geteuid());
  EXPECT_EQ(peer->gid, ::getegid());
  std::vector<gid_t> groups(static_cast<std::size_t>(::getgroups(0, nullptr)));
  ::getgroups(static_cast<int>(groups.size()), groups.data());
  EXPECT_EQ(peer->groups, groups);
}

TEST(UnixListener, TakesThePlaceOfOneThatEndedAndOfNoOther) {
  const TemporaryFolder folder;
  const fs::path path = folder / "s";
  auto first = listener_at(path);
  const auto second = UnixListener::at(path, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(connect_to(path)) << "it goes on";
  fs::rename(path, folder / "kept");
  first.reset();
  fs::rename(folder / "kept", path);
  ASSERT_EQ(connect_to(path).error().code, ErrorCode::kUnavailable) << "nobody listens";
  const auto third = listener_at(path);
  EXPECT_TRUE(connect_to(path));
}

TEST(UnixListener, ReplacesNothingThatIsNoSocket) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "file", "mine", 0600));
  fs::create_symlink(folder / "nowhere", folder / "link");
  for (const char* name : {"file", "link"}) {
    const auto refused = UnixListener::at(folder / name, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "cannot listen at " + (folder / name).string() +
                                           ": something that is no socket stands there");
  }
  EXPECT_EQ(*read_file(folder / "file"), "mine");
  EXPECT_FALSE(fs::exists(folder / "file.lock")) << "nothing is made beside what is not ours";
  EXPECT_EQ(UnixListener::at(folder / "no" / "s", {}).error().code, ErrorCode::kNotFound);
}

TEST(UnixListener, LeavesAloneWhatAnotherIsJustMaking) {
  const TemporaryFolder folder;
  const fs::path path = folder / "s";
  auto place = lock_file(path.string() + ".lock");
  const Fd bound(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(bound.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const ino_t inode = about(path).st_ino;  // Nobody listens there yet.
  EXPECT_EQ(UnixListener::at(path, {}).error().code, ErrorCode::kConflict);
  EXPECT_EQ(about(path).st_ino, inode);
  place->reset();  // It has ended right there.
  EXPECT_TRUE(listener_at(path));
}

TEST(UnixListener, RemovesItsOwnFileAlone) {
  const TemporaryFolder folder;
  const fs::path path = folder / "s";
  auto first = listener_at(path);
  EXPECT_TRUE(first->stands());
  fs::remove(path);
  EXPECT_FALSE(first->stands());
  EXPECT_EQ(UnixListener::at(path, {}).error().code, ErrorCode::kConflict) << "its place is kept";
  fs::remove(path.string() + ".lock");  // As with the whole folder.
  auto second = listener_at(path);
  first.reset();
  EXPECT_TRUE(second->stands());
  EXPECT_TRUE(connect_to(path));
  second.reset();
  EXPECT_FALSE(fs::exists(path));
}

// While it lives.
struct AsUser {
  explicit AsUser(uid_t uid) { EXPECT_EQ(::seteuid(uid), 0); }
  ~AsUser() { EXPECT_EQ(::seteuid(0), 0); }
};
constexpr uid_t kNobody = 65534, kAnother = 65533;  // Of the test's own groups.
constexpr gid_t kStrangers = 65533;                 // Of which neither is.

struct FolderCase {
  const char* name;
  mode_t mode;
  mode_t lock_mode;
};
const FolderCase kFolders[] = {
    {"of_one", 0755, 0600},
    {"of_a_group", 0775, 0660},
    {"of_all", 0777, 0666},
    {"where_each_has_his_own", 01777, 0600},
};

TEST(UnixListener, LetsThoseLockItsPlaceWhoMayHaveIt) {
  const TemporaryFolder folder;
  for (const FolderCase& one : kFolders) {
    const fs::path in = folder / one.name;
    fs::create_directory(in);
    ASSERT_EQ(::chmod(in.c_str(), one.mode), 0);
    const auto listener = listener_at(in / "s");
    EXPECT_EQ(about(in / "s.lock").st_mode & 07777, one.lock_mode) << one.name;
    EXPECT_EQ(about(in / "s.lock").st_gid, about(in).st_gid) << one.name;
  }
}

// A lock of their own group, which is none that the folder tells anything of.
TEST(UnixListener, LetsThoseLockItsPlaceWhoMayHaveItInAFolderOfStrangers) {
  if (::geteuid() != 0) GTEST_SKIP() << "becomes another user, which needs root";
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  for (const auto& [mode, lock_mode] :
       {std::pair<mode_t, mode_t>(0755, 0600), {0775, 0600}, {0777, 0666}, {01777, 0600}}) {
    const fs::path in = folder / std::to_string(mode);
    fs::create_directory(in);
    ASSERT_EQ(::chown(in.c_str(), kNobody, kStrangers), 0);
    ASSERT_EQ(::chmod(in.c_str(), mode), 0);
    {
      const AsUser nobody(kNobody);
      listener_at(in / "s");
    }
    EXPECT_EQ(about(in / "s.lock").st_mode & 07777, lock_mode) << std::oct << mode;
    const AsUser another(kAnother);
    EXPECT_EQ(UnixListener::at(in / "s", {}).ok(), lock_mode == 0666) << std::oct << mode;
  }
}

// One that ended as if it had been killed.
void leave_behind(const fs::path& path, const SocketRights& rights) {
  auto ended = listener_at(path, rights);
  const fs::path aside = path.string() + ".aside";
  fs::rename(path, aside);
  ended.reset();
  fs::rename(aside, path);
}

TEST(UnixListener, IsTakenOverByAnotherUserWhereHeMay) {
  if (::geteuid() != 0) GTEST_SKIP() << "becomes another user, which needs root";
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  const fs::path closed = folder / "closed", open = folder / "open";
  for (const fs::path& each : {closed, open}) fs::create_directory(each);
  ASSERT_EQ(::chmod(open.c_str(), 0777), 0);
  for (const fs::path& each : {closed / "s", open / "ended"}) listener_at(each);
  leave_behind(open / "killed", {.mode = 0666});
  leave_behind(open / "private", {.mode = 0600});
  const AsUser nobody(kNobody);
  for (const char* name : {"ended", "killed"}) EXPECT_TRUE(listener_at(open / name)->stands());
  const auto refusal = [](const fs::path& path, const fs::path& file, const std::string& what) {
    return Error{ErrorCode::kDenied,
                 "cannot listen at " + path.string() + ": " + file.string() +
                     " is of uid 0, and uid 65534 may not " + what +
                     "; remove it when nobody listens there any more, or listen elsewhere"};
  };
  EXPECT_EQ(UnixListener::at(closed / "s", {}).error(),
            refusal(closed / "s", closed / "s.lock", "lock it"));
  EXPECT_EQ(UnixListener::at(open / "private", {}).error(),
            refusal(open / "private", open / "private", "see whether anybody listens"));
}

TEST(UnixListener, StandsAtPathsOfAnyLength) {
  const TemporaryFolder folder;
  const fs::path deep = folder / std::string(120, 'd');
  fs::create_directory(deep);
  auto listener = listener_at(deep / "s");
  EXPECT_TRUE(listener->stands());
  EXPECT_EQ(UnixListener::at(deep / "s", {}).error().code, ErrorCode::kConflict);
  EXPECT_TRUE(connect_to(deep / "s"));
  listener.reset();
  EXPECT_FALSE(fs::exists(deep / "s"));
  EXPECT_EQ(UnixListener::at(folder / std::string(120, 's'), {}).error().code, ErrorCode::kInvalid);
}

TEST(FindGroup, TakesANameOrANumber) {
  EXPECT_EQ(find_group("root"), 0u);
  EXPECT_EQ(find_group("4242"), 4242u);
  for (const char* none : {"", "-1", "4294967295", "no such group", "4242x"})
    EXPECT_EQ(find_group(none), std::nullopt) << none;
}

TEST(ConnectTo, TellsWhatIsWrong) {
  const TemporaryFolder folder;
  EXPECT_EQ(connect_to(folder / "s").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace base
