#include "libs/envd/client.h"

#include <gtest/gtest.h>

#include "libs/base/crypto.h"
#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/envd/connect.h"
#include "libs/net/testing/fake_transport.h"

namespace envd {
namespace {

using base::ErrorCode;
using base::Json;
using base::Milliseconds;
using net::Answer;
using net::answer;
using net::Request;

constexpr Milliseconds kTime{10'000};

std::string event(const std::string& event) {
  return encode_envelope(R"({"event":)" + event + "}");
}
std::string started(int pid) { return event(R"({"start":{"pid":)" + std::to_string(pid) + "}}"); }
std::string said(const std::string& pipe, const std::string& text) {
  return event(R"({"data":{")" + pipe + R"(":")" + base::to_base64(text) + "\"}}");
}
std::string ended(const std::string& how) { return event(R"({"end":)" + how + "}"); }
std::string end_of_stream(const std::string& payload = "{}") {
  std::string bytes = encode_envelope(payload);
  bytes[0] = 2;
  return bytes;
}
Answer stream_of(std::vector<std::string> pieces, Answer::End end = Answer::End::kWhole) {
  return {.headers = {{"Content-Type", "application/connect+json"}},
          .pieces = std::move(pieces),
          .chunked = true,
          .end = end};
}

Listener leave() {
  return [](Started&) -> base::Result<Next> { return Next::kLeave; };
}
Listener listen_on() {
  return [](Started&) -> base::Result<Next> { return Next::kListen; };
}

class EnvdClient : public testing::Test {
 protected:
  Client client(std::string version = "0.6.13") {
    return client_over(transport_, std::move(version));
  }
  Client client_over(net::Transport& transport, std::string version = "0.6.13") {
    return Client(transport, clock_, {"http://edge.test", {{"X-Access-Token", "envd-c4n4ry"}}},
                  {.envd_version = std::move(version),
                   .timeout = Milliseconds(500),
                   .advice = "check the URL"});
  }
  void reply(Answer with) {
    transport_.play([with](const Request&) { return with; });
  }
  Request last() const { return transport_.requests().back(); }
  Json last_json() const { return *base::parse_json(last().body); }
  // The message in the last Start's only envelope.
  Json start_json() const {
    for (const Request& request : transport_.requests())
      if (request.url.ends_with("/Start")) {
        const auto envelopes = EnvelopeDecoder().add(request.body);
        if (envelopes && envelopes->size() == 1) return *base::parse_json((*envelopes)[0].payload);
      }
    return nullptr;
  }

  base::FakeClock clock_;
  net::FakeTransport transport_{[](const Request&) { return answer(404); }};
};

TEST_F(EnvdClient, HealthIsA204) {
  reply(answer(204));
  EXPECT_TRUE(client().health({}));
  EXPECT_EQ(last().url, "http://edge.test/health");
  reply(answer(502, R"({"sandboxId":"i1","message":"not found","code":502})"));
  const auto health = client().health({});
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(health.error().message.find("not running"), std::string::npos);
}

TEST_F(EnvdClient, AWayThatLeadsElsewhereIsNamed) {
  const auto advises = [](const auto& result) {
    return !result && result.error().message.ends_with("; check the URL");
  };
  const Answer sites[] = {answer(404, "nginx"), answer(404, R"({"code":404,"message":"route"})"),
                          answer(400, "missing header"), net::refused_connection()};
  for (const Answer& site : sites) {
    reply(site);
    EXPECT_TRUE(advises(client().health({})));
    EXPECT_TRUE(advises(client().stat("/x", "", {})));
    EXPECT_TRUE(advises(client().run({.argv = {"ls"}}, kTime, {})));
    EXPECT_TRUE(advises(client().start({.argv = {"ls"}}, kTime, leave(), {})));
  }
  // Whoever speaks another protocol behind a connection that stood breaks it off.
  reply(net::lost_answer());
  EXPECT_TRUE(advises(client().health({})));
  EXPECT_FALSE(advises(client().stat("/x", "", {}))) << "the way led to envd before";
  // One that has a page for everything.
  reply(answer(200, "<html>", {{"Content-Type", "text/html"}}));
  EXPECT_TRUE(advises(client().run({.argv = {"ls"}}, kTime, {})));
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(advises(client().health(stopped.get_token())));
}

TEST_F(EnvdClient, StatsAFile) {
  reply(answer(200, R"( {"entry": {"name":"x","type":"FILE_TYPE_FILE","path":"/x","size":"5",
      "mode":420,"permissions":"-rw-r--r--","owner":"user","group":"user",
      "modifiedTime":"2026-11-29T17:46:31Z"}})"));
  const auto entry = client().stat("/x", "root", {});
  ASSERT_TRUE(entry && *entry);
  EXPECT_EQ((*entry)->size, 5u);
  EXPECT_EQ((*entry)->mode, 0644u);
  EXPECT_EQ((*entry)->owner, "user");
  EXPECT_FALSE((*entry)->is_folder || (*entry)->is_symlink);
  EXPECT_EQ(last().url, "http://edge.test/filesystem.Filesystem/Stat");
  EXPECT_EQ(last_json(), (Json{{"path", "/x"}}));
  EXPECT_EQ(last().headers.find("Authorization"), "Basic cm9vdDo=");
  EXPECT_EQ(last().headers.find("X-Access-Token"), "envd-c4n4ry");
  EXPECT_EQ(last().headers.find("Content-Type"), "application/json");
}

TEST_F(EnvdClient, StatsFoldersLinksAndNothing) {
  reply(answer(200, R"({"entry":{"path":"/d","type":"FILE_TYPE_DIRECTORY","mode":493,
      "symlinkTarget":"/e"}})"));
  const auto folder = client().stat("/d", "", {});
  EXPECT_TRUE((*folder)->is_folder);
  EXPECT_TRUE((*folder)->is_symlink);
  EXPECT_EQ(last().headers.find("Authorization"), std::nullopt);
  reply(answer(404, R"({"code":"not_found","message":"no"})"));
  EXPECT_EQ(*client().stat("/x", "", {}), std::nullopt);
  // Only the daemon knows that a file is missing; a proxy's 404 does not say so.
  reply(answer(404, "nginx"));
  EXPECT_EQ(client().stat("/x", "", {}).error().code, ErrorCode::kUnavailable);
  for (const char* body : {"", "[]", "{}", R"({"entry":{}})"}) {
    reply(answer(200, body));
    EXPECT_EQ(client().stat("/x", "", {}).error().code, ErrorCode::kUnavailable) << body;
  }
}

TEST_F(EnvdClient, UploadsAsOneStreamOfBytesToANewDaemon) {
  reply(answer(200, R"([{"name":"x","path":"/x y","type":"file"}])",
               {{"Content-Type", "text/plain"}}));
  ASSERT_TRUE(client().upload("/x y", std::string("a\0b", 3), "root", {}));
  EXPECT_EQ(last().url, "http://edge.test/files?path=%2Fx%20y&username=root");
  EXPECT_EQ(last().headers.find("Content-Type"), "application/octet-stream");
  EXPECT_EQ(last().body, std::string("a\0b", 3));
}

// Reads an upload as it goes, and keeps none of it.
struct Drain final : net::Transport {
  net::Reply send(const net::Request& request, base::Milliseconds, std::stop_token) override {
    in_request = request.body.size();
    announced = request.source_bytes.value_or(0);
    std::string piece(1'000, '\0');
    for (;;) {
      const auto filled = request.source(piece.data(), piece.size());
      if (!filled || *filled == 0) break;
      read += *filled;
    }
    return net::Response{.status = 200, .body = R"([{"name":"x","path":"/x"}])"};
  }
  void start(net::Request, base::Milliseconds, std::function<void(net::Reply)>) override {}
  net::Reply stream(const net::Request&, const net::Sink&, base::Milliseconds,
                    std::stop_token) override {
    return net::Failure{};
  }
  std::size_t in_request = 0, announced = 0, read = 0;
};

TEST_F(EnvdClient, UploadsAFileFromWhereItIs) {
  const std::string content(3'000'000, 'x');
  for (const char* version : {"0.2.0", "0.6.0"}) {
    Drain drain;
    ASSERT_TRUE(client_over(drain, version).upload("/x", content, "root", {}));
    EXPECT_EQ(drain.in_request, 0u) << "a copy for each sandbox";
    EXPECT_EQ(drain.read, drain.announced);
    EXPECT_GE(drain.read, content.size());
  }
}

TEST_F(EnvdClient, UploadsAsMultipartToAnOldOne) {
  reply(answer(200, R"([{"name":"x","path":"/x","type":"file"}])"));
  for (const char* version : {"0.5.6", "0.2.0", ""}) {
    ASSERT_TRUE(client(version).upload("/dir/x\"y", "content\r\n--", "root", {}));
    const auto type = last().headers.find("Content-Type").value_or("");
    ASSERT_TRUE(type.starts_with("multipart/form-data; boundary="));
    const std::string boundary = type.substr(type.find('=') + 1);
    std::string expected = "--";
    expected += boundary;
    expected +=
        "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/dir/x_y\"\r\nContent-Type: "
        "application/octet-stream\r\n\r\ncontent\r\n--\r\n--";
    expected += boundary;
    expected += "--\r\n";
    EXPECT_EQ(last().body, expected);
  }
}

TEST_F(EnvdClient, AnUploadThatWroteNothingIsAnError) {
  for (const Answer& bad : {answer(200, "[]"), answer(200, "ok"), answer(507, R"({"code":507})"),
                            answer(401, R"({"code":401})"), net::lost_answer()}) {
    reply(bad);
    EXPECT_FALSE(client().upload("/x", "y", "", {}));
  }
}

TEST_F(EnvdClient, Downloads) {
  reply(answer(200, std::string("a\0b", 3)));
  EXPECT_EQ(*client().download("/x", "", {}), std::string("a\0b", 3));
  EXPECT_EQ(last().url, "http://edge.test/files?path=%2Fx");
  reply(answer(404, R"({"code":404,"message":"path '/x' does not exist"})"));
  EXPECT_EQ(client().download("/x", "", {}).error().code, ErrorCode::kNotFound);
}

TEST_F(EnvdClient, ADaemonWithoutADefaultUserIsToldOne) {
  reply(answer(200, "x"));
  ASSERT_TRUE(client("0.3.9").download("/x", "", {}));
  EXPECT_TRUE(last().url.ends_with("&username=user"));
  reply(answer(404, R"({"code":"not_found"})"));
  ASSERT_TRUE(client("0.3.9").stat("/x", "", {}));
  EXPECT_EQ(last().headers.find("Authorization"), "Basic dXNlcjo=");
}

// --- Processes.

TEST_F(EnvdClient, RunsACommandToItsEnd) {
  reply(stream_of({started(7), said("stdout", "out "), said("stderr", "err"),
                   event(R"({"keepalive":{}})"), said("stdout", "put"),
                   ended(R"({"exitCode":3,"exited":true,"status":"exit status 3"})"),
                   end_of_stream()}));
  const auto finished = client().run(
      {.argv = {"ls", "-l", "a b"}, .env = {{"A", "b"}}, .cwd = "/tmp", .user = "root"}, kTime, {});
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->exit_code, 3);
  EXPECT_EQ(finished->output, "out put");
  EXPECT_EQ(finished->error_output, "err");
  EXPECT_FALSE(finished->cut);

  EXPECT_EQ(last().url, "http://edge.test/process.Process/Start");
  EXPECT_EQ(last().headers.find("Content-Type"), "application/connect+json");
  EXPECT_EQ(last().headers.find("Connect-Timeout-Ms"), "10000");
  EXPECT_EQ(last().headers.find("Keepalive-Ping-Interval"), "30");
  EXPECT_EQ(last().headers.find("Authorization"), "Basic cm9vdDo=");
  EXPECT_EQ(start_json(), *base::parse_json(R"({"process":{"cmd":"ls","args":["-l","a b"],
      "envs":{"A":"b"},"cwd":"/tmp"},"stdin":false})"));
}

TEST_F(EnvdClient, ARunsOutputIsBounded) {
  const std::string much(700'000, 'x');
  reply(stream_of({started(7), said("stdout", much), said("stdout", much),
                   ended(R"({"exited":true})"), end_of_stream()}));
  const auto finished = client().run({.argv = {"yes"}}, kTime, {});
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->output.size(), kOutputBytesMax);
  EXPECT_TRUE(finished->cut);
  EXPECT_EQ(finished->exit_code, 0);
}

TEST_F(EnvdClient, ARunsEndCountsEvenIfTheStreamThenBreaks) {
  reply(stream_of({started(7), ended(R"({"exited":true})")}, Answer::End::kCut));
  EXPECT_TRUE(client().run({.argv = {"true"}}, kTime, {}));
}

TEST_F(EnvdClient, ARunFailsInEveryWay) {
  struct Row {
    const char* name;
    Answer reply;
    ErrorCode code;
    const char* words;
  };
  const Row rows[] = {
      {"deadline",
       stream_of({started(7), end_of_stream(R"({"error":{"code":"deadline_exceeded"}})")}),
       ErrorCode::kUnavailable, "deadline_exceeded"},
      {"bad cwd",
       stream_of({end_of_stream(R"({"error":{"code":"invalid_argument","message":"cwd"}})")}),
       ErrorCode::kInvalid, "cwd"},
      {"no end envelope", stream_of({started(7)}), ErrorCode::kUnavailable, "broke off"},
      {"no end event", stream_of({started(7), end_of_stream()}), ErrorCode::kUnavailable, "ended"},
      {"cut", stream_of({started(7)}, Answer::End::kCut), ErrorCode::kUnavailable, "closed"},
      {"not an envelope", stream_of({"\x01\x02\x03\x04\x05"}), ErrorCode::kUnavailable,
       "compressed"},
      {"not JSON", stream_of({encode_envelope("nonsense")}), ErrorCode::kUnavailable, "JSON"},
      {"token", answer(401, R"({"code":401,"message":"unauthorized"})"), ErrorCode::kDenied, "401"},
      {"not running", answer(502, R"({"sandboxId":"i1","code":502})"), ErrorCode::kUnavailable,
       "not running"},
      {"endless refusal", answer(500, std::string(1 << 20, 'x')), ErrorCode::kUnavailable, "500"},
      {"lost", net::lost_answer(), ErrorCode::kUnavailable, "run ls"},
  };
  for (const Row& row : rows) {
    reply(row.reply);
    const auto finished = client().run({.argv = {"ls"}}, kTime, {});
    ASSERT_FALSE(finished) << row.name;
    EXPECT_EQ(finished.error().code, row.code) << row.name;
    EXPECT_NE(finished.error().message.find(row.words), std::string::npos)
        << row.name << ": " << finished.error().message;
  }
  EXPECT_EQ(client().run({}, kTime, {}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(client().run({.argv = {"ls"}}, Milliseconds(0), {}).error().code, ErrorCode::kInvalid);
}

// A daemon whose streams never end by themselves: a piece every 100 ms.
class Dribbling final : public net::Transport {
 public:
  Dribbling(base::FakeClock& clock, int status, std::string piece)
      : clock_(clock), status_(status), piece_(std::move(piece)) {}
  net::Reply send(const Request&, Milliseconds, std::stop_token) override { return answered(); }
  void start(Request, Milliseconds, std::function<void(net::Reply)> done) override {
    done(answered());
  }
  net::Reply stream(const Request&, const net::Sink& sink, Milliseconds, std::stop_token) override {
    if (!sink.head(answered())) return answered();
    for (pieces_ = 0; pieces_ < kPiecesMax; ++pieces_) {
      clock_.advance(Milliseconds(100));
      if (!sink.bytes(piece_)) break;
    }
    return answered();
  }
  Milliseconds lasted() const { return Milliseconds(100) * pieces_; }

 private:
  static constexpr int kPiecesMax = 10'000;
  net::Response answered() const { return {.status = status_}; }
  base::FakeClock& clock_;
  const int status_;
  const std::string piece_;
  int pieces_ = 0;
};

TEST_F(EnvdClient, NoStreamIsDrawnOutBeyondItsTime) {
  struct Row {
    const char* name;
    int status;
    std::string piece;
  };
  const Row rows[] = {{"pings", 200, event(R"({"keepalive":{}})")},
                      {"crumbs of a message", 200, std::string(1, '\0')},
                      {"crumbs of a refusal", 500, "x"}};
  for (const Row& row : rows) {
    Dribbling daemon(clock_, row.status, row.piece);
    EXPECT_EQ(client_over(daemon).run({.argv = {"ls"}}, kTime, {}).error().code,
              ErrorCode::kUnavailable)
        << row.name;
    EXPECT_LE(daemon.lasted(), kTime + Milliseconds(16'000)) << row.name;
    EXPECT_EQ(client_over(daemon)
                  .start({.argv = {"ls"}}, Milliseconds(500), listen_on(), {})
                  .error()
                  .code,
              ErrorCode::kUnavailable)
        << row.name;
    EXPECT_LE(daemon.lasted(), Milliseconds(1'000)) << row.name;
  }
}

// A daemon with one process, and what it was told of it.
struct Fed {
  std::vector<std::string> says = {};  // After its start.
  Answer::End end = Answer::End::kSilence;
  bool refuses_input = false;
  std::string input = {};
  bool killed = false;
  std::size_t pieces = 0;
  Answer operator()(const Request& request) {
    if (request.url.ends_with("/Start")) {
      std::vector<std::string> stream = {started(42)};
      stream.insert(stream.end(), says.begin(), says.end());
      return stream_of(stream, end);
    }
    const Json message = *base::parse_json(request.body);
    EXPECT_EQ(message["process"], (Json{{"pid", 42}}));
    if (request.url.ends_with("/SendInput")) {
      if (refuses_input) return answer(500, R"({"code":"internal","message":"stdin closed"})");
      input += *base::from_base64(message["input"]["stdin"].get<std::string>());
      ++pieces;
    }
    killed = killed || request.url.ends_with("/SendSignal");
    return answer(200, "{}");
  }
};

TEST_F(EnvdClient, StartsFeedsAndLeavesAProcess) {
  Fed fed;
  transport_.play(std::ref(fed));
  const std::string input(100'000, 'k');
  const auto left = client().start({.argv = {"/opt/x"}}, kTime,
                                   [&](Started& process) -> base::Result<Next> {
                                     EXPECT_EQ(process.pid(), 42u);
                                     CHECK_OK(process.write(input));
                                     return Next::kLeave;
                                   },
                                   {});
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_FALSE(*left) << "it runs on";
  EXPECT_TRUE(fed.input == input);
  EXPECT_EQ(fed.pieces, 4u);
  EXPECT_FALSE(fed.killed);
  EXPECT_EQ(start_json()["stdin"], true);
  // A limit would be the process's lifetime.
  EXPECT_EQ(transport_.requests().front().headers.find("Connect-Timeout-Ms"), std::nullopt);
}

TEST_F(EnvdClient, ListensUntilItHasHeardEnough) {
  Fed fed{.says = {said("stdout", "wait"), said("stderr", "no"), event(R"({"keepalive":{}})"),
                   said("stdout", "ing\n"), said("stdout", "more")}};
  transport_.play(std::ref(fed));
  std::vector<std::string> heard;
  const auto left =
      client().start({.argv = {"x"}}, kTime,
                     [&](Started& process) -> base::Result<Next> {
                       heard.push_back(process.output());
                       return process.output() == "waiting\n" ? Next::kLeave : Next::kListen;
                     },
                     {});
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(heard, (std::vector<std::string>{"", "wait", "waiting\n"}));
}

TEST_F(EnvdClient, TellsHowAProcessEndedThatItListenedTo) {
  Fed fed{.says = {said("stderr", "not found"), ended(R"({"exitCode":127,"exited":true})"),
                   end_of_stream()},
          .end = Answer::End::kWhole};
  transport_.play(std::ref(fed));
  const auto finished = client().start({.argv = {"x"}}, kTime, listen_on(), {});
  ASSERT_TRUE(finished && *finished);
  EXPECT_EQ((*finished)->exit_code, 127);
  EXPECT_EQ((*finished)->error_output, "not found");
  EXPECT_FALSE(fed.killed);
}

TEST_F(EnvdClient, AProcessWhoseListenerFailsIsEnded) {
  Fed fed{.refuses_input = true};
  transport_.play(std::ref(fed));
  const auto started = client().start({.argv = {"/opt/x"}}, kTime,
                                      [](Started& process) -> base::Result<Next> {
                                        CHECK_OK(process.write("key"));
                                        return Next::kLeave;
                                      },
                                      {});
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("stdin closed"), std::string::npos);
  EXPECT_TRUE(fed.killed);
}

TEST_F(EnvdClient, WritesNoMoreThanItsBound) {
  Fed fed;
  transport_.play(std::ref(fed));
  const auto started =
      client().start({.argv = {"/opt/x"}}, kTime,
                     [](Started& process) -> base::Result<Next> {
                       CHECK_OK(process.write(std::string(kInputBytesMax + 1, 'k')));
                       return Next::kLeave;
                     },
                     {});
  EXPECT_EQ(started.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(fed.pieces, 0u);
}

TEST_F(EnvdClient, SilenceIsAFailureAndEndsNothing) {
  Fed fed{.says = {said("stdout", "waiting\n")}};
  transport_.play(std::ref(fed));
  const auto silent = client().start({.argv = {"x"}}, Milliseconds(50), listen_on(), {});
  EXPECT_EQ(silent.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(fed.killed);
}

TEST_F(EnvdClient, AStreamThatLosesAProcessIsNoSuccess) {
  for (const auto& [says, end] : {std::pair(std::vector<std::string>{}, Answer::End::kWhole),
                                  {{end_of_stream()}, Answer::End::kWhole},
                                  {{said("stdout", "x")}, Answer::End::kCut}}) {
    transport_.play(Fed{.says = says, .end = end});
    EXPECT_EQ(client().start({.argv = {"x"}}, kTime, listen_on(), {}).error().code,
              ErrorCode::kUnavailable);
  }
}

TEST_F(EnvdClient, AStartWithoutAPidIsAnError) {
  for (const Answer& bad :
       {stream_of({end_of_stream()}), stream_of({}), stream_of({event(R"({"start":{}})")}),
        stream_of({end_of_stream(R"({"error":{"code":"unavailable","message":"frozen"}})")}),
        stream_of({}, Answer::End::kSilence), net::lost_answer()}) {
    reply(bad);
    const auto pid = client().start({.argv = {"/opt/x"}}, Milliseconds(500), leave(), {});
    ASSERT_FALSE(pid);
    EXPECT_EQ(pid.error().code, ErrorCode::kUnavailable) << pid.error().message;
  }
}

TEST_F(EnvdClient, NoErrorTellsWhatWasWrittenToAProcess) {
  for (const Answer& bad : {net::lost_answer(), answer(500, "x")}) {
    transport_.play([&](const Request& request) {
      return request.url.ends_with("/Start") ? Fed{}(request) : bad;
    });
    const auto started = client().start({.argv = {"x"}}, kTime,
                                        [](Started& process) -> base::Result<Next> {
                                          CHECK_OK(process.write("c4n4ry"));
                                          return Next::kLeave;
                                        },
                                        {});
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().message.find("c4n4ry"), std::string::npos);
  }
}

TEST_F(EnvdClient, NoErrorTellsATokenOrTheInput) {
  const auto check = [](const auto& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message.find("c4n4ry"), std::string::npos) << result.error().message;
  };
  for (const Answer& bad : {net::lost_answer(), net::refused_connection(), answer(500, "x"),
                            answer(401, R"({"code":401,"message":"no"})")}) {
    reply(bad);
    check(client().health({}));
    check(client().stat("/x", "", {}));
    check(client().upload("/x", "c4n4ry", "", {}));
    check(client().download("/x", "", {}));
    check(client().run({.argv = {"x", "c4n4ry"}, .env = {{"K", "c4n4ry"}}}, kTime, {}));
    check(client().start({.argv = {"x", "c4n4ry"}}, kTime, leave(), {}));
  }
}

}  // namespace
}  // namespace envd
