#include "cli/resources/follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/resources/cluster_backend.h"
#include "cli/testing/fake_cluster.h"
#include "libs/base/testing/eventually.h"

// A cluster that is being watched.
namespace cli {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using base::Json;
using testing::ElementsAre;
using testing::HasSubstr;

Json box(const std::string& name, const std::string& version) {
  return {{"apiVersion", "sandfleet.dev/v1alpha1"},
          {"kind", "Sandbox"},
          {"metadata",
           {{"name", name}, {"namespace", "default"}, {"uid", name}, {"resourceVersion", version}}},
          {"spec", {{"template", {{"id", "base"}}}}}};
}

class FollowerTest : public testing::Test {
 protected:
  static net::Answer stream(const std::vector<std::string>& names) {
    net::Answer answer{.end = net::Answer::End::kSilence};
    for (const auto& name : names)
      answer.pieces.push_back(base::to_text(Json{{"type", "ADDED"}, {"object", box(name, "1")}}) +
                              "\n");
    answer.pieces.push_back(
        base::to_text(Json{{"type", "BOOKMARK"},
                           {"object",
                            {{"metadata",
                              {{"resourceVersion", "5"},
                               {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}}}}) +
        "\n");
    return answer;
  }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    const auto found = backend_.sandboxes(kWhere);
    EXPECT_TRUE(found) << found.error().message;
    if (found)
      for (const auto& each : *found) all.push_back(each.metadata.key.name);
    return all;
  }

  static inline const Where kWhere{"default"};
  static inline const Query kQuery{Collection::kSandboxes, kWhere};
  std::mutex mutex_;
  net::Handler handler_;
  kube::FakeServer server_{[this](const net::Request& request) {
    std::lock_guard lock(mutex_);
    return handler_(request);
  }};
  kube::Client client_{server_.connection(), {}};
  std::vector<std::string> said_;
  ClusterBackend backend_{client_, server_.clock(),
                          [this](const std::string& news) { said_.push_back(news); }};
};

TEST_F(FollowerTest, ShowsWhatTheWatchBrings) {
  handler_ = [](const net::Request& request) {
    if (request.url.find("sendInitialEvents") != std::string::npos) return stream({"a", "b"});
    if (request.url.find("watch=true") != std::string::npos)
      return net::Answer{
          .pieces = {base::to_text(Json{{"type", "DELETED"}, {"object", box("a", "7")}}) + "\n"},
          .end = net::Answer::End::kSilence};
    return net::answer(200, R"({"metadata":{"resourceVersion":"1"},"items":[]})");
  };
  EXPECT_TRUE(names().empty());
  EXPECT_TRUE(base::eventually([&] {
    backend_.await_change(kQuery, 1s);
    return names() == std::vector<std::string>{"b"};
  }));
  EXPECT_THAT(said_, ElementsAre());
}

TEST_F(FollowerTest, EndsWhenTheRightIsMissing) {
  handler_ = [](const net::Request& request) {
    if (request.url.find("watch=true") == std::string::npos)
      return net::answer(200, R"({"metadata":{"resourceVersion":"1"},"items":[]})");
    return status_answer(403, "Forbidden",
                         "User \"bob\" cannot watch resource \"sandboxes\" in API group "
                         "\"sandfleet.dev\" in the namespace \"default\"");
  };
  EXPECT_TRUE(names().empty());
  base::Result<std::vector<api::Sandbox>> found = std::vector<api::Sandbox>{};
  EXPECT_TRUE(base::eventually([&] {
    backend_.await_change(kQuery, 1s);
    found = backend_.sandboxes(kWhere);
    return !found;
  }));
  EXPECT_EQ(found.error().code, ErrorCode::kDenied);
  EXPECT_THAT(found.error().message,
              HasSubstr("the right to watch sandboxes.sandfleet.dev in namespace default"));
}

TEST_F(FollowerTest, ShowsWhatWasKnownWhileTheServerIsAwayAndSaysSo) {
  bool away = false;
  handler_ = [&](const net::Request& request) {
    if (away) return net::refused_connection();
    if (request.url.find("sendInitialEvents") != std::string::npos) return stream({"a"});
    if (request.url.find("watch=true") != std::string::npos)
      return net::Answer{
          .pieces = {base::to_text(Json{{"type", "MODIFIED"}, {"object", box("a", "6")}}) + "\n"},
          .end = net::Answer::End::kCut};
    return net::answer(200, base::to_text(Json{{"metadata", {{"resourceVersion", "5"}}},
                                               {"items", {box("a", "1")}}}));
  };
  EXPECT_THAT(names(), ElementsAre("a"));
  EXPECT_TRUE(base::eventually([&] {
    backend_.await_change(kQuery, 1s);
    return names().size() == 1;
  }));
  {
    std::lock_guard lock(mutex_);
    away = true;
  }
  EXPECT_TRUE(base::eventually([&] {
    backend_.await_change(kQuery, 1s);
    EXPECT_THAT(names(), ElementsAre("a"));
    return !said_.empty();
  }));
  EXPECT_THAT(said_.at(0), HasSubstr("warning: what is shown may be old, for the watch was cut "
                                     "off: "));
  {
    std::lock_guard lock(mutex_);
    away = false;
  }
  EXPECT_TRUE(base::eventually([&] {
    backend_.await_change(kQuery, 1s);
    return said_.back() == "the watch goes on";
  }));
}

}  // namespace
}  // namespace cli
