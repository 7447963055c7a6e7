#include "libs/wire/frames/operations.h"

#include <gtest/gtest.h>

#include <set>

namespace wire {
namespace {

template <typename Message>
void expect_same(const Message& message, std::string_view json) {
  EXPECT_EQ(base::to_text(to_json(message)), json);
  const auto read = from_json<Message>(to_json(message));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(*read == message) << json;
}

TEST(Operations, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  std::size_t count = 0;
  for_each_operation([&]<typename Args>() {
    names.insert(Args::kOp);
    ++count;
  });
  EXPECT_EQ(names.size(), count);
}

TEST(Operations, SayWhichOnlyWaitForOthers) {
  const auto waits = [](std::string_view op, base::Json args = base::Json::object()) {
    return only_waits(Request{.op = std::string(op), .args = std::move(args)});
  };
  EXPECT_TRUE(waits(WatchArgs::kOp));
  EXPECT_TRUE(waits(WaitArgs::kOp));
  EXPECT_TRUE(waits(WaitArgs::kOp, {{"timeoutMs", 1}}));
  EXPECT_FALSE(waits(WaitArgs::kOp, {{"timeoutMs", 0}})) << "that is a look";
  EXPECT_TRUE(waits(ReadOutputArgs::kOp, {{"waitMs", 1}}));
  EXPECT_FALSE(waits(ReadOutputArgs::kOp, {{"waitMs", 0}}));
  EXPECT_FALSE(waits(ReadOutputArgs::kOp)) << "it shows what there is";
  EXPECT_FALSE(waits(StatArgs::kOp, {{"path", WaitArgs::kOp}}));
}

TEST(FileOperations, ReadWhatTheyWrote) {
  const Place place{.path = "a", .cwd = "/w"};
  expect_same(ResolveArgs{{"a\xff", "/w"}}, R"({"cwd":"/w","path":{"b64":"Yf8="}})");
  expect_same(ResolveArgs::Ok{"/w/a", "/w/b"}, R"({"displayPath":"/w/b","target":"/w/a"})");
  expect_same(StatArgs{{.target = "/w/a"}}, R"({"target":"/w/a"})");
  expect_same(StatArgs::Ok{}, R"({"info":null})");
  expect_same(
      StatArgs::Ok{FileInfo{"v", FileType::kSymlink, 3, 0644, -1, "b"}},
      R"({"info":{"linkTarget":"b","mode":420,"mtimeMs":-1,"size":3,"type":"symlink","version":"v"}})");
  expect_same(LstatArgs{{"a", {}}}, R"({"path":"a"})");
  expect_same(ReadTextArgs{place, 9}, R"({"cwd":"/w","maxBytes":9,"path":"a"})");
  expect_same(ReadBytesArgs{place, 9, 1, 2},
              R"({"cwd":"/w","from":1,"length":2,"maxBytes":9,"path":"a"})");
  expect_same(ReadOk{"v", 1}, R"({"size":1,"version":"v"})");
  expect_same(ListDirArgs{place, 10, "x\ny"},
              R"({"after":"x\ny","cwd":"/w","pageEntries":10,"path":"a"})");
  expect_same(ListDirArgs::Ok{{{"n", FileType::kOther}}, true},
              R"({"entries":[{"name":"n","type":"other"}],"more":true})");
  expect_same(ListTreeArgs{place, 1000, "x/y", 3, {"node_modules"}},
              R"({"after":"x/y","cwd":"/w","depthMax":3,"excludes":["node_modules"],"path":"a"})");
  expect_same(ListTreeArgs::Ok{{{"x/y", FileType::kFile, "v", 2}}, false},
              R"({"entries":[{"path":"x/y","size":2,"type":"file","version":"v"}],"more":false})");
  expect_same(WriteArgs{place, 3, CreateIfAbsent{}, 0600, true, 5},
              R"({"cwd":"/w","diffBytesMax":5,"durable":true,"intent":{"kind":"createIfAbsent"},)"
              R"("mode":384,"path":"a","size":3})");
  expect_same(WriteArgs{.place = {.path = "a"}, .intent = ReplaceIfVersion{"v"}},
              R"({"intent":{"kind":"replaceIfVersion","version":"v"},"path":"a"})");
  expect_same(WriteArgs::Ok{WriteOperation::kCreate, "v", "/w/a", {}},
              R"({"before":null,"operation":"create","target":"/w/a","version":"v"})");
  expect_same(EditTextArgs{place, 2, true, "v", false, 9},
              R"({"cwd":"/w","diffBytesMax":9,"oldBytes":2,"path":"a","replaceAll":true,)"
              R"("version":"v"})");
  expect_same(EditTextArgs::Ok{"v", "/w/a", 2, TextBytes{1}, TextBytes{3}},
              R"({"after":{"bytes":3},"before":{"bytes":1},"replacements":2,"target":"/w/a",)"
              R"("version":"v"})");
  expect_same(MkdirArgs{{"a", {}}, true, 0700}, R"({"mode":448,"parents":true,"path":"a"})");
  expect_same(MkdirArgs::Ok{true, "/a"}, R"({"created":true,"target":"/a"})");
  expect_same(RemoveArgs{{"a", {}}, true, true},
              R"({"missingOk":true,"path":"a","recursive":true})");
  expect_same(RemoveArgs::Ok{true}, R"({"removed":true})");
  expect_same(RenameArgs{"a", "b", "/w", false},
              R"({"cwd":"/w","from":"a","replace":false,"to":"b"})");
  expect_same(RenameArgs::Ok{"/w/b"}, R"({"target":"/w/b"})");
  expect_same(CopyArgs{"a", "b", {}, true, true, true},
              R"({"durable":true,"from":"a","recursive":true,"to":"b"})");
  expect_same(CopyArgs::Ok{1, 2, "/b"}, R"({"bytes":2,"files":1,"target":"/b"})");
  expect_same(WatchArgs{place, true}, R"({"cwd":"/w","path":"a","recursive":true})");
  expect_same(WatchLine{WatchLine::Change::kRenamed, "a\nb"},
              R"({"change":"renamed","path":"a\nb"})");
  expect_same(WatchLine{.lost = 4}, R"({"lost":4})");
}

TEST(SearchOperations, ReadWhatTheyWrote) {
  const Place place{.path = "a", .cwd = "/w"};
  const FileSelection files{{"*.cc", "!b"}, {"cpp"}, true, false, SearchOrder::kModified};
  expect_same(GlobArgs{place, files, 7, 8},
              R"({"bytesMax":8,"cwd":"/w","foundMax":7,"globs":["*.cc","!b"],"hidden":true,)"
              R"("ignoreFiles":false,"order":"modified","path":"a","types":["cpp"]})");
  expect_same(GlobArgs{.place = {.path = "a"}}, R"({"path":"a"})");
  expect_same(SearchOk{"/w/a"}, R"({"target":"/w/a"})");
  expect_same(GrepArgs{.place = {.path = "a"}, .pattern = "x"}, R"({"path":"a","pattern":"x"})");
  expect_same(GrepArgs{place, "x", true, true, true, true, CaseMode::kSmart, 1, 2, {}, 3, 4, 5, 6},
              R"({"after":2,"before":1,"binary":true,"bytesMax":6,"case":"smart","cwd":"/w",)"
              R"("fileBytesMax":3,"foundMax":5,"lineBytesMax":4,"literal":true,"multiline":true,)"
              R"("path":"a","pattern":"x","word":true})");
  expect_same(SearchLine{"a\xff", 1, 2, "b\xff", true, true, {{0, 1}}, {}},
              R"({"context":true,"cut":true,"line":1,"offset":2,"path":{"b64":"Yf8="},)"
              R"("spans":[[0,1]],"text":{"b64":"Yv8="}})");
  expect_same(SearchLine{.summary = SearchSummary{1, 2, "found", 3, {"x"}}},
              R"({"summary":{"files":2,"found":1,"limit":"found","told":["x"],"troubles":3}})");
  const std::string digest(64, '0');
  expect_same(FindToolArgs{"rg"}, R"({"name":"rg"})");
  expect_same(FindToolArgs::Ok{digest, 3, "/t/rg"},
              R"({"bytes":3,"path":"/t/rg","sha256":")" + digest + R"("})");
  expect_same(FindToolArgs::Ok{digest, 3},
              R"({"bytes":3,"path":null,"sha256":")" + digest + R"("})");
  expect_same(PutToolArgs{"rg", digest}, R"({"name":"rg","sha256":")" + digest + R"("})");
  expect_same(PutToolArgs::Ok{"/t/rg"}, R"({"path":"/t/rg"})");
}
TEST(SearchOperations, HaveLimits) {
  const auto taken = [](const base::Json& more) {
    base::Json json = {{"path", "a"}, {"pattern", "x"}};
    json.update(more);
    return static_cast<bool>(from_json<GrepArgs>(json));
  };
  EXPECT_TRUE(taken({{"foundMax", kFoundMax}, {"bytesMax", kSearchBytesMax}}));
  EXPECT_TRUE(taken({{"before", kContextMax}, {"lineBytesMax", kLineBytesMax}}));
  EXPECT_FALSE(taken({{"foundMax", kFoundMax + 1}}));
  EXPECT_FALSE(taken({{"foundMax", 0}}));
  EXPECT_FALSE(taken({{"bytesMax", kSearchBytesMax + 1}}));
  EXPECT_FALSE(taken({{"before", kContextMax + 1}}));
  EXPECT_FALSE(taken({{"lineBytesMax", kLineBytesMax + 1}}));
  EXPECT_FALSE(taken({{"pattern", ""}}));
  EXPECT_FALSE(taken({{"pattern", std::string((32u << 10) + 1, 'x')}}));
  EXPECT_FALSE(taken({{"globs", std::vector<std::string>(65, "x")}}));
  EXPECT_FALSE(taken({{"types", {""}}}));
  EXPECT_FALSE(from_json<SearchLine>(*base::parse_json(R"({"text":"neither"})")));
  EXPECT_FALSE(from_json<PutToolArgs>(*base::parse_json(R"({"name":"rg","sha256":"00"})")));
}

TEST(ArchiveOperations, ReadWhatTheyWrote) {
  const Place place{.path = "a", .cwd = "/w"};
  expect_same(CreateArchiveArgs{place, {"b", "c\xff"}, 9},
              R"({"cwd":"/w","excludes":["b",{"b64":"Y/8="}],"level":9,"path":"a"})");
  expect_same(CreateArchiveArgs{.place = {.path = "a"}}, R"({"path":"a"})");
  expect_same(CreateArchiveArgs::Ok{"/w/a"}, R"({"target":"/w/a"})");
  expect_same(ExtractArchiveArgs{place, {"b"}, false, true, true, 7},
              R"({"bytesMax":7,"cwd":"/w","durable":true,"excludes":["b"],"path":"a",)"
              R"("replace":false,"setIds":true})");
  expect_same(ExtractArchiveArgs{.place = {.path = "a"}}, R"({"path":"a"})");
  expect_same(ExtractArchiveArgs::Ok{true, "/w/a", {3, 1, 9, 0, {}}},
              R"({"created":true,"report":{"bytes":9,"entries":3,"files":1},"target":"/w/a"})");
  expect_same(ArchiveReport{3, 1, 9, 2, {{"a\xff", "changed"}}},
              R"({"bytes":9,"entries":3,"files":1,"remarks":2,)"
              R"("told":[{"path":{"b64":"Yf8="},"remark":"changed"}]})");
}

TEST(ArchiveOperations, HaveLimits) {
  const auto refused = [](const char* json) {
    return !from_json<CreateArchiveArgs>(*base::parse_json(json)) &&
           !from_json<ExtractArchiveArgs>(*base::parse_json(json));
  };
  EXPECT_TRUE(refused(R"({"path":"a","target":"/a"})"));
  EXPECT_TRUE(refused(R"({"path":"a","excludes":[""]})"));
  EXPECT_TRUE(refused(R"({"path":"a","level":10,"bytesMax":68719476737})"));
  CreateArchiveArgs args{.place = {.path = "a"}, .excludes = std::vector<std::string>(64, "x")};
  EXPECT_TRUE(from_json<CreateArchiveArgs>(to_json(args)));
  args.excludes.push_back("x");
  EXPECT_FALSE(from_json<CreateArchiveArgs>(to_json(args)));
}

constexpr char kHandle[] = "0123456789abcdef";

TEST(ProcessOperations, ReadWhatTheyWrote) {
  expect_same(ResolveExecutableArgs{"rg", {{"PATH", "/bin"}}},
              R"({"command":"rg","env":[["PATH","/bin"]]})");
  expect_same(ResolveExecutableArgs::Ok{"/bin/rg"}, R"({"path":"/bin/rg"})");
  expect_same(SpawnArgs{.handle = kHandle, .argv = {"a", ""}, .grace_ms = 1},
              R"({"argv":["a",""],"graceMs":1,"handle":"0123456789abcdef","stderr":"discard",)"
              R"("stdin":"ignore","stdout":"discard"})");
  expect_same(SpawnArgs{.handle = kHandle,
                        .argv = {"a\xff"},
                        .cwd = "/w",
                        .env = {{"A", "\xfe"}, {"B", std::nullopt}},
                        .grace_ms = kGraceMsMax,
                        .in = Pipe{3},
                        .out = Collected{64'000, 1 << 20, 5},
                        .err = Pipe{4}},
              R"({"argv":[{"b64":"Yf8="}],"cwd":"/w","env":[["A",{"b64":"/g=="}],["B",null]],)"
              R"("graceMs":2147483647,"handle":"0123456789abcdef","stderr":{"pipe":4},)"
              R"("stdin":{"pipe":3},"stdout":{"collect":{"maxBytes":64000,)"
              R"("spill":{"maxBytes":1048576},"stream":5}}})");
  expect_same(
      SpawnArgs{
          .handle = kHandle, .argv = {"a"}, .grace_ms = 1, .in = StdinData{}, .detached = true},
      R"({"argv":["a"],"detached":true,"graceMs":1,"handle":"0123456789abcdef","stderr":"discard",)"
      R"("stdin":"data","stdout":"discard"})");
  expect_same(SpawnArgs::Ok{7}, R"({"pid":7})");
  expect_same(ReadOutputArgs{kHandle, OutputName::kStderr, 5, 6},
              R"({"from":5,"handle":"0123456789abcdef","maxBytes":6,"output":"stderr"})");
  expect_same(ReadOutputArgs::Ok{1, 2, true, true, "/s"},
              R"({"ended":true,"from":1,"lossy":true,"next":2,"spillPath":"/s"})");
  expect_same(WaitArgs{kHandle, WaitUntil::kEmpty, 0},
              R"({"handle":"0123456789abcdef","timeoutMs":0,"until":"empty"})");
  expect_same(WaitArgs::Ok{true,
                           {.pid = 9,
                            .exited = true,
                            .signal = "SIGKILL",
                            .empty = true,
                            .out = OutputState{3, true, false, {}}}},
              R"({"reached":true,"state":{"empty":true,"exitCode":null,"exited":true,"pid":9,)"
              R"("settled":false,"signal":"SIGKILL",)"
              R"("stdout":{"bytes":3,"ended":true,"lossy":false}}})");
  expect_same(ReadOutputArgs{.handle = kHandle, .from = 7, .wait_ms = 20'000},
              R"({"from":7,"handle":"0123456789abcdef","output":"stdout","waitMs":20000})");
  expect_same(ProcessState{.pid = 3, .age_ms = 61'000, .detached = true},
              R"({"ageMs":61000,"detached":true,"empty":false,"exitCode":null,"exited":false,)"
              R"("pid":3,"settled":false,"signal":null})");
  expect_same(SignalArgs{kHandle, "SIGINT", SignalArgs::To::kLeader},
              R"({"handle":"0123456789abcdef","signal":"SIGINT","to":"leader"})");
  expect_same(SignalArgs::Ok{true}, R"({"delivered":true})");
  expect_same(TerminateArgs{kHandle, 5}, R"({"graceMs":5,"handle":"0123456789abcdef"})");
  expect_same(AttachArgs{kHandle, 1, AttachedOutput{2, 30}, {}, true},
              R"({"adopt":true,"handle":"0123456789abcdef","stdin":1,)"
              R"("stdout":{"from":30,"stream":2}})");
  expect_same(AttachArgs::Ok{{.pid = 1, .exited = true, .exit_code = 3}, 4, {}, OutputAt{5, true}},
              R"({"state":{"empty":false,"exitCode":3,"exited":true,"pid":1,"settled":false,)"
              R"("signal":null},"stderr":{"from":5,"lossy":true},"stdinAt":4})");
  expect_same(ReleaseArgs{kHandle}, R"({"handle":"0123456789abcdef"})");
  expect_same(ListProcessesArgs{8, kHandle}, R"({"after":"0123456789abcdef","pageEntries":8})");
  expect_same(ListProcessesArgs::Ok{{{kHandle, {"a"}, true, {}}}, false},
              R"({"more":false,"processes":[{"argv":["a"],"handle":"0123456789abcdef",)"
              R"("mine":true,"state":{"empty":false,"exitCode":null,"exited":false,"pid":-1,)"
              R"("settled":false,"signal":null}}]})");
}

TEST(TerminalOperations, ReadWhatTheyWrote) {
  expect_same(SpawnArgs{.handle = kHandle,
                        .argv = {"bash"},
                        .grace_ms = 1,
                        .in = Pipe{3},
                        .out = Collected{4 << 20, {}, 5},
                        .terminal = TerminalSize{40, 160}},
              R"({"argv":["bash"],"graceMs":1,"handle":"0123456789abcdef","stderr":"discard",)"
              R"("stdin":{"pipe":3},"stdout":{"collect":{"maxBytes":4194304,"stream":5}},)"
              R"("terminal":{"columns":160,"rows":40}})");
  expect_same(ProcessState{.pid = 3, .terminal = TerminalSize{1, kTerminalSideMax}},
              R"({"empty":false,"exitCode":null,"exited":false,"pid":3,"settled":false,)"
              R"("signal":null,"terminal":{"columns":65535,"rows":1}})");
  expect_same(ResizeTerminalArgs{kHandle, {50, 200}},
              R"({"columns":200,"handle":"0123456789abcdef","rows":50})");
  expect_same(ResizeTerminalArgs::Ok{}, "{}");
  expect_same(ForegroundArgs{kHandle}, R"({"handle":"0123456789abcdef"})");
  expect_same(ForegroundArgs{kHandle, 9}, R"({"handle":"0123456789abcdef","typed":9})");
  expect_same(ForegroundArgs::Ok{}, "{}");
  expect_same(ForegroundArgs::Ok{7, {}}, R"({"processGroup":7})");
  expect_same(ForegroundArgs::Ok{7, false}, R"({"inputWaiting":false,"processGroup":7})");
  expect_same(SignalForegroundArgs{kHandle, "SIGTSTP"},
              R"({"handle":"0123456789abcdef","signal":"SIGTSTP"})");
  expect_same(SignalForegroundArgs{kHandle, "SIGINT", 9},
              R"({"handle":"0123456789abcdef","signal":"SIGINT","typed":9})");
  expect_same(SignalForegroundArgs::Ok{7}, R"({"processGroup":7})");
}

struct Refused {
  const char *name, *json, *why;
};

template <typename Message, std::size_t kCount>
void expect_refused(const Refused (&cases)[kCount]) {
  for (const Refused& test : cases) {
    const auto read = from_json<Message>(*base::parse_json(test.json));
    ASSERT_FALSE(read) << test.name;
    EXPECT_EQ(read.error().code, base::ErrorCode::kInvalid) << test.name;
    EXPECT_NE(read.error().message.find(test.why), std::string::npos)
        << test.name << ": " << read.error().message;
  }
}

TEST(FileOperations, RefuseWhatBreaksALimit) {
  expect_refused<StatArgs>({
      {"neither", "{}", "either \"target\" or \"path\""},
      {"both", R"({"path":"a","target":"/a"})", "either \"target\" or \"path\""},
      {"target_and_cwd", R"({"target":"/a","cwd":"/"})", "\"cwd\" goes with \"path\""},
      {"empty", R"({"path":""})", "\"path\" must be a text or"},
      {"nul", R"({"path":"a\u0000b"})", "\"path\" must be without NUL"},
      {"hidden_nul", R"({"path":{"b64":"YQBi"}})", "\"path\" must be without NUL"},
      {"not_base64", R"({"path":{"b64":"*"}})", "\"path\" must be a text or"},
      {"more_than_b64", R"({"path":{"b64":"YQ==","x":1}})", "\"path\" must be a text or"},
      {"a_number", R"({"path":7})", "\"path\" must be a text or"},
      {"no_object", "[]", "must be an object"},
  });
  const std::string longest(4096, 'x');
  EXPECT_TRUE(from_json<StatArgs>({{"path", longest}}));
  EXPECT_FALSE(from_json<StatArgs>({{"path", longest + "x"}}));
  expect_refused<ListDirArgs>({
      {"page_of_none", R"({"path":"a","pageEntries":0})", "from 1 to 1000"},
      {"page_too_large", R"({"path":"a","pageEntries":1001})", "from 1 to 1000"},
  });
  expect_refused<WriteArgs>({
      {"unknown_intent", R"({"path":"a","intent":{"kind":"x"}})", "\"intent\" must be"},
      {"no_version", R"({"path":"a","intent":{"kind":"replaceIfVersion"}})", "\"intent\" must be"},
      {"intent_no_object", R"({"path":"a","intent":"createIfAbsent"})", "\"intent\" must be"},
      {"setuid", R"({"path":"a","mode":2541})", "\"mode\" must be a whole number from 0 to 511"},
      {"large_diff", R"({"path":"a","diffBytesMax":10485761})", "from 0 to 10485760"},
      {"negative", R"({"path":"a","size":-1})", "\"size\" must be"},
      {"a_text_for_a_flag", R"({"path":"a","durable":"yes"})", "\"durable\" must be true or false"},
  });
  expect_refused<WatchLine>({
      {"nothing", "{}", "either"},
      {"both", R"({"change":"mode","path":"a","lost":1})", "either"},
      {"no_path", R"({"change":"mode"})", "either"},
  });
}

TEST(ProcessOperations, RefuseWhatBreaksALimit) {
  expect_refused<ReleaseArgs>({
      {"short", R"({"handle":"0123456789abcde"})", "16 to 64"},
      {"strange", R"({"handle":"0123456789abcde/"})", "16 to 64"},
      {"missing", "{}", "\"handle\" is missing"},
  });
  EXPECT_TRUE(from_json<ReleaseArgs>({{"handle", std::string(64, 'a')}}));
  EXPECT_FALSE(from_json<ReleaseArgs>({{"handle", std::string(65, 'a')}}));

  const base::Json good = to_json(SpawnArgs{.handle = kHandle, .argv = {"a"}, .grace_ms = 1});
  const struct {
    const char *name, *field, *value, *why;
  } cases[] = {
      {"no_program", "argv", "[]", "names no program"},
      {"empty_program", "argv", R"([""])", "names no program"},
      {"no_grace", "graceMs", "0", "from 1 to 2147483647"},
      {"long_grace", "graceMs", "2147483648", "from 1 to 2147483647"},
      {"stdin_of_stream_0", "stdin", R"({"pipe":0})", "\"stdin\" must be"},
      {"stdin_of_two", "stdin", R"({"pipe":1,"data":true})", "\"stdin\" must be"},
      {"stdin_unknown", "stdin", R"("inherit")", "\"stdin\" must be"},
      {"stdout_unknown", "stdout", R"("inherit")", "\"stdout\" must be"},
      {"collect_without_cap", "stdout", R"({"collect":{}})", "\"stdout\" \"maxBytes\" is missing"},
      {"collect_too_much", "stderr", R"({"collect":{"maxBytes":67108865}})", "from 0 to 67108864"},
      {"spill_without_cap", "stderr", R"({"collect":{"maxBytes":1,"spill":{}}})", "\"spill\" must"},
      {"nameless_variable", "env", R"([["","x"]])", "\"env\" item 0 must be [name"},
      {"variable_with_equals", "env", R"([["A","x"],["B=C","x"]])", "\"env\" item 1 must be [name"},
      {"variable_with_nul", "env", R"([["A","x\u0000"]])", "without NUL"},
      {"variable_of_one", "env", R"([["A"]])", "\"env\" item 0 must be [name"},
  };
  for (const auto& test : cases) {
    base::Json args = good;
    args[test.field] = *base::parse_json(test.value);
    const auto read = from_json<SpawnArgs>(args);
    ASSERT_FALSE(read) << test.name;
    EXPECT_NE(read.error().message.find(test.why), std::string::npos)
        << test.name << ": " << read.error().message;
  }
}

TEST(TerminalOperations, RefuseWhatBreaksALimit) {
  expect_refused<ResizeTerminalArgs>({
      {"no_rows", R"({"handle":"0123456789abcdef","rows":0,"columns":1})", "\"rows\" must be"},
      {"too_wide", R"({"handle":"0123456789abcdef","rows":1,"columns":65536})", "from 1 to 65535"},
      {"half", R"({"handle":"0123456789abcdef","rows":1})", "\"columns\" is missing"},
      {"whose", R"({"rows":1,"columns":1})", "\"handle\" is missing"},
  });
  expect_refused<ForegroundArgs>({
      {"typed_back", R"({"handle":"0123456789abcdef","typed":-1})", "\"typed\" must be"},
  });
  expect_refused<ForegroundArgs::Ok>({
      {"group_0", R"({"processGroup":0})", "\"processGroup\" must be"},
      {"perhaps", R"({"processGroup":1,"inputWaiting":"unknown"})", "true or false"},
  });
  expect_refused<SignalForegroundArgs>({
      {"which", R"({"handle":"0123456789abcdef"})", "\"signal\" is missing"},
      {"a_number", R"({"handle":"0123456789abcdef","signal":2})", "\"signal\" must be"},
  });
  base::Json spawn = to_json(SpawnArgs{.handle = kHandle, .argv = {"a"}, .grace_ms = 1});
  spawn["terminal"] = {{"rows", 0}, {"columns", 80}};
  EXPECT_FALSE(from_json<SpawnArgs>(spawn));
  spawn["terminal"] = true;
  EXPECT_FALSE(from_json<SpawnArgs>(spawn));
}

TEST(ProcessOperations, BoundArgumentsAndEnvironmentTogether) {
  SpawnArgs args{.handle = kHandle, .argv = {"a"}, .grace_ms = 1};
  const auto fits = [&args] { return from_json<SpawnArgs>(to_json(args)).ok(); };
  args.argv.emplace_back(kArgumentBytesMax, 'x');
  EXPECT_TRUE(fits());
  args.argv.back() += 'x';
  EXPECT_FALSE(fits()) << "one argument";
  args.argv.assign(5, std::string(100'000, 'x'));
  args.env = {{"A", std::string(kLaunchBytesMax - 500'001, 'x')}};
  EXPECT_TRUE(fits());
  args.env.front().second->push_back('x');
  EXPECT_FALSE(fits()) << "all of them";
  args.argv.assign(static_cast<std::size_t>(kArgumentsMax), "x");
  args.env.clear();
  EXPECT_TRUE(fits());
  args.argv.emplace_back("x");
  EXPECT_FALSE(fits()) << "their number";
}

}  // namespace
}  // namespace wire
