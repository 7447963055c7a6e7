#include "controller/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/file_store.h"

namespace controller {
namespace {

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    std::filesystem::create_directories(folder_.path() / "manifests");
    write(
        "manifests/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {apiKey: of-secret}\n");
    write("manifests/odd.yaml",
          "apiVersion: v1\nkind: Secret\nmetadata: {name: ended}\n"
          "stringData: {apiKey: \"of-secret\\r\\n\"}\n---\n"
          "apiVersion: v1\nkind: Secret\nmetadata: {name: cut}\n"
          "stringData: {apiKey: \"canary\\r\\nof-secret\"}\n---\n"
          "apiVersion: v1\nkind: Secret\nmetadata: {name: blank}\n"
          "stringData: {apiKey: \" \\n\"}\n");
    auto opened = manifests::FileStore::open({.manifests = folder_.path() / "manifests",
                                              .state = folder_.path() / "state",
                                              .machine_id = "machine"},
                                             clock_);
    store_ = *std::move(opened);
    EXPECT_TRUE(store_->scan_once());
  }
  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  base::Result<std::string> key_of(const std::string& provider,
                                   const std::vector<std::string>& files,
                                   const std::string& environment = "",
                                   const char* secret = nullptr) {
    TRY(const auto credentials, Credentials::read(files, environment));
    api::SandboxProvider wanted;
    wanted.metadata.key.name = provider;
    if (secret) wanted.spec.credentials = {.name = secret};
    return credentials.api_key(*store_, "default", wanted);
  }

  base::TemporaryFolder folder_;
  base::FakeClock clock_;
  std::unique_ptr<manifests::FileStore> store_;
};

TEST_F(CredentialsTest, TakesTheMostSpecificSource) {
  const std::string all = write("all", "of-all\n"), own = "one=" + write("own", " of-one \n");
  EXPECT_EQ(*key_of("one", {all, own}, "of-environment", "keys"), "of-secret");
  EXPECT_EQ(*key_of("one", {all, own}, "of-environment"), "of-one");
  EXPECT_EQ(*key_of("two", {all, own}, "of-environment"), "of-all");
  EXPECT_EQ(*key_of("two", {own}, "of-environment"), "of-environment");
}

TEST_F(CredentialsTest, DoesNotWaitForWhoeverWritesToAPipe) {
  const auto pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& file :
       {pipe.string(), std::string("/dev/zero"), folder_.path().string()}) {
    const auto key = key_of("one", {file}, "of-environment");
    ASSERT_FALSE(key) << file;
    EXPECT_EQ(key.error().message, file + " is not a regular file");
  }
}

TEST_F(CredentialsTest, ReadsAKeyAgainForEachUse) {
  const std::string file = write("key", "old");
  const auto credentials = Credentials::read({file}, "");
  EXPECT_EQ(*credentials->api_key(*store_, "default", {}), "old");
  write("key", "new");
  EXPECT_EQ(*credentials->api_key(*store_, "default", {}), "new");
}

TEST_F(CredentialsTest, SaysWhatIsMissingAndNeverAKey) {
  const std::string empty = write("empty", " \n"), gone = folder_.path() / "gone";
  EXPECT_EQ(key_of("one", {}).error().message,
            "SandboxProvider one has no API key: name a Secret in spec.credentialsSecretRef, or "
            "give --api-key-file, or set SANDFLEET_API_KEY");
  EXPECT_EQ(key_of("one", {empty}).error().message, empty + " holds no API key");
  EXPECT_EQ(key_of("one", {gone}).error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(key_of("one", {}, "of-environment", "other").error().message,
            "there is no Secret default/other in the manifests");
  EXPECT_EQ(key_of("one", {"one=" + empty, "one=" + gone}).error().message,
            "--api-key-file one=" + gone +
                ": there is one for that provider already; give each provider one file");
  EXPECT_EQ(key_of("one", {write("large", std::string(5'000, 'k'))}).error().code,
            base::ErrorCode::kInvalid);
}

TEST_F(CredentialsTest, TakesAKeyWithoutTheBlanksAroundIt) {
  EXPECT_EQ(*key_of("one", {}, "", "ended"), "of-secret");
  EXPECT_EQ(*key_of("one", {write("ended", "of-file\r\n")}), "of-file");
  EXPECT_EQ(*key_of("one", {}, "of-environment\n"), "of-environment");
}

TEST_F(CredentialsTest, RefusesWhatCannotBeAKeyAndNeverTellsIt) {
  const std::string cut = write("cut", "canary\nof-file"), tab = write("tab", "canary\tof-file");
  const auto told = [](const base::Result<std::string>& key) {
    EXPECT_FALSE(key);
    EXPECT_EQ(key.error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(key.error().message.find("canary"), std::string::npos);
    return key.error().message;
  };
  const std::string advice = " after its first 6 characters, and no key has one: it is one line";
  EXPECT_EQ(told(key_of("one", {}, "", "cut")),
            "the API key in Secret default/cut (apiKey) has a line break" + advice);
  EXPECT_EQ(told(key_of("one", {}, "", "blank")), "Secret default/blank (apiKey) holds no API key");
  EXPECT_EQ(told(key_of("one", {cut})), "the API key in " + cut + " has a line break" + advice);
  EXPECT_EQ(told(key_of("one", {tab})), "the API key in " + tab + " has a tab" + advice);
  EXPECT_EQ(told(key_of("one", {}, std::string("canary\x7f-of-environment"))),
            "the API key in the environment has a control character" + advice);
}

TEST_F(CredentialsTest, TakesAPathWithAnEqualsSignAsAPath) {
  EXPECT_EQ(*key_of("one", {write("a=b", "of-path")}), "of-path");
}

}  // namespace
}  // namespace controller
