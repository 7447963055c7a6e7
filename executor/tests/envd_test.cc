#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "executor/envd/signature.h"
#include "executor/files/gzip.h"
#include "executor/testing/http.h"
#include "executor/testing/program.h"
#include "executor/testing/scratch.h"
#include "libs/base/crypto.h"
#include "libs/base/kernel_files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/cgroup.h"
#include "libs/base/testing/eventually.h"

namespace executor {
namespace {

using base::Json;

// The daemon with its users' homes in a scratch folder, so that it works for whoever runs tests.
class Envd : public testing::Test {
 protected:
  Envd() {
    scratch_.write("passwd", "root:x:0:0::" + scratch_.path().string() + ":/bin/sh\n" + "me:x:" +
                                 std::to_string(::geteuid()) + ":" + std::to_string(::getegid()) +
                                 "::" + scratch_.path().string() + ":/bin/sh\n");
    launch({});
  }

  void launch(const std::vector<std::string>& more, const std::vector<std::string>& wrapper = {}) {
    std::vector<std::string> arguments = {
        "--envd", "--port", "0", "--listen", "127.0.0.1", "--etc", scratch_.path().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    program_.reset();
    program_.emplace(arguments, "", std::vector<std::string>{"HOME=" + scratch_.path().string()},
                     wrapper);
    port_ = program_->wait_until_serving().port;
  }

  Events start(const std::string& script, Json more = Json::object(), Fields fields = {}) {
    more["process"]["cmd"] = "/bin/sh";
    more["process"]["args"] = {"-c", script};
    return Events(port_, "process.Process/Start", more, fields);
  }
  Transcript run(const std::string& script, Json more = Json::object(), Fields fields = {}) {
    Events events = start(script, std::move(more), std::move(fields));
    return read_all(events);
  }
  Response upload(const std::string& path, std::string_view content, Fields fields = {}) {
    fields.emplace_back("Content-Type", "application/octet-stream");
    return request(port_, "POST", "/files?path=" + base::percent_encode(path), fields, content);
  }
  Response download(const std::string& path, const Fields& fields = {}) {
    return request(port_, "GET", "/files?path=" + base::percent_encode(path), fields);
  }
  std::string home(std::string_view name) const { return scratch_ / name; }

  Scratch scratch_;
  std::optional<Program> program_;
  int port_ = 0;
};

pid_t pid_of(std::int64_t number) { return static_cast<pid_t>(number); }

std::string input(std::string_view text) { return base::to_base64(text); }

TEST_F(Envd, RunsACommandToItsExitCode) {
  const Transcript seen = run("echo out; echo err >&2; exit 3", {{"stdin", false}});
  EXPECT_GT(seen.pid, 0);
  EXPECT_EQ(seen.out, "out\n");
  EXPECT_EQ(seen.errors, "err\n");
  EXPECT_EQ(seen.end, (Json{{"exitCode", 3},
                            {"exited", true},
                            {"status", "exit status 3"},
                            {"error", "exit status 3"}}));
  EXPECT_EQ(seen.closing, Json::object());
  // Zero values are left out.
  EXPECT_FALSE(run("true").end.contains("exitCode"));
}

TEST_F(Envd, AMissingProgramIsAnExitCodeAndABadFolderAnError) {
  Events missing(port_, "process.Process/Start", {{"process", {{"cmd", "no-such-program"}}}});
  const Transcript seen = read_all(missing);
  EXPECT_EQ(seen.end.value("exitCode", 0), 127);
  EXPECT_EQ(seen.errors, "no-such-program: not found\n");
  const Transcript bad = run("true", {{"process", {{"cwd", "/no/such/folder"}}}});
  EXPECT_EQ(bad.closing["error"]["code"], "invalid_argument");
}

TEST_F(Envd, LayersTheEnvironment) {
  EXPECT_EQ(request(port_, "POST", "/init", {}, R"({"envVars":{"A":"init","B":"init"}})").status,
            204);
  const Transcript seen = run("echo $A $B $HOME $USER", {{"process", {{"envs", {{"B", "own"}}}}}});
  EXPECT_TRUE(seen.out.starts_with("init own " + scratch_.path().string() + " ")) << seen.out;
  EXPECT_EQ(request(port_, "GET", "/envs").json(), (Json{{"A", "init"}, {"B", "init"}}));
}

TEST_F(Envd, CarriesInputUntilItIsClosed) {
  Events events = start("cat");
  const auto begun = events.next();
  ASSERT_TRUE(begun);
  const Json process = {{"pid", begun->at("event").at("start").at("pid")}};
  const auto send = [&] {
    return call(port_, "process.Process/SendInput",
                {{"process", process}, {"input", {{"stdin", input("hello\n")}}}});
  };
  EXPECT_EQ(send().status, 200);
  EXPECT_EQ(call(port_, "process.Process/CloseStdin", {{"process", process}}).status, 200);
  EXPECT_EQ(read_all(events).out, "hello\n");
  EXPECT_EQ(send().json().value("code", ""), "not_found");
}

TEST_F(Envd, GivesATerminalThatCanBeResized) {
  Events events = start("stty -echo; stty size; read line; stty size; echo got $line",
                        {{"pty", {{"size", {{"cols", 100}, {"rows", 30}}}}}});
  const auto begun = events.next();
  ASSERT_TRUE(begun);
  const Json process = {{"pid", begun->at("event").at("start").at("pid")}};
  const auto first = events.next();
  ASSERT_TRUE(first);
  const Json& data = first->at("event").at("data");
  EXPECT_EQ(*base::from_base64(data.value("pty", "")), "30 100\r\n");
  EXPECT_EQ(call(port_, "process.Process/Update",
                 {{"process", process}, {"pty", {{"size", {{"cols", 90}, {"rows", 20}}}}}})
                .status,
            200);
  EXPECT_EQ(call(port_, "process.Process/SendInput",
                 {{"process", process}, {"input", {{"pty", input("x\n")}}}})
                .status,
            200);
  EXPECT_EQ(read_all(events).terminal, "20 90\r\ngot x\r\n");
}

TEST_F(Envd, ASignalReachesTheWholeTree) {
  Events events = start("setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 100' & wait");
  const auto begun = events.next();
  const auto output = events.next();
  ASSERT_TRUE(begun && output);
  const Json process = {{"pid", begun->at("event").at("start").at("pid")}};
  const auto text = base::from_base64(output->at("event").at("data").value("stdout", ""));
  const auto grandchild = base::parse_integer(base::trim(*text));
  ASSERT_TRUE(grandchild);
  EXPECT_TRUE(base::runs(pid_of(*grandchild)));
  EXPECT_EQ(call(port_, "process.Process/SendSignal",
                 {{"process", process}, {"signal", "SIGNAL_SIGKILL"}})
                .status,
            200);
  EXPECT_EQ(read_all(events).end.value("status", ""), "signal: killed");
  EXPECT_TRUE(base::eventually([&] { return !base::runs(pid_of(*grandchild)); }));
}

TEST_F(Envd, WithACgroupEvenAnOrphanInASessionOfItsOwnIsReached) {
  const base::TemporaryCgroup cgroup;
  if (cgroup.path().empty()) GTEST_SKIP() << "no cgroup2 folder can be made here";
  launch({"--cgroup", cgroup.path().string()});
  // The middle one ends at once, so nothing but the group tells whose the last one is.
  Events events = start("(setsid sh -c 'echo $$; exec sleep 100' &) ; exec sleep 100");
  const auto begun = events.next();
  const auto output = events.next();
  ASSERT_TRUE(begun && output);
  const auto text = base::from_base64(output->at("event").at("data").value("stdout", ""));
  const auto orphan = base::parse_integer(base::trim(*text));
  ASSERT_TRUE(orphan);
  const Json process = {{"pid", begun->at("event").at("start").at("pid")}};
  EXPECT_EQ(call(port_, "process.Process/SendSignal",
                 {{"process", process}, {"signal", "SIGNAL_SIGKILL"}})
                .status,
            200);
  EXPECT_EQ(read_all(events).end.value("status", ""), "signal: killed");
  EXPECT_TRUE(base::eventually([&] { return !base::runs(pid_of(*orphan)); }));
  run("true");  // Groups without members are removed as commands end.
  EXPECT_TRUE(base::eventually([&] { return cgroup.empty(); }));
}

TEST_F(Envd, AsFirstProcessItServesAgainAfterItsServerDiedAndReapsOrphans) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may make a PID namespace here";
  launch({}, {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"});
  ASSERT_EQ(request(port_, "POST", "/init", {}, R"({"accessToken":"t1"})").status, 204);
  const Fields token = {{"X-Access-Token", "t1"}};
  EXPECT_EQ(run("exec 2>/dev/null; kill -9 $PPID", Json::object(), token).end, Json());
  port_ = program_->wait_until_serving(2).port;
  EXPECT_EQ(request(port_, "GET", "/envs").status, 401) << "the token outlives the server";
  const Transcript orphans =
      run("(true &); i=0; while grep -qs 'State:.Z' /proc/[0-9]*/status && [ $i -lt 500 ]; "
          "do i=$((i+1)); sleep 0.01; done; grep -ls 'State:.Z' /proc/[0-9]*/status; echo done",
          Json::object(), token);
  EXPECT_EQ(orphans.out, "done\n");
}

TEST_F(Envd, ATimeoutIsTheLifeOfTheWholeTree) {
  Events events = start("sh -c 'echo $$; exec sleep 100' & wait", Json::object(),
                        {{"Connect-Timeout-Ms", "1000"}});
  const Transcript seen = read_all(events);
  EXPECT_EQ(seen.closing["error"]["code"], "deadline_exceeded");
  EXPECT_TRUE(seen.end.is_null());
  const auto child = base::parse_integer(base::trim(seen.out));
  ASSERT_TRUE(child) << seen.out;
  EXPECT_TRUE(base::eventually(
      [&] { return !base::runs(pid_of(*child)) && !base::runs(pid_of(seen.pid)); }));
}

TEST_F(Envd, IsReconnectedByPidAndByTag) {
  // Several with tags: each is found by its own.
  std::vector<Events> others;
  for (const char* tag : {"one", "two"}) others.push_back(start("sleep 100", {{"tag", tag}}));
  for (Events& other : others) ASSERT_TRUE(other.next());
  std::optional<Events> first(start("read line; echo got $line", {{"tag", "mine"}}));
  const auto begun = first->next();
  ASSERT_TRUE(begun);
  const Json pid = begun->at("event").at("start").at("pid");
  first.reset();  // A listener that leaves ends nothing.
  Events by_tag(port_, "process.Process/Connect", {{"process", {{"tag", "mine"}}}});
  Events by_pid(port_, "process.Process/Connect", {{"process", {{"pid", pid}}}});
  EXPECT_EQ(by_tag.next()->at("event").at("start").at("pid"), pid);
  EXPECT_EQ(by_pid.next()->at("event").at("start").at("pid"), pid);
  const auto listed = call(port_, "process.Process/List", Json::object()).json();
  EXPECT_EQ(listed.at("processes").size(), 3u);
  call(port_, "process.Process/SendInput",
       {{"process", {{"tag", "mine"}}}, {"input", {{"stdin", input("x\n")}}}});
  EXPECT_EQ(read_all(by_tag).out, "got x\n");
  EXPECT_EQ(read_all(by_pid).out, "got x\n");
  // The end is kept for a while.
  Events late(port_, "process.Process/Connect", {{"process", {{"pid", pid}}}});
  EXPECT_TRUE(read_all(late).end.value("exited", false));
  Events never(port_, "process.Process/Connect", {{"process", {{"tag", "none"}}}});
  EXPECT_EQ(read_all(never).closing["error"]["code"], "not_found");
  for (const char* tag : {"one", "two"})
    call(port_, "process.Process/SendSignal",
         {{"process", {{"tag", tag}}}, {"signal", "SIGNAL_SIGKILL"}});
}

TEST_F(Envd, AStalledReaderDoesNotStallOthers) {
  Events stalled = start("yes");  // Nobody reads this one.
  ASSERT_TRUE(stalled.next());
  EXPECT_EQ(run("head -c 1000000 /dev/zero").out.size(), 1'000'000u);
  EXPECT_EQ(request(port_, "GET", "/health").status, 204);
  call(port_, "process.Process/SendSignal",
       {{"process",
         {{"pid",
           call(port_, "process.Process/List", Json::object()).json()["processes"][0]["pid"]}}},
        {"signal", "SIGNAL_SIGKILL"}});
}

TEST_F(Envd, AnUploadIsSeenWholeOrNotAtAll) {
  ASSERT_EQ(upload(home("file"), "old").status, 200);
  Connection half(port_);
  half.send("POST /files?path=" + home("file") +
            " HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
            "Content-Length: 1000000\r\n\r\n" +
            std::string(500'000, 'x'));
  EXPECT_EQ(download(home("file")).body, "old");
  // The daemon dies in the middle: the target is as it was, and nothing is left beside it.
  ::kill(program_->pid(), SIGKILL);
  program_->wait_for_exit();
  EXPECT_EQ(scratch_.read("file"), "old");
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".sandfleet")) << entry.path();
}

TEST_F(Envd, TakesSeveralFilesInOneForm) {
  const std::string body =
      "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + home("a/one") +
      "\"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"two\"\r\n"
      "\r\n22\r\n--b\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n--b--\r\n";
  const auto sent =
      request(port_, "POST", "/files", {{"Content-Type", "multipart/form-data; boundary=b"}}, body);
  EXPECT_EQ(sent.status, 200);
  EXPECT_TRUE(sent.fields.at("content-type").starts_with("text/plain"));
  EXPECT_EQ(sent.json(), (Json{{{"name", "one"}, {"path", home("a/one")}, {"type", "file"}},
                               {{"name", "two"}, {"path", home("two")}, {"type", "file"}}}));
  EXPECT_EQ(scratch_.read("a/one"), "1");
  EXPECT_EQ(scratch_.read("two"), "22");
}

TEST_F(Envd, FilesComeAndGoCompressed) {
  const std::string text(300'000, 'z');
  Gzip gzip;
  std::string packed = gzip.add(text);
  packed += gzip.finish();
  EXPECT_EQ(upload(home("z"), packed, {{"Content-Encoding", "gzip"}}).status, 200);
  EXPECT_TRUE(scratch_.read("z") == text);
  const auto answer = download(home("z"), {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(answer.fields.at("content-encoding"), "gzip");
  EXPECT_LT(answer.body.size(), 10'000u);
  EXPECT_TRUE(download(home("z")).body == text);
}

TEST_F(Envd, AnswersFileRequestsByTheBook) {
  ASSERT_EQ(upload(home("f.txt"), "0123456789").status, 200);
  const auto part = download(home("f.txt"), {{"Range", "bytes=2-4"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.fields.at("content-range"), "bytes 2-4/10");
  const auto whole = download(home("f.txt"));
  EXPECT_EQ(whole.fields.at("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(download(home("f.txt"), {{"If-None-Match", whole.fields.at("etag")}}).status, 304);
  const struct {
    const char* name;
    Response got;
    int status;
  } cases[] = {
      {"absent", download(home("none")), 404},
      {"folder", download(home("")), 400},
      {"other_home", download("~x/y"), 400},
      {"no_user", request(port_, "GET", "/files?path=/x&username=nobody-here"), 401},
      {"encoding", download(home("f.txt"), {{"Accept-Encoding", "br, identity;q=0"}}), 406},
      {"other_method", request(port_, "PUT", "/files?path=/x"), 405},
      {"upload_to_folder", upload(home(""), "x"), 400},
      {"upload_below_file", upload(home("f.txt/x"), "x"), 500},
      {"upload_without_type", request(port_, "POST", "/files?path=/x", {}, "x"), 400},
      {"no_path", request(port_, "GET", "/nothing"), 404},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(test.got.status, test.status) << test.name;
    EXPECT_EQ(test.got.json().value("code", 0), test.status) << test.name;
  }
}

TEST_F(Envd, ComposesFiles) {
  upload(home("1"), "one ");
  upload(home("2"), "two");
  const Json ask = {{"source_paths", {home("1"), home("2")}}, {"destination", home("both")}};
  EXPECT_EQ(request(port_, "POST", "/files/compose", {}, ask.dump()).status, 200);
  EXPECT_EQ(scratch_.read("both"), "one two");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "1"));
}

TEST_F(Envd, OnceATokenIsSetItIsAskedFor) {
  const auto init = [&](const std::string& body) {
    return request(port_, "POST", "/init", {}, body).status;
  };
  ASSERT_EQ(upload(home("f"), "x").status, 200);
  EXPECT_EQ(init(R"({"accessToken":"t1"})"), 204);
  EXPECT_EQ(init(R"({"accessToken":"t2"})"), 401);
  EXPECT_EQ(init("{}"), 401);
  EXPECT_EQ(init(R"({"accessToken":"t1"})"), 204);
  EXPECT_EQ(request(port_, "GET", "/health").status, 204);
  EXPECT_EQ(request(port_, "GET", "/envs").status, 401);
  EXPECT_EQ(request(port_, "GET", "/envs", {{"X-Access-Token", "t1"}}).status, 200);
  const auto refused = call(port_, "process.Process/List", Json::object());
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.json().at("code"), 401) << "a number, on Connect's paths too";

  const auto signed_read = [&](std::optional<std::string> expiration, std::string_view token) {
    const SignedUrl url{home("f"), "read", "", expiration};
    std::string target =
        "/files?path=" + home("f") + "&signature=" + base::percent_encode(sign_url(url, token));
    if (expiration) target += "&signature_expiration=" + *expiration;
    return target;
  };
  EXPECT_EQ(request(port_, "GET", signed_read({}, "t1")).body, "x");
  EXPECT_EQ(request(port_, "GET", signed_read("9999999999", "t1")).status, 200);
  EXPECT_EQ(request(port_, "GET", signed_read("1000000000", "t1")).status, 401);
  EXPECT_EQ(request(port_, "GET", signed_read({}, "t2")).status, 401);
  EXPECT_EQ(request(port_, "GET", signed_read({}, "t1"), {{"X-Access-Token", "t2"}}).status, 401);
  EXPECT_EQ(download(home("f")).status, 401);
  EXPECT_EQ(download(home("f"), {{"X-Access-Token", "t1"}}).status, 200);
}

TEST_F(Envd, AnswersConnectsContentTypesAndErrors) {
  const auto as = [&](const char* method, const char* type) {
    return request(port_, "POST", method, {{"Content-Type", type}}, "{}").status;
  };
  EXPECT_EQ(as("/filesystem.Filesystem/Stat", "application/proto"), 415);
  EXPECT_EQ(as("/process.Process/Start", "application/json"), 415);
  EXPECT_EQ(as("/process.Process/Start", "application/connect+proto"), 415);
  const auto code = [&](const char* method, const Json& message, const Fields& fields = {}) {
    const auto answer = call(port_, method, message, fields);
    return std::to_string(answer.status) + " " + answer.json().value("code", "");
  };
  const std::string stat = "filesystem.Filesystem/Stat";
  EXPECT_EQ(code(stat.c_str(), {{"path", home("none")}}), "404 not_found");
  EXPECT_EQ(code(stat.c_str(), {{"path", 1}}), "400 invalid_argument");
  EXPECT_EQ(code(stat.c_str(), {{"path", "/"}}, {{"Connect-Timeout-Ms", "0"}}),
            "504 deadline_exceeded");
  EXPECT_EQ(code(stat.c_str(), {{"path", "/"}},
                 {{"Authorization", "Basic " + base::to_base64("stranger:")}}),
            "401 unauthenticated");
  EXPECT_EQ(code("filesystem.Filesystem/MakeDir", {{"path", home("")}}), "409 already_exists");
  EXPECT_EQ(code("filesystem.Filesystem/MakeDir", {{"path", home("passwd")}}),
            "400 invalid_argument");
  EXPECT_EQ(code("filesystem.Filesystem/ListDir", {{"path", home("passwd")}}),
            "400 invalid_argument");
  EXPECT_EQ(code("filesystem.Filesystem/RemoveWatcher", {{"watcher_id", "none"}}), "404 not_found");
}

// A client that hears an answer while it still sends may cut its message short.
TEST_F(Envd, AnswersAStreamOnlyWhenItsWholeRequestIsHere) {
  const std::string message = R"({"process":{"cmd":"/bin/true"}})";
  const std::string envelope =
      std::string("\0\0\0\0", 4) + static_cast<char>(message.size()) + message;
  char size[8];
  std::snprintf(size, sizeof size, "%zx\r\n", envelope.size());
  Connection connection(port_);
  for (const std::string& part :
       {std::string("POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nContent-Type: "
                    "application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n"),
        size + envelope.substr(0, 7), envelope.substr(7) + "\r\n"}) {
    connection.send(part);
    EXPECT_FALSE(connection.answers_within(base::Milliseconds(100))) << part;
  }
  connection.send("0\r\n\r\n");
  EXPECT_EQ(connection.read_head().status, 200);
  EXPECT_THAT(connection.read_some(), testing::HasSubstr("start"));
}

TEST_F(Envd, WatchesAFolderByStreamAndByPoll) {
  Events events(port_, "filesystem.Filesystem/WatchDir",
                {{"path", home("")}, {"includeEntry", true}});
  ASSERT_TRUE(events.next()->contains("start"));
  const auto watcher =
      call(port_, "filesystem.Filesystem/CreateWatcher", {{"path", home("")}}).json();
  ASSERT_EQ(upload(home("new"), "x").status, 200);
  const auto event = events.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->at("filesystem").at("name"), "new");
  EXPECT_EQ(event->at("filesystem").at("type"), "EVENT_TYPE_CREATE");
  EXPECT_EQ(event->at("filesystem").at("entry").at("path"), home("new"));
  Json polled = Json::array();
  EXPECT_TRUE(base::eventually([&] {
    const auto answer = call(port_, "filesystem.Filesystem/GetWatcherEvents", watcher).json();
    for (const Json& one : answer.value("events", Json::array())) polled.push_back(one["type"]);
    return polled.size() >= 3;
  }));
  EXPECT_EQ(polled, (Json{"EVENT_TYPE_CREATE", "EVENT_TYPE_CHMOD", "EVENT_TYPE_WRITE"}));
  EXPECT_EQ(call(port_, "filesystem.Filesystem/RemoveWatcher", watcher).status, 200);
}

}  // namespace
}  // namespace executor
