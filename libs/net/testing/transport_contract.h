#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <list>
#include <memory>
#include <set>
#include <thread>

#include "libs/net/testing/answer.h"

// What every transport promises, for whoever writes one: include this in one test file and
// instantiate TransportContract with a way to make the transport and its other side.
namespace net {

struct World {
  virtual ~World() = default;
  virtual Transport& transport() = 0;
  virtual void close_transport() = 0;
  virtual std::string url() const = 0;
  virtual std::string url_of_nobody() const = 0;
  virtual void play(Handler handler) = 0;
  virtual std::vector<Request> requests() const = 0;
  virtual bool wait_until(const std::function<bool()>& fact) const = 0;
};

struct Kind {
  const char* name;
  std::function<std::unique_ptr<World>()> make;
  bool joins_repeats = false;  // Headers of one name become one, which RFC 9110 allows.
};
inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class TransportContract : public testing::TestWithParam<Kind> {
 protected:
  static constexpr base::Milliseconds kLong{20'000};
  static constexpr base::Milliseconds kShort{60};

  Request to(std::string method, std::string path = "/") {
    return Request{std::move(method), world_->url() + path};
  }
  Reply send(const Request& request, base::Milliseconds timeout = kLong) {
    return world_->transport().send(request, timeout, {});
  }
  std::size_t count(std::string_view method) const {
    const auto all = world_->requests();
    return std::count_if(all.begin(), all.end(),
                         [&](const Request& r) { return r.method == method; });
  }

  std::unique_ptr<World> world_ = GetParam().make();
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportContract);

// Reads `text` in pieces of an odd size.
inline auto source_of(std::string text) {
  return [text = std::move(text), at = std::size_t{0}](
             char* buffer, std::size_t size) mutable -> base::Result<std::size_t> {
    const std::size_t taken = std::min({size, text.size() - at, std::size_t{7'919}});
    text.copy(buffer, taken, at);
    at += taken;
    return taken;
  };
}

inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

TEST_P(TransportContract, CarriesMethodPathHeadersAndBody) {
  world_->play([](const Request&) {
    return answer(418, "short and stout", {{"X-One", "1"}, {"X-Many", "a"}, {"x-many", "b"}});
  });
  Request request = to("PATCH", "/a%2Fb?c=d%26");
  request.headers = {{"X-Asked", "yes"}, {"X-Empty", ""}, {"Content-Type", "text/plain"}};
  request.body = std::string("zero\0byte", 9);
  const Reply reply = send(request);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 418);
  EXPECT_EQ(reply->body, "short and stout");
  EXPECT_EQ(reply->headers.find("x-one"), "1");
  EXPECT_EQ(reply->headers.find("X-MANY"), GetParam().joins_repeats ? "a, b" : "a");

  const auto seen = world_->requests();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].method, "PATCH");
  EXPECT_TRUE(seen[0].url.ends_with("/a%2Fb?c=d%26")) << seen[0].url;
  EXPECT_EQ(seen[0].headers.find("X-Asked"), "yes");
  EXPECT_EQ(seen[0].headers.find("X-Empty"), "");
  EXPECT_EQ(seen[0].headers.find("Content-Type"), "text/plain");
  EXPECT_EQ(seen[0].headers.find("Expect"), std::nullopt);
  EXPECT_EQ(seen[0].body, request.body);
}

TEST_P(TransportContract, AddsNoContentTypeOfItsOwn) {
  world_->play([](const Request&) { return answer(204); });
  ASSERT_TRUE(send(to("POST")));
  Request with_body = to("POST");
  with_body.body = "{}";
  ASSERT_TRUE(send(with_body));
  for (const Request& seen : world_->requests())
    EXPECT_EQ(seen.headers.find("Content-Type"), std::nullopt);
}

TEST_P(TransportContract, AnyStatusIsAResponseAndNoRedirectIsFollowed) {
  for (const int status : {200, 201, 204, 301, 307, 304, 400, 401, 404, 409, 429, 500, 503, 504}) {
    world_->play([=, this](const Request&) {
      return answer(status, {}, {{"Location", world_->url() + "/elsewhere"}});
    });
    const Reply reply = send(to("GET"));
    ASSERT_TRUE(reply) << status << ": " << reply.error().message;
    EXPECT_EQ(reply->status, status);
  }
  EXPECT_EQ(world_->requests().size(), 14u);
}

TEST_P(TransportContract, ReadsAChunkedReply) {
  world_->play(
      [](const Request&) { return Answer{.pieces = {"one,", "two,", "three"}, .chunked = true}; });
  const Reply reply = send(to("GET"));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "one,two,three");
}

TEST_P(TransportContract, AHeadHasNoBody) {
  world_->play([](const Request&) { return answer(200, "unseen"); });
  const Reply reply = send(to("HEAD"));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "");
}

// The trap: the connection was good for one exchange and dies under the next one's reply.
TEST_P(TransportContract, NeverSendsASecondPostByItself) {
  for (const bool fresh : {false, true}) {
    const std::size_t before = count("POST");
    world_->play([](const Request&) { return answer(201, "made"); });
    Request request = to("POST", "/sandboxes");
    request.body = "{}";
    ASSERT_TRUE(send(request));
    world_->play([](const Request&) { return lost_answer(); });
    request.fresh_connection = fresh;
    const Reply reply = send(request);
    ASSERT_FALSE(reply);
    EXPECT_TRUE(reply.error().sent);
    EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
    EXPECT_EQ(count("POST"), before + 2);
  }
}

TEST_P(TransportContract, NorASecondDeleteOrPut) {
  for (const char* method : {"DELETE", "PUT", "PATCH"}) {
    world_->play([](const Request&) { return answer(200, "x"); });
    ASSERT_TRUE(send(to(method)));
    world_->play([](const Request&) { return lost_answer(); });
    EXPECT_FALSE(send(to(method)));
    EXPECT_EQ(count(method), 2u) << method;
  }
}

TEST_P(TransportContract, BoundsTheBody) {
  world_->play([](const Request&) { return answer(200, std::string(kBodyBytesMax, 'b')); });
  const Reply most = send(to("GET"));
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_EQ(most->body.size(), kBodyBytesMax);

  world_->play([](const Request&) {
    return Answer{.pieces = {std::string(kBodyBytesMax, 'b'), "!"}, .chunked = true};
  });
  const Reply reply = send(to("GET"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kInvalid);
  EXPECT_TRUE(reply.error().sent);
}

TEST_P(TransportContract, BoundsTheBodyAsTightlyAsAsked) {
  Request request = to("GET");
  request.body_bytes_max = 10;
  world_->play([](const Request&) { return answer(200, std::string(10, 'b')); });
  EXPECT_TRUE(send(request));
  world_->play([](const Request&) { return answer(200, std::string(11, 'b')); });
  const Reply reply = send(request);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kInvalid);
}

TEST_P(TransportContract, BoundsTheHead) {
  world_->play([](const Request&) {
    Answer made = answer(200);
    for (int i = 0; i < 300; ++i) made.headers.add("X-Padding", std::string(1000, 'h'));
    return made;
  });
  const Reply reply = send(to("GET"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kInvalid);
}

TEST_P(TransportContract, GivesUpWhenTheTimeIsOver) {
  world_->play([](const Request&) { return silent_answer(); });
  const Reply reply = send(to("GET"), kShort);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
}

TEST_P(TransportContract, TheTimeAlsoCoversADrippingBody) {
  world_->play(
      [](const Request&) { return Answer{.pieces = {"drip"}, .end = Answer::End::kSilence}; });
  const Reply reply = send(to("GET"), kShort);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
}

TEST_P(TransportContract, AStopEndsAWaitAtOnce) {
  world_->play([](const Request&) { return silent_answer(); });
  std::stop_source stop;
  std::jthread stopper([&] {
    world_->wait_until([&] { return !world_->requests().empty(); });
    stop.request_stop();
  });
  const auto before = std::chrono::steady_clock::now();
  const Reply reply = world_->transport().send(to("POST"), kLong, stop.get_token());
  EXPECT_LT(std::chrono::steady_clock::now() - before, kLong / 10);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kCancelled);
  EXPECT_TRUE(reply.error().sent);
}

TEST_P(TransportContract, AStopBeforehandSendsNothing) {
  std::stop_source stop;
  stop.request_stop();
  const Reply reply = world_->transport().send(to("POST"), kLong, stop.get_token());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kCancelled);
  EXPECT_FALSE(reply.error().sent);
  EXPECT_TRUE(world_->requests().empty());
}

TEST_P(TransportContract, AnswersAHundredAtOnce) {
  constexpr int kCount = 100;
  world_->play([](const Request& request) { return answer(200, request.body); });
  std::mutex mutex;
  std::set<std::string> bodies;
  std::latch all(kCount);
  for (int i = 0; i < kCount; ++i) {
    Request request = to("POST");
    request.body = "body " + std::to_string(i);
    world_->transport().start(request, kLong, [&](Reply reply) {
      {
        std::lock_guard lock(mutex);
        if (reply) bodies.insert(reply->body);
      }
      all.count_down();
    });
  }
  all.wait();
  EXPECT_EQ(bodies.size(), static_cast<std::size_t>(kCount));
}

TEST_P(TransportContract, ARequestDoesNotWaitForTheReplyToAnother) {
  world_->play([](const Request& request) {
    return request.method == "POST" ? silent_answer() : answer(200);
  });
  world_->transport().start(to("POST"), kLong, [](const Reply&) {});
  ASSERT_TRUE(world_->wait_until([&] { return !world_->requests().empty(); }));
  const Reply reply = send(to("GET"), kLong / 10);
  EXPECT_TRUE(reply) << reply.error().message;
}

TEST_P(TransportContract, ServesManyThreads) {
  world_->play([](const Request& request) { return answer(200, request.body); });
  std::atomic<int> right = 0;
  {
    std::list<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread)
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 10; ++i) {
          Request request = to("POST");
          request.body = std::to_string(thread * 100 + i);
          const Reply reply = send(request);
          right += reply && reply->body == request.body;
        }
      });
  }
  EXPECT_EQ(right, 80);
}

TEST_P(TransportContract, AnAsynchronousCallMayStartTheNext) {
  world_->play([](const Request& request) { return answer(200, request.url); });
  std::promise<std::string> second;
  world_->transport().start(to("GET", "/first"), kLong, [&](Reply) {
    world_->transport().start(to("GET", "/second"), kLong,
                              [&](Reply reply) { second.set_value(reply ? reply->body : "none"); });
  });
  EXPECT_TRUE(second.get_future().get().ends_with("/second"));
}

TEST_P(TransportContract, ClosingCancelsWhatIsUnderWay) {
  world_->play([](const Request&) { return silent_answer(); });
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < 5; ++i)
    world_->transport().start(to("GET"), kLong, [&](Reply reply) {
      cancelled += !reply && reply.error().code == base::ErrorCode::kCancelled;
    });
  world_->close_transport();
  EXPECT_EQ(cancelled, 5);
}

TEST_P(TransportContract, UploadsFromASource) {
  const std::string content = pattern(6'000'001);
  world_->play([](const Request&) { return answer(200); });
  for (const bool known : {true, false}) {
    Request request = to("PUT");
    request.source = source_of(content);
    if (known) request.source_bytes = content.size();
    const Reply reply = send(request);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(world_->requests().back().body.size(), content.size());
    EXPECT_TRUE(world_->requests().back().body == content);
  }
}

TEST_P(TransportContract, UploadsFromASourceWithoutBlocking) {
  world_->play([](const Request&) { return answer(200); });
  Request request = to("POST");
  request.source = source_of(pattern(100'000));
  std::promise<int> status;
  world_->transport().start(request, kLong,
                            [&](Reply reply) { status.set_value(reply ? reply->status : 0); });
  EXPECT_EQ(status.get_future().get(), 200);
  EXPECT_TRUE(world_->requests().back().body == pattern(100'000));
}

TEST_P(TransportContract, AFailingSourceEndsTheRequestWithItsError) {
  world_->play([](const Request&) { return answer(200); });
  Request request = to("PUT");
  request.source = [](char*, std::size_t) -> base::Result<std::size_t> {
    return base::Error{base::ErrorCode::kNotFound, "the file went away"};
  };
  const Reply reply = send(request);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(reply.error().message, "the file went away");
}

TEST_P(TransportContract, StreamsHeadAndBytesInOrder) {
  const std::string content = pattern(5'000'000);
  world_->play([&](const Request&) {
    return Answer{.status = 206,
                  .headers = {{"X-Head", "first"}},
                  .pieces = {content, "end"},
                  .chunked = true};
  });
  std::string got, head;
  const Sink sink{[&](const Response& response) {
                    EXPECT_EQ(response.status, 206);
                    head = response.headers.find("X-Head").value_or("") + got;
                    return true;
                  },
                  [&](std::string_view bytes) {
                    got += bytes;
                    return true;
                  }};
  const Reply reply = world_->transport().stream(to("GET"), sink, kLong, {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(head, "first");
  EXPECT_TRUE(got == content + "end");
  EXPECT_EQ(reply->status, 206);
  EXPECT_EQ(reply->body, "");
}

TEST_P(TransportContract, AStreamShowsItsHeadBeforeAnyBody) {
  world_->play([](const Request&) { return Answer{.end = Answer::End::kSilence}; });
  const Sink sink{[](const Response& head) { return head.status != 200; }, nullptr};
  const Reply reply = world_->transport().stream(to("GET"), sink, kLong, {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
}

TEST_P(TransportContract, ASinkThatHasSeenEnoughEndsTheStreamWell) {
  world_->play([](const Request&) {
    return Answer{.pieces = {"one", "two"}, .chunked = true, .end = Answer::End::kSilence};
  });
  std::string got;
  const Sink sink{nullptr, [&](std::string_view bytes) {
                    got += bytes;
                    return got.size() < 3;
                  }};
  const Reply reply = world_->transport().stream(to("GET"), sink, kLong, {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_TRUE(got.starts_with("one"));
}

TEST_P(TransportContract, AStreamEndsWhenItIsSilentForTooLong) {
  world_->play([](const Request&) { return answer(200); });
  ASSERT_TRUE(send(to("GET")));  // So that connecting takes none of the time.
  world_->play([](const Request&) {
    return Answer{.pieces = {"one"}, .chunked = true, .end = Answer::End::kSilence};
  });
  std::string got;
  const Sink sink{nullptr, [&](std::string_view bytes) {
                    got += bytes;
                    return true;
                  }};
  const Reply reply = world_->transport().stream(to("GET"), sink, base::Milliseconds(200), {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kUnavailable);
  EXPECT_EQ(got, "one");
}

TEST_P(TransportContract, ABrokenStreamIsAFailureAfterItsBytes) {
  world_->play([](const Request&) {
    return Answer{.pieces = {"one"}, .chunked = true, .end = Answer::End::kCut};
  });
  std::string got;
  const Sink sink{nullptr, [&](std::string_view bytes) {
                    got += bytes;
                    return true;
                  }};
  const Reply reply = world_->transport().stream(to("GET"), sink, kLong, {});
  ASSERT_FALSE(reply);
  EXPECT_TRUE(reply.error().sent);
  EXPECT_EQ(got, "one");
}

TEST_P(TransportContract, AStopEndsAStream) {
  world_->play([](const Request&) {
    return Answer{.pieces = {"one"}, .chunked = true, .end = Answer::End::kSilence};
  });
  std::stop_source stop;
  const Sink sink{nullptr, [&](std::string_view) { return stop.request_stop(); }};
  const Reply reply = world_->transport().stream(to("GET"), sink, kLong, stop.get_token());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kCancelled);
}

// A sink works on the caller's thread, so it may ask the same transport something else meanwhile.
TEST_P(TransportContract, ASinkMaySend) {
  world_->play([](const Request& request) {
    if (request.method == "POST") return answer(200, "nested");
    return Answer{.pieces = {"one"}, .chunked = true};
  });
  std::string nested;
  const Sink sink{nullptr, [&](std::string_view) {
                    const Reply reply = send(to("POST"));
                    nested = reply ? reply->body : reply.error().message;
                    return true;
                  }};
  ASSERT_TRUE(world_->transport().stream(to("GET"), sink, kLong, {}));
  EXPECT_EQ(nested, "nested");
}

TEST_P(TransportContract, SaysWhetherAnythingWasSent) {
  struct Row {
    const char* name;
    std::string url;
    Answer answer;
    bool sent;
  };
  const Row rows[] = {
      {"nobody listens", world_->url_of_nobody(), {}, false},
      {"not a URL", "nonsense", {}, false},
      {"lost", world_->url(), lost_answer(), true},
      {"silent", world_->url(), silent_answer(), true},
      {"cut in the body", world_->url(), Answer{.pieces = {"x"}, .end = Answer::End::kCut}, true},
  };
  for (const Row& row : rows) {
    world_->play([&](const Request&) { return row.answer; });
    const Reply reply = send({"POST", row.url}, base::Milliseconds(1'000));
    ASSERT_FALSE(reply) << row.name;
    EXPECT_EQ(reply.error().sent, row.sent) << row.name << ": " << reply.error().message;
  }
}

TEST_P(TransportContract, AFailureNamesTheRequestButNoSecret) {
  world_->play([](const Request&) { return lost_answer(); });
  Request request = to("POST", "/files?signature=c4n4ry");
  request.headers.add("X-API-Key", "c4n4ry");
  request.body = "c4n4ry";
  const Reply reply = send(request);
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("POST "), std::string::npos);
  EXPECT_EQ(reply.error().message.find("c4n4ry"), std::string::npos) << reply.error().message;
}

}  // namespace net
