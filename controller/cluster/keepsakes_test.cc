#include "controller/cluster/keepsakes.h"

#include <gmock/gmock.h>

#include "controller/cluster/testing/kept_objects.h"
#include "libs/base/crypto.h"

namespace controller {
namespace {

using base::ErrorCode;
using base::Json;
using testing::HasSubstr;
using testing::SizeIs;

class KeepsakesTest : public testing::Test {
 protected:
  // Another controller writes before ours does, so often.
  void others_write(const std::string& path, int times) {
    kept_.before_each = [this, path, times](const net::Request& request) mutable {
      if (request.method == "GET" || times-- <= 0) return;
      kept_.put(path, kept_.objects.contains(path) ? kept_.objects[path] : Json::object());
    };
  }
  std::size_t writes() {
    return static_cast<std::size_t>(std::ranges::count_if(
        server_.transport().requests(), [](const auto& each) { return each.method != "GET"; }));
  }
  static Keepsakes::Release release(const std::string& id) {
    return {id, "uid", "default", "Leave", base::WallTime(base::Seconds(1))};
  }

  KeptObjects kept_;
  kube::FakeServer server_{[this](const net::Request& request) { return kept_.answer(request); }};
  Keepsakes keepsakes_{server_.client(), "own", "rel"};
  const std::string record_ = "/api/v1/namespaces/own/configmaps/rel-released-default";
  const std::string fleet_key_ = "/api/v1/namespaces/own/secrets/rel-fleet-key";
};

TEST_F(KeepsakesTest, LosesNoReleaseWhenOthersWriteMeanwhile) {
  ASSERT_TRUE(keepsakes_.add_release(release("sb-1")));
  others_write(record_, kEditTriesMax - 1);
  const auto added = keepsakes_.add_release(release("sb-2"));
  ASSERT_TRUE(added) << added.error().message;
  kept_.before_each = {};
  EXPECT_THAT(*keepsakes_.releases("default"), SizeIs(2));
}

TEST_F(KeepsakesTest, WritesAnewWhatWasDeletedMeanwhile) {
  ASSERT_TRUE(keepsakes_.add_release(release("sb-1")));
  kept_.before_each = [this](const net::Request& request) {
    if (request.method == "PATCH") kept_.erase(record_);
  };
  const auto added = keepsakes_.add_release(release("sb-2"));
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ((*keepsakes_.releases("default"))[0].sandbox_id, "sb-2");
}

TEST_F(KeepsakesTest, GivesUpWhenOthersAlwaysWriteFirst) {
  ASSERT_TRUE(keepsakes_.add_release(release("sb-1")));
  others_write(record_, 1'000);
  EXPECT_EQ(keepsakes_.add_release(release("sb-2")).error().code, ErrorCode::kConflict);
  EXPECT_EQ(writes(), 1u + kEditTriesMax);
}

TEST_F(KeepsakesTest, RefusesAReleaseWhenTheRecordIsFull) {
  std::vector<Keepsakes::Release> full;
  full.reserve(api::kReleasesMax);
  for (std::size_t number = 0; number < api::kReleasesMax; ++number)
    full.push_back(release("sb-" + std::to_string(number)));
  kept_.put(record_, {{"data", {{"releases.json", base::to_text(api::to_json(full))}}}});
  EXPECT_EQ(keepsakes_.add_release(release("sb-new")).error().code, ErrorCode::kRateLimited);
  ASSERT_TRUE(keepsakes_.remove_release("default", "sb-7"));
  EXPECT_TRUE(keepsakes_.add_release(release("sb-new")));
  EXPECT_LT(kept_.objects[record_].dump().size(), 1u << 20);
}

TEST_F(KeepsakesTest, TakesNoBrokenReleaseRecordForAnEmptyOne) {
  for (const char* broken : {"[{\"sandboxID\": \"sb-1\"", "{}"}) {
    kept_.put(record_, {{"data", {{"releases.json", broken}}}});
    const auto releases = keepsakes_.releases("default");
    ASSERT_FALSE(releases) << broken;
    EXPECT_EQ(releases.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(releases.error().message, HasSubstr("the ConfigMap own/rel-released-default is "));
    EXPECT_FALSE(keepsakes_.add_release(release("sb-2")));
    EXPECT_FALSE(keepsakes_.remove_release("default", "sb-1"));
  }
  EXPECT_EQ(writes(), 0u);
}

TEST_F(KeepsakesTest, MakesOneFleetKeyHoweverManyMakeIt) {
  const std::string theirs(32, 'k');
  kept_.before_each = [&](const net::Request& request) {
    if (request.method == "POST")
      kept_.put(fleet_key_, {{"data", {{"key", base::to_base64(theirs)}}}});
  };
  EXPECT_EQ(*keepsakes_.fleet_key(), theirs);
  EXPECT_EQ(writes(), 1u);
}

TEST_F(KeepsakesTest, TakesNoBrokenFleetKeyForItsOwn) {
  kept_.put(fleet_key_, {{"data", {{"key", base::to_base64("short")}}}});
  const auto key = keepsakes_.fleet_key();
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().message,
            "the Secret own/rel-fleet-key does not hold 32 bytes; restore it from a copy");
  EXPECT_EQ(writes(), 0u);
}

TEST_F(KeepsakesTest, SpreadsTokensAndMakesRoomOfThoseThatAreGone) {
  const auto nobody = [](const std::string&) { return false; };
  ASSERT_TRUE(keepsakes_.keep_way_in("uid-1", {"sb-1", "0.6", "CANARY", {}}, nobody));
  ASSERT_THAT(kept_.objects, SizeIs(1));
  const std::string path = kept_.objects.begin()->first;
  EXPECT_EQ(path, "/api/v1/namespaces/own/secrets/rel-ways-in-" +
                      base::to_hex(base::sha256("uid-1").substr(0, 1)));
  EXPECT_EQ(keepsakes_.way_in("uid-1")->value().envd_token, "CANARY");

  Json crowd = Json::object();
  for (std::size_t number = 0; number < kWaysInOfSecretMax; ++number)
    crowd["other-" + std::to_string(number)] = base::to_base64("{}");
  kept_.put(path, {{"data", crowd}});
  const auto everybody = [](const std::string&) { return true; };
  EXPECT_EQ(keepsakes_.keep_way_in("uid-1", {"sb-1"}, everybody).error().code,
            ErrorCode::kRateLimited);
  ASSERT_TRUE(keepsakes_.keep_way_in("uid-1", {"sb-1"}, nobody));
  EXPECT_THAT(kept_.objects[path]["data"], SizeIs(1));
  ASSERT_TRUE(keepsakes_.forget_way_in("uid-1"));
  EXPECT_EQ(*keepsakes_.way_in("uid-1"), std::nullopt);
}

TEST_F(KeepsakesTest, SaysWhatASecretLacks) {
  kept_.put("/api/v1/namespaces/team/secrets/keys", {{"data", {{"a", base::to_base64("1")}}}});
  EXPECT_EQ(*secret_value(server_.client(), {"team", "keys"}, "a"), "1");
  EXPECT_EQ(secret_value(server_.client(), {"team", "keys"}, "b").error().message,
            "the Secret team/keys has no key \"b\", but a; add it, or refer to another key");
  const auto none = secret_value(server_.client(), {"team", "none"}, "a");
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(none.error().message,
            "there is no Secret team/none; create it: kubectl -n team create secret generic none "
            "--from-literal=a=...");
}

}  // namespace
}  // namespace controller
