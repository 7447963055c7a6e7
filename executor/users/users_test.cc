#include "executor/users/users.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "executor/testing/scratch.h"

namespace executor {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "# comment:x:1:1::/:/bin/sh\n"
    "half:x:5\n"
    "bad:x:minus:1::/:/bin/sh\n"
    "user:x:1000:1000:A User,,,:/home/user:/bin/zsh\n";
constexpr std::string_view kGroups =
    "root:x:0:\n"
    "sudo:x:27:other,user\n"
    "broken\n"
    "user:x:1000:user\n";

TEST(Users, AreReadFromPasswdAndGroup) {
  Scratch etc;
  etc.write("passwd", kPasswd);
  etc.write("group", kGroups);
  const Users users(etc.path(), true);
  const auto user = users.find("user");
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(*user, (User{"user", 1000, 1000, "/home/user", "/bin/zsh", {1000, 27}}));
  EXPECT_EQ(users.usual(), "user");
  EXPECT_EQ(users.name_of_user(1000), "user");
  EXPECT_EQ(users.name_of_user(4242), "4242");
  EXPECT_EQ(users.name_of_group(27), "sudo");
  EXPECT_EQ(users.name_of_group(4242), "4242");
}

TEST(Users, AreSeenOnceTheFileHasChanged) {
  Scratch etc;
  etc.write("passwd", kPasswd);
  const Users users(etc.path(), true);
  EXPECT_EQ(users.name_of_user(7), "7");
  EXPECT_EQ(users.name_of_group(7), "7") << "there is no group file yet";
  etc.write("passwd", std::string(kPasswd) + "late:x:7:7::/:/bin/sh\n");
  etc.write("group", "late:x:7:\n");
  EXPECT_EQ(users.name_of_user(7), "late");
  EXPECT_EQ(users.name_of_group(7), "late");
}

TEST(Users, SkipLinesThatMakeNoSense) {
  EXPECT_EQ(parse_passwd(kPasswd).size(), 2u);
  EXPECT_EQ(parse_groups(kGroups).size(), 3u);
}

TEST(Users, AnUnknownNameIsDenied) {
  Scratch etc;
  etc.write("passwd", kPasswd);
  for (const bool may_switch : {true, false}) {
    const auto nobody = Users(etc.path(), may_switch).find("half");
    ASSERT_FALSE(nobody.ok());
    EXPECT_EQ(nobody.error().code, base::ErrorCode::kDenied);
    EXPECT_EQ(nobody.error().message, "no user is called 'half'");
  }
}

TEST(Users, EveryKnownNameIsOurselvesWhenWeCannotSwitch) {
  Scratch etc;
  etc.write("passwd", kPasswd);
  const auto user = Users(etc.path(), false).find("user");
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, ::geteuid());
  EXPECT_EQ(user->gid, ::getegid());
}

TEST(Users, ASecondNameOfOursHasAHomeOfItsOwn) {
  const std::string ids = std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
  Scratch etc;
  etc.write("passwd",
            "first:x:" + ids + "::/first:/bin/bash\nuser:x:" + ids + "::/home/user:/bin/zsh\n");
  const Users users(etc.path(), false);
  const auto user = users.find("user");
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(*user,
            (User{"user", ::geteuid(), ::getegid(), "/home/user", "/bin/zsh", {::getegid()}}));
  EXPECT_EQ(users.name_of_user(::geteuid()), "first");
  EXPECT_EQ(users.find("first")->home, users.current().home);
}

}  // namespace
}  // namespace executor
