#include "libs/wire/frames/process_operations.h"

namespace wire {
namespace {

constexpr Name kPath{1, 4096};
constexpr Name kArgument{0, kArgumentBytesMax};
constexpr Text kSignal{4, 16};
constexpr Number kCount;
constexpr Number kGrace{1, kGraceMsMax};
constexpr Id kId;
constexpr Flag kFlag;
constexpr List kArgv{kArgumentsMax, kArgument};

constexpr std::pair<OutputName, std::string_view> kOutputs[] = {{OutputName::kStdout, "stdout"},
                                                                {OutputName::kStderr, "stderr"}};
constexpr Words<OutputName> kOutput{kOutputs};

constexpr std::pair<WaitUntil, std::string_view> kUntils[] = {
    {WaitUntil::kExit, "exit"}, {WaitUntil::kSettled, "settled"}, {WaitUntil::kEmpty, "empty"}};
constexpr Words<WaitUntil> kUntil{kUntils};

constexpr std::pair<SignalArgs::To, std::string_view> kTos[] = {{SignalArgs::To::kLeader, "leader"},
                                                                {SignalArgs::To::kGroup, "group"},
                                                                {SignalArgs::To::kTree, "tree"}};
constexpr Words<SignalArgs::To> kTo{kTos};

constexpr Handle kHandle;

// [name, value], or [name, null] for one to be removed.
struct Change {
  base::Json write(const EnvironmentChange& change) const {
    base::Json pair = base::Json::array({kArgument.write(change.first), nullptr});
    if (change.second) pair[1] = kArgument.write(*change.second);
    return pair;
  }
  base::Result<EnvironmentChange> read(const base::Json& json) const {
    if (!json.is_array() || json.size() != 2) return must_be("[name, value or null]");
    TRY(auto name, kArgument.read(json[0]));
    if (name.empty() || name.find('=') != std::string::npos)
      return must_be("[name, value or null], its name neither empty nor with =");
    if (json[1].is_null()) return EnvironmentChange(std::move(name), std::nullopt);
    TRY(auto value, kArgument.read(json[1]));
    return EnvironmentChange(std::move(name), std::move(value));
  }
};
constexpr List kEnvironment{kEnvironmentMax, Change{}};

base::Result<Pipe> pipe_in(const base::Json& json) {
  TRY(const auto stream, kId.read(json["pipe"]));
  return Pipe{stream};
}

bool has_only(const base::Json& json, const char* key) {
  return json.is_object() && json.size() == 1 && json.contains(key);
}

struct Stdin {
  base::Json write(const StdinMode& mode) const {
    if (const auto* pipe = std::get_if<Pipe>(&mode)) return {{"pipe", pipe->stream}};
    return std::holds_alternative<StdinData>(mode) ? "data" : "ignore";
  }
  base::Result<StdinMode> read(const base::Json& json) const {
    if (json == "ignore") return StdinMode(StdinIgnored{});
    if (json == "data") return StdinMode(StdinData{});
    if (!has_only(json, "pipe")) return must_be(R"("ignore", "data" or {"pipe"})");
    TRY(const auto pipe, pipe_in(json));
    return StdinMode(pipe);
  }
};

struct Output {
  base::Json write(const OutputMode& mode) const;
  base::Result<OutputMode> read(const base::Json& json) const;
};

// The spill's own object, which has one field.
struct Spill {
  base::Json write(std::int64_t bytes_max) const { return {{"maxBytes", bytes_max}}; }
  base::Result<std::int64_t> read(const base::Json& json) const {
    if (!has_only(json, "maxBytes")) return must_be(R"({"maxBytes"})");
    return kCount.read(json["maxBytes"]);
  }
};

std::size_t launch_bytes(const SpawnArgs& m) {
  std::size_t bytes = 0;
  for (const std::string& argument : m.argv) bytes += argument.size();
  for (const auto& [name, value] : m.env) bytes += name.size() + (value ? value->size() : 0);
  return bytes;
}

}  // namespace

template <Is<Collected> Fields>
void fields(auto& visit, Fields& m) {
  visit("maxBytes", m.bytes_max, Number{0, kCollectBytesMax});
  visit.optional("spill", m.spill_bytes_max, Spill{});
  visit.optional("stream", m.stream, kId);
}

template <Is<ResolveExecutableArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("command", m.command, kPath);
  visit.with_default("env", m.env, {}, kEnvironment);
}

template <Is<ResolveExecutableArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("path", m.path, kPath);
}

template <Is<TerminalSize> Fields>
void fields(auto& visit, Fields& m) {
  visit("rows", m.rows, Number{1, kTerminalSideMax});
  visit("columns", m.columns, Number{1, kTerminalSideMax});
}

template <Is<SpawnArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit("argv", m.argv, kArgv);
  visit.optional("cwd", m.cwd, kPath);
  visit.with_default("env", m.env, {}, kEnvironment);
  visit("graceMs", m.grace_ms, kGrace);
  visit("stdin", m.in, Stdin{});
  visit("stdout", m.out, Output{});
  visit("stderr", m.err, Output{});
  visit.optional("terminal", m.terminal, Inner<TerminalSize>{});
  visit.with_default("detached", m.detached, false, kFlag);
  visit.judge(!m.argv.empty() && !m.argv.front().empty(), "\"argv\" names no program");
  visit.judge(launch_bytes(m) <= kLaunchBytesMax, "\"argv\" and \"env\" are too long together");
}

template <Is<SpawnArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("pid", m.pid, kCount);
}

template <Is<ReadOutputArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit("output", m.output, kOutput);
  visit("from", m.from, kCount);
  visit.with_default("maxBytes", m.bytes_max, kReadBytesMax, Number{0, kReadBytesMax});
  visit.optional("waitMs", m.wait_ms, kCount);
}

template <Is<ReadOutputArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("from", m.from, kCount);
  visit("next", m.next, kCount);
  visit("lossy", m.lossy, kFlag);
  visit("ended", m.ended, kFlag);
  visit.optional("spillPath", m.spill_path, kPath);
}

template <Is<OutputState> Fields>
void fields(auto& visit, Fields& m) {
  visit("bytes", m.bytes, kCount);
  visit("ended", m.ended, kFlag);
  visit("lossy", m.lossy, kFlag);
  visit.optional("spillPath", m.spill_path, kPath);
}

template <Is<ProcessState> Fields>
void fields(auto& visit, Fields& m) {
  visit("pid", m.pid, Number{-1});
  visit("exited", m.exited, kFlag);
  visit.nullable("exitCode", m.exit_code, kCount);
  visit.nullable("signal", m.signal, kSignal);
  visit("settled", m.settled, kFlag);
  visit("empty", m.empty, kFlag);
  visit.optional("stdout", m.out, Inner<OutputState>{});
  visit.optional("stderr", m.err, Inner<OutputState>{});
  visit.optional("terminal", m.terminal, Inner<TerminalSize>{});
  visit.optional("ageMs", m.age_ms, kCount);
  visit.with_default("detached", m.detached, false, kFlag);
}

template <Is<WaitArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit("until", m.until, kUntil);
  visit.optional("timeoutMs", m.timeout_ms, kCount);
}

template <Is<WaitArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("reached", m.reached, kFlag);
  visit("state", m.state, Inner<ProcessState>{});
}

template <Is<SignalArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit("signal", m.signal, kSignal);
  visit.with_default("to", m.to, SignalArgs::To::kGroup, kTo);
}

template <Is<SignalArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("delivered", m.delivered, kFlag);
}

template <Is<TerminateArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit.optional("graceMs", m.grace_ms, kGrace);
}

template <typename Fields>
  requires Is<Fields, TerminateArgs::Ok> || Is<Fields, ReleaseArgs::Ok>
void fields(auto&, Fields&) {}

template <Is<AttachedOutput> Fields>
void fields(auto& visit, Fields& m) {
  visit("stream", m.stream, kId);
  visit("from", m.from, kCount);
}

template <Is<OutputAt> Fields>
void fields(auto& visit, Fields& m) {
  visit("from", m.from, kCount);
  visit("lossy", m.lossy, kFlag);
}

template <Is<AttachArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit.optional("stdin", m.in, kId);
  visit.optional("stdout", m.out, Inner<AttachedOutput>{});
  visit.optional("stderr", m.err, Inner<AttachedOutput>{});
  visit.with_default("adopt", m.adopt, false, kFlag);
}

template <Is<AttachArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("state", m.state, Inner<ProcessState>{});
  visit.optional("stdinAt", m.stdin_at, kCount);
  visit.optional("stdout", m.out, Inner<OutputAt>{});
  visit.optional("stderr", m.err, Inner<OutputAt>{});
}

template <Is<ReleaseArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
}

template <Is<ListedProcess> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit("argv", m.argv, kArgv);
  visit("mine", m.mine, kFlag);
  visit("state", m.state, Inner<ProcessState>{});
}

template <Is<ListProcessesArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit.with_default("pageEntries", m.page_entries, kProcessPageMax, Number{1, kProcessPageMax});
  visit.optional("after", m.after, kHandle);
}

template <Is<ListProcessesArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("processes", m.processes, List{kProcessPageMax, Inner<ListedProcess>{}});
  visit("more", m.more, kFlag);
}

WIRE_FIELDS(Collected)
WIRE_FIELDS(TerminalSize)
WIRE_FIELDS(OutputState)
WIRE_FIELDS(ProcessState)
WIRE_FIELDS(AttachedOutput)
WIRE_FIELDS(OutputAt)
WIRE_FIELDS(ListedProcess)

namespace {

base::Json Output::write(const OutputMode& mode) const {
  if (const auto* pipe = std::get_if<Pipe>(&mode)) return {{"pipe", pipe->stream}};
  if (const auto* collected = std::get_if<Collected>(&mode))
    return {{"collect", to_json(*collected)}};
  return "discard";
}

base::Result<OutputMode> Output::read(const base::Json& json) const {
  if (json == "discard") return OutputMode(OutputDiscarded{});
  if (has_only(json, "collect")) {
    TRY(const auto collected, from_json<Collected>(json["collect"]));
    return OutputMode(collected);
  }
  if (!has_only(json, "pipe")) return must_be(R"("discard", {"pipe"} or {"collect"})");
  TRY(const auto pipe, pipe_in(json));
  return OutputMode(pipe);
}

}  // namespace

WIRE_FIELDS(ResolveExecutableArgs)
WIRE_FIELDS(ResolveExecutableArgs::Ok)
WIRE_FIELDS(SpawnArgs)
WIRE_FIELDS(SpawnArgs::Ok)
WIRE_FIELDS(ReadOutputArgs)
WIRE_FIELDS(ReadOutputArgs::Ok)
WIRE_FIELDS(WaitArgs)
WIRE_FIELDS(WaitArgs::Ok)
WIRE_FIELDS(SignalArgs)
WIRE_FIELDS(SignalArgs::Ok)
WIRE_FIELDS(TerminateArgs)
WIRE_FIELDS(TerminateArgs::Ok)
WIRE_FIELDS(AttachArgs)
WIRE_FIELDS(AttachArgs::Ok)
WIRE_FIELDS(ReleaseArgs)
WIRE_FIELDS(ReleaseArgs::Ok)
WIRE_FIELDS(ListProcessesArgs)
WIRE_FIELDS(ListProcessesArgs::Ok)

}  // namespace wire
