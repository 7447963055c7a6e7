#include "libs/kube/watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace kube {
namespace {

using base::Json;
using Kind = WatchEvent::Kind;

std::vector<WatchEvent> decode(std::string_view text, std::size_t piece) {
  WatchDecoder decoder;
  std::vector<WatchEvent> events;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const auto fed = decoder.feed(text.substr(at, piece), [&](WatchEvent&& event) {
      events.push_back(std::move(event));
      return true;
    });
    EXPECT_TRUE(fed && *fed);
  }
  EXPECT_FALSE(decoder.is_amid());
  return events;
}

TEST(WatchDecoder, ReadsPiecesOfAnySize) {
  const std::string text =
      "{\"type\":\"ADDED\",\"object\":{\"a\":\"\\n{}\"}}\n"
      "{\"type\":\"MODIFIED\",\"object\":{\"a\":2}}\n\n"
      "{\"type\":\"DELETED\",\"object\":{}}\r\n"
      "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n"
      "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n";
  const std::vector<WatchEvent> expected = {
      {Kind::kAdded, {{"a", "\n{}"}}},
      {Kind::kModified, {{"a", 2}}},
      {Kind::kDeleted, Json::object()},
      {Kind::kBookmark, {{"metadata", {{"resourceVersion", "7"}}}}},
      {Kind::kError, {{"code", 410}}},
  };
  for (std::size_t piece = 1; piece <= text.size(); ++piece)
    ASSERT_EQ(decode(text, piece), expected) << piece;
}

TEST(WatchDecoder, StopsWhereItsTakerHasSeenEnough) {
  WatchDecoder decoder;
  int seen = 0;
  const auto fed =
      decoder.feed("{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"ADDED\",\"object\":{}}\n",
                   [&](WatchEvent&&) { return ++seen < 1; });
  ASSERT_TRUE(fed);
  EXPECT_FALSE(*fed);
  EXPECT_EQ(seen, 1);
}

TEST(WatchDecoder, KnowsThatItWasCutWithinAnEvent) {
  WatchDecoder decoder;
  ASSERT_TRUE(decoder.feed("{\"type\":", [](WatchEvent&&) { return true; }));
  EXPECT_TRUE(decoder.is_amid());
}

TEST(WatchDecoder, RefusesWhatIsNoWatch) {
  for (const char* line : {"<html>\n", "[]\n", "{\"type\":\"NEWS\",\"object\":{}}\n",
                           "{\"type\":\"ADDED\"}\n", "{\"type\":\"ADDED\",\"object\":3}\n"}) {
    WatchDecoder decoder;
    const auto fed = decoder.feed(line, [](WatchEvent&&) { return true; });
    ASSERT_FALSE(fed) << line;
    EXPECT_EQ(fed.error().code, base::ErrorCode::kUnavailable);
  }
}

TEST(WatchDecoder, BoundsALine) {
  WatchDecoder decoder;
  const auto none = [](WatchEvent&&) { return true; };
  ASSERT_TRUE(decoder.feed(std::string(kWatchLineMax, ' '), none));
  const auto fed = decoder.feed(" ", none);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().message, "an event is larger than 16777216 bytes");
}

TEST(WatchEvents, KnowTheEndOfTheInitialOnes) {
  const Json marked = {{"metadata", {{"annotations", {{"k8s.io/initial-events-end", "true"}}}}}};
  EXPECT_TRUE(ends_initial_events({Kind::kBookmark, marked}));
  EXPECT_FALSE(ends_initial_events({Kind::kAdded, marked}));
  EXPECT_FALSE(ends_initial_events({Kind::kBookmark, {{"metadata", Json::object()}}}));
}

TEST(ResourceVersions, CompareAsNumbersOrNotAtAll) {
  EXPECT_EQ(is_older("9", "10"), true);
  EXPECT_EQ(is_older("10", "9"), false);
  EXPECT_EQ(is_older("10", "10"), false);
  EXPECT_EQ(is_older("18446744073709551615", "18446744073709551616"), true);
  for (const char* strange : {"", "0", "a", "-1", "1.5"}) {
    EXPECT_EQ(is_older(strange, "1"), std::nullopt) << strange;
    EXPECT_EQ(is_older("1", strange), std::nullopt) << strange;
  }
}

}  // namespace
}  // namespace kube
