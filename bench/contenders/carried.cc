// A harness at agentd's socket, in C++: bench_carried SOCKET NAMESPACE NAME.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/contenders/commands.h"
#include "libs/base/crypto.h"
#include "libs/wire/client/connection.h"
#include "libs/wire/frames/file_operations.h"
#include "libs/wire/frames/process_operations.h"

namespace contenders {
namespace {

constexpr std::size_t kFileBytes = 1024;
constexpr std::size_t kPieceBytes = 256u << 10;
constexpr std::int64_t kCollected = 8 << 20;  // bench/agentd counts with it.

const wire::Place kSmall{.path = "small"}, kLarge{.path = "large"}, kEdited{.path = "edited"};

class Harness {
 public:
  explicit Harness(wire::ConnectionSettings settings)
      : connection_(std::move(settings), clock_), session_(connection_.session()) {
    const auto welcome = connection_.open();
    if (!welcome) give_up(welcome.error().message);
    write(kSmall, std::string(kFileBytes, 'x'));
    write(kEdited, "old" + std::string(kFileBytes - 3, '.'));
  }

  void write(const wire::Place& place, const std::string& content) {
    const auto id = begin(wire::WriteArgs{.place = place}, {.mutating = true, .up = true});
    send(id, content, content.size());
    finish(id);
  }
  // The same piece again and again, so that it is not the client's memory that is measured.
  void upload(std::uint64_t bytes) {
    const auto id = begin(wire::WriteArgs{.place = kLarge}, {.mutating = true, .up = true});
    send(id, piece_, bytes);
    finish(id);
  }
  void read(const wire::Place& place, std::uint64_t bytes) {
    const auto id = begin(wire::ReadBytesArgs{.place = place}, {.down = true});
    finish(id);
    if (drain(id) != bytes) give_up("another file was read");
  }
  void stat() {
    const auto ok = connection_.ask(wire::StatArgs{.place = kSmall});
    if (!ok || !ok->info || ok->info->size != kFileBytes) give_up("another file was looked at");
  }
  void edit() {
    const std::string texts = edited_ ? "newold" : "oldnew";
    const auto id =
        begin(wire::EditTextArgs{.place = kEdited, .old_bytes = 3}, {.mutating = true, .up = true});
    send(id, texts, texts.size());
    finish(id);
    edited_ = !edited_;
  }

  // Until the exit code is known and all output has come; the handle is released apart.
  enum class Kept { kAll, kTail };
  void run(std::vector<std::string> argv, Kept kept = Kept::kAll, std::uint64_t bytes = 0) {
    const auto out = session_.new_stream(), err = session_.new_stream();
    handle_ = base::random_hex(16);
    wire::SpawnArgs args{.handle = handle_, .argv = std::move(argv), .grace_ms = 1000};
    args.out = kept == Kept::kAll ? wire::OutputMode(wire::Pipe{out})
                                  : wire::Collected{.bytes_max = kCollected, .stream = out};
    args.err = wire::Pipe{err};
    const auto spawned = begin(args, {.mutating = true, .to_client = {out, err}});
    const auto waited =
        begin(wire::WaitArgs{.handle = handle_, .until = wire::WaitUntil::kSettled});
    finish(spawned);
    const auto came = drain(out);
    drain(err);
    judge(finish(waited));
    if (kept == Kept::kAll && came != bytes) give_up("not all output has come");
  }
  void feed(std::uint64_t bytes) {
    const auto in = session_.new_stream();
    handle_ = base::random_hex(16);
    const wire::SpawnArgs args{.handle = handle_,
                               .argv = {"sh", "-c", "cat >/dev/null"},
                               .grace_ms = 1000,
                               .in = wire::Pipe{in}};
    const auto spawned = begin(args, {.mutating = true, .to_server = {in}});
    const auto waited =
        begin(wire::WaitArgs{.handle = handle_, .until = wire::WaitUntil::kSettled});
    finish(spawned);
    send(in, piece_, bytes);
    judge(finish(waited));
  }
  void release() {
    finish(begin(wire::WaitArgs{.handle = handle_, .until = wire::WaitUntil::kEmpty}));
    finish(begin(wire::ReleaseArgs{.handle = handle_}, {.mutating = true}));
  }

 private:
  template <typename Args>
  std::uint32_t begin(const Args& args, wire::Call how = {}) {
    how.op = Args::kOp;
    how.args = wire::to_json(args);
    const auto id = session_.ask(std::move(how));
    if (!id) give_up(id.error().message);
    return *id;
  }
  void turn() {
    connection_.turn({});
    for (wire::ConnectionEvent& event : connection_.take_events()) {
      if (auto* answered = std::get_if<wire::Answered>(&event))
        answers_.emplace(answered->id, std::move(answered->ok));
      if (const auto* failed = std::get_if<wire::Failed>(&event)) give_up(failed->failure.message);
    }
    if (connection_.over()) give_up(connection_.over()->message);
  }
  base::Json finish(std::uint32_t id) {
    while (!answers_.contains(id)) turn();
    return std::move(answers_.extract(id).mapped());
  }
  static void judge(const base::Json& waited) {
    const auto ok = wire::from_json<wire::WaitArgs::Ok>(waited);
    if (!ok || ok->state.exit_code != 0) give_up("it did not exit with 0");
  }
  // Parts of `piece`, so many bytes.
  void send(std::uint32_t stream, std::string_view piece, std::uint64_t bytes) {
    while (bytes > 0) {
      const auto count = std::min<std::uint64_t>({session_.room(stream), piece.size(), bytes});
      session_.append(stream, piece.substr(0, count));
      bytes -= count;
      if (count == 0) turn();
    }
    session_.end(stream);
  }
  std::uint64_t drain(std::uint32_t stream) {
    for (std::uint64_t bytes = 0;;) {
      const auto piece = session_.take(stream, kPieceBytes);
      if (!piece) {
        turn();
        continue;
      }
      bytes += piece->bytes.size();
      if (piece->error) give_up(piece->error->message);
      if (piece->end) return bytes;
    }
  }

  base::SystemClock clock_;
  wire::Connection connection_;
  wire::ClientSession& session_;
  std::map<std::uint32_t, base::Json> answers_;
  const std::string piece_ = std::string(kPieceBytes, 'x');
  std::string handle_;
  bool edited_ = false;
};

using Work = std::function<void(Harness& harness, std::uint64_t bytes)>;

const std::map<std::string, Work> kFiles = {
    {"stat", [](Harness& harness, auto) { harness.stat(); }},
    {"read", [](Harness& harness, auto) { harness.read(kSmall, kFileBytes); }},
    {"write", [](Harness& harness, auto) { harness.write(kSmall, std::string(kFileBytes, 'x')); }},
    {"edit", [](Harness& harness, auto) { harness.edit(); }},
    {"upload", [](Harness& harness, auto bytes) { harness.upload(bytes); }},
    {"download", [](Harness& harness, auto bytes) { harness.read(kLarge, bytes); }},
};

std::vector<std::string> printing(std::uint64_t bytes) {
  return {"head", "-c", std::to_string(bytes), "/dev/zero"};
}

// Whose handle is released when the time is taken.
const std::map<std::string, Work> kProcesses = {
    {"run", [](Harness& harness, auto) { harness.run({"true"}); }},
    {"shell", [](Harness& harness, auto) { harness.run({"/bin/bash", "-l", "-c", "true"}); }},
    {"print", [](Harness& harness,
                 auto bytes) { harness.run(printing(bytes), Harness::Kept::kAll, bytes); }},
    {"collect",
     [](Harness& harness, auto bytes) { harness.run(printing(bytes), Harness::Kept::kTail); }},
    {"feed", [](Harness& harness, auto bytes) { harness.feed(bytes); }},
};

std::int64_t once(Harness& harness, const Command& command) {
  const std::uint64_t bytes = command.numbers.empty() ? 0 : command.numbers[0];
  const auto file = kFiles.find(command.word), process = kProcesses.find(command.word);
  if (file == kFiles.end() && process == kProcesses.end()) give_up("unknown: " + command.word);
  const Stopwatch watch;
  (file == kFiles.end() ? process : file)->second(harness, bytes);
  const std::int64_t took = watch.nanoseconds();
  if (file == kFiles.end()) harness.release();
  return took;
}

}  // namespace
}  // namespace contenders

int main(int argc, char** argv) {
  using namespace contenders;
  if (argc != 4) give_up("usage: bench_carried SOCKET NAMESPACE NAME");
  Harness harness({.socket = argv[1],
                   .session = {.name = "bench",
                               .features = {"files", "processes"},
                               .sandbox = wire::SandboxName{argv[2], argv[3]}}});
  while (const auto command = next_command()) {
    std::vector<std::int64_t> took(command->times);
    for (std::int64_t& each : took) each = once(harness, *command);
    answer(took);
  }
}
