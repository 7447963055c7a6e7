#include "cli/logs/beginning.h"

#include <unistd.h>

#include <utility>

#include "cli/logs/last_lines.h"
#include "cli/reach/asking.h"
#include "cli/reach/transfer.h"
#include "cli/reach/way.h"
#include "cli/reach/words.h"

namespace cli {
namespace {

using base::Result;
using wire::OutputName;

class Beginning {
 public:
  Beginning(wire::Connection& connection, const Options& options, const Ends& ends,
            const Terminal& terminal)
      : connection_(connection),
        options_(options),
        handle_(options.words.back()),
        unwatched_{.signals = ends.signals},
        ends_(ends),
        terminal_(terminal) {}

  Result<std::deque<Output>> find() {
    const auto state = look_at(connection_, handle_, ends_, terminal_);
    if (!state) return to_error(state.error());
    choose(OutputName::kStdout, ends_.out, state->out);
    choose(OutputName::kStderr, ends_.err, state->err);
    if (outputs_.empty())
      return base::error(base::ErrorCode::kNotFound, "process/", handle_,
                         ": of that, nothing was to be kept when it was started");
    for (Output& output : outputs_)
      if (options_.tail_lines >= 0) CHECK_OK(begin_with_last_lines(output));
    return std::move(outputs_);
  }

 private:
  void choose(OutputName name, int descriptor, const std::optional<wire::OutputState>& state) {
    const bool wanted = name == OutputName::kStdout ? options_.stdout_only : options_.stderr_only;
    const bool both = options_.stdout_only == options_.stderr_only;
    if (!state || !(wanted || both)) return;
    Output& output = outputs_.emplace_back();
    output.name = name;
    output.descriptor = descriptor;
    output.on_screen = ::isatty(descriptor) == 1;
    output.end = state->bytes;
    if (state->lossy) output.file = state->spill_path;  // Else all of it is kept.
  }

  Result<base::Done> begin_with_last_lines(Output& output) {
    const ReadBlock read = [&](std::int64_t from, std::int64_t bytes) {
      return read_block(output, from, bytes);
    };
    if (output.file) {
      TRY(output.at, last_lines_in_file(read, output.end, options_.tail_lines));
      return base::Done{};
    }
    TRY(LastLines found, last_lines_of_kept(read, output.end, options_.tail_lines));
    if (!found.all) tell(terminal_, dropped(found.block.from, word_of(output.name)));
    output.at = output.end = found.block.end();
    output.first = output.on_screen ? output.shown.pass(found.block.bytes, true)
                                    : std::move(found.block.bytes);
    return base::Done{};
  }

  Result<Block> read_block(const Output& output, std::int64_t from, std::int64_t bytes) {
    Transfer transfer(connection_, unwatched_, terminal_);
    CHECK_OK(transfer.begin(question(handle_, output, from, bytes)));
    Block block{from};
    for (;;) {
      TRY(const std::string piece, transfer.read());
      if (piece.empty()) break;
      block.bytes += piece;
    }
    TRY(const base::Json answer, transfer.end());
    if (output.file) return block;
    TRY(const auto ok, wire::from_json<wire::ReadOutputArgs::Ok>(answer));
    block.from = ok.from;
    return block;
  }

  wire::Connection& connection_;
  const Options& options_;
  const std::string handle_;
  const Ends unwatched_;
  const Ends& ends_;
  const Terminal& terminal_;
  std::deque<Output> outputs_;
};

}  // namespace

Result<std::deque<Output>> outputs_to_show(wire::Connection& connection, const Options& options,
                                           const Ends& ends, const Terminal& terminal) {
  return Beginning(connection, options, ends, terminal).find();
}

}  // namespace cli
