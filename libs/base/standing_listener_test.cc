#include "libs/base/standing_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "libs/base/testing/temporary_folder.h"

namespace base {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StandingListenerTest : public testing::Test {
 protected:
  StandingListenerSettings settings() {
    return {.name = "the test", .path = path_, .folder_mode = 0755, .hindrance = [this] {
              return hindrance_;
            }};
  }
  void look() {
    looked_ = listener_.look([this] { served_.reset(); },
                             [this](Fd made) -> Result<Done> {
                               if (spoilt_)
                                 return error(ErrorCode::kUnavailable, "nobody can serve it");
                               ++made_;
                               served_ = std::move(made);
                               return Done{};
                             });
  }
  std::string log_of_looks(int looks) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < looks; ++i) look();
    return testing::internal::GetCapturedStderr();
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_ / "in" / "s";
  std::string hindrance_;
  bool spoilt_ = false;
  int made_ = 0;
  Result<Done> looked_ = Done{};
  Fd served_;
  StandingListener listener_{settings()};
};

TEST_F(StandingListenerTest, IsMadeOnceWhereItStands) {
  EXPECT_EQ(listener_.trouble(), "not opened yet");
  const std::string log = log_of_looks(3);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(listener_.trouble(), "");
  EXPECT_TRUE(connect_to(path_));
  EXPECT_THAT(log, HasSubstr("a socket is open"));
}

TEST_F(StandingListenerTest, IsMadeAnewWithItsFolder) {
  look();
  fs::remove(path_);
  look();
  EXPECT_EQ(made_, 2);
  EXPECT_TRUE(connect_to(path_));
  fs::remove_all(path_.parent_path());
  look();
  EXPECT_EQ(made_, 3);
  EXPECT_TRUE(connect_to(path_));
  fs::rename(path_.parent_path(), folder_ / "aside");  // With a lock that is held.
  look();
  EXPECT_EQ(made_, 4);
  EXPECT_TRUE(connect_to(path_));
  fs::remove_all(path_.parent_path());
  fs::rename(folder_ / "aside", path_.parent_path());  // With the socket of before.
  look();
  EXPECT_EQ(made_, 5);
  EXPECT_TRUE(connect_to(path_));
}

TEST_F(StandingListenerTest, TellsItsTroubleOnce) {
  hindrance_ = "the folder is another";
  EXPECT_THAT(log_of_looks(1), HasSubstr("the folder is another"));
  EXPECT_EQ(log_of_looks(3), "");
  EXPECT_EQ(listener_.trouble(), "the folder is another");
  EXPECT_FALSE(fs::exists(path_.parent_path()));
  hindrance_.clear();
  spoilt_ = true;
  EXPECT_THAT(log_of_looks(1), HasSubstr("nobody can serve it"));
  EXPECT_FALSE(fs::exists(path_)) << "nobody is to wait there in vain";
  spoilt_ = false;
  look();
  EXPECT_EQ(listener_.trouble(), "");
}

TEST_F(StandingListenerTest, WaitsForItsPlaceWhileAnotherHasIt) {
  fs::create_directory(path_.parent_path());
  auto other = UnixListener::at(path_, {});
  ASSERT_TRUE(other);
  look();
  EXPECT_THAT(listener_.trouble(), HasSubstr("another process listens there"));
  EXPECT_EQ(looked_.error().code, ErrorCode::kConflict);
  other->reset();
  look();
  EXPECT_EQ(listener_.trouble(), "");
}

}  // namespace
}  // namespace base
