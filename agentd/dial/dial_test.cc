#include "agentd/dial/dial.h"

#include <gtest/gtest.h>

#include <optional>

#include "libs/aio/http_server.h"
#include "libs/aio/testing/run.h"

namespace agentd {
namespace {

struct UrlCase {
  const char* url;
  std::optional<Place> place;
  const char* authority = "";
};
const UrlCase kUrls[] = {
    {"http://127.0.0.1:3000", Place{false, "127.0.0.1", 3000, ""}, "127.0.0.1:3000"},
    {"https://24984-id.e2b.app", Place{true, "24984-id.e2b.app", 443, ""}, "24984-id.e2b.app"},
    {"HTTP://Host/prefix/id/24984/", Place{false, "host", 80, "/prefix/id/24984"}, "host"},
    {"https://h:443/", Place{true, "h", 443, ""}, "h"},
    {"http://h:443", Place{false, "h", 443, ""}, "h:443"},
    {"http://[::1]:3000/p", Place{false, "::1", 3000, "/p"}, "[::1]:3000"},
    {"https://[FD00::1]", Place{true, "fd00::1", 443, ""}, "[fd00::1]"},
    {"h:80", std::nullopt},
    {"ftp://h", std::nullopt},
    {"http://", std::nullopt},
    {"http://:80", std::nullopt},
    {"http://h:0", std::nullopt},
    {"http://h:65536", std::nullopt},
    {"http://h:80x", std::nullopt},
    {"http://user@h", std::nullopt},
    {"http://[::1", std::nullopt},
    {"http://[::1]x", std::nullopt},
    {"http://[::1]:", std::nullopt},
    {"http://[]:80", std::nullopt},
    {"http://[::g]:80", std::nullopt},
    {"http://[127.0.0.1]", std::nullopt},
    {"http://::1", std::nullopt},
    {"http://h/path?query", std::nullopt},
    {"http://h /", std::nullopt},
};

TEST(Places, AreReadFromUrls) {
  for (const UrlCase& one : kUrls) {
    const auto place = place_of(one.url);
    ASSERT_EQ(place.ok(), one.place.has_value()) << one.url;
    if (!place) continue;
    EXPECT_EQ(*place, *one.place) << one.url;
    EXPECT_EQ(place->authority(), one.authority) << one.url;
  }
}

struct Site {
  aio::Loop loop;
  Names names{loop.executor()};
  aio::HttpServer server{loop.executor(), [](auto) { return aio::sleep_for({}); }};
};

aio::Task<> dial_names(Site& site) {
  const int port = *site.server.listen("127.0.0.1", 0);
  for (const char* host : {"127.0.0.1", "localhost", "24984-id.localhost"}) {
    const auto stream =
        co_await dial({.host = host, .port = port}, site.names, base::Milliseconds(60'000));
    EXPECT_TRUE(stream) << host << ": " << stream.error().message;
  }
  aio::HttpServer other(site.loop.executor(), [](auto) { return aio::sleep_for({}); });
  if (const auto v6_port = other.listen("::1", 0)) {
    EXPECT_TRUE(
        co_await dial({.host = "::1", .port = *v6_port}, site.names, base::Milliseconds(60'000)));
  }
  const auto nobody = co_await dial({.host = "nobody.invalid", .port = port}, site.names,
                                    base::Milliseconds(60'000));
  EXPECT_FALSE(nobody);
  site.server.stop();
  EXPECT_FALSE(
      co_await dial({.host = "localhost", .port = port}, site.names, base::Milliseconds(60'000)));
}
TEST(Dialling, FindsHostsByTheirNames) { aio::testing::tell(dial_names); }

}  // namespace
}  // namespace agentd
