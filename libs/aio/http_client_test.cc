#include "libs/aio/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"

namespace aio {
namespace {

using ::testing::HasSubstr;
using testing::hear_until;
using testing::kPatience;

// Says `once` to the request, then `again` for as long as anybody reads.
Task<> serve(std::shared_ptr<Stream> stream, std::string once, std::string again) {
  EXPECT_THAT(co_await hear_until(stream, "\r\n\r\n"), HasSubstr("GET /x HTTP/1.1"));
  bool heard = (co_await stream->write(once)).ok();
  while (heard && !again.empty()) heard = (co_await stream->write(again)).ok();
}

Task<> ask(Executor executor, std::string once, std::string again, std::string& outcome) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto near = Stream::over(executor, base::Fd(ends[0]));
  TaskGroup group(executor);
  group.spawn(serve(Stream::over(executor, base::Fd(ends[1])), once, again));
  const HttpRequest request{.method = "GET", .target = "/x"};
  const auto reply = co_await exchange(near, request, kPatience, 1000);
  outcome = reply ? std::to_string(reply->status) + " " + reply->body : reply.error().message;
  near->close();
  co_await group.wait();
}

TEST(HttpClient, TellsWhatCame) {
  struct Case {
    const char *once, *again, *outcome;
  };
  const Case kCases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "", "200 hi"},
      {"HTTP/1.1 103 E\r\nX: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "",
       "200 hi"},
      {"", "HTTP/1.1 100 C\r\n\r\n", "the server sent more than 64 interim replies"},
      {"HTTP/1.1 101 S\r\n\r\n", "", "the server speaks no HTTP any more"},
      {"", "HTTP/1.1 200 OK\r\nX: ", "the server sent too large a head"},
      {"HTTP/1.1 200 OK\r\n\r\n", "body", "the reply is too large"},
      {"nothing like it\r\n\r\n", "", "the server sent no HTTP"},
  };
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.outcome);
    Loop loop;
    std::string outcome;
    testing::run(loop, ask(loop.executor(), each.once, each.again, outcome));
    EXPECT_EQ(outcome, each.outcome);
  }
}

}  // namespace
}  // namespace aio
