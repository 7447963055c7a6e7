#include "executor/sessions/process_streams.h"

#include <algorithm>
#include <utility>

#include "executor/sessions/process_words.h"

namespace executor {

// One stream and the end of a process that it carries.
struct ProcessStreams::Tap {
  Tap(const aio::Executor& executor, Key key, std::shared_ptr<Subprocess> process, ProcessEnd end)
      : key(std::move(key)), process(std::move(process)), end(end), moved(executor) {}

  void tell() {
    ++news;
    moved.notify_all();
  }
  // Until there is news beyond what was `seen`. One wait, as in Call::until_given_up().
  static aio::Task<> wait(std::shared_ptr<Tap> tap, std::uint64_t seen) {
    if (tap->news == seen) co_await tap->moved.wait();
  }

  const Key key;
  const std::shared_ptr<Subprocess> process;
  const ProcessEnd end;
  std::int64_t begin = 0;  // Of the stream, in what it carries.
  std::int64_t at = 0;     // How far an output was handed on.
  bool taken = false;      // By a newer one.
  bool ended = false;      // Nothing follows on what was handed on.
  std::uint64_t news = 0;
  aio::Condition moved;
};

namespace {

const std::shared_ptr<ProcessOutput>& output_of(const Subprocess& process, ProcessEnd end) {
  return end == ProcessEnd::kOut ? process.out() : process.errors();
}

void put(ProcessInput& input, const wire::Piece& piece) {
  input.append(piece.bytes);
  // One that broke off has not ended: whoever attaches may go on with it.
  if (piece.end && !piece.error) static_cast<void>(input.end_at(input.arrived()));
}

aio::Task<> until_over(std::shared_ptr<Subprocess> process) { co_await process->join(); }

}  // namespace

std::shared_ptr<ProcessStreams::Tap> ProcessStreams::begin(
    const std::shared_ptr<Subprocess>& process, ProcessEnd end, Key key) {
  for (const auto& [other, tap] : taps_)
    if (tap->process == process && tap->end == end && !tap->taken) take_over(*tap);
  auto tap = std::make_shared<Tap>(executor_, key, process, end);
  taps_.emplace(std::move(key), tap);
  return tap;
}

// What its peer was told to have arrived has arrived, and what its peer has is not sent to another.
void ProcessStreams::take_over(Tap& older) {
  older.taken = true;
  older.tell();
  const auto& [session, stream] = older.key;
  wire::ServedSession* served = links_.session(session);
  if (!served) return;
  if (older.end == ProcessEnd::kInput) {
    while (const auto piece = served->take(stream)) put(*older.process->input(), *piece);
    served->stop(stream);
  } else {
    ProcessOutput& output = *output_of(*older.process, older.end);
    if (const auto has = served->acknowledged(stream))
      static_cast<void>(output.acknowledge(older.begin + *has));
    served->end(stream, wire::failure(wire::FailureCode::kConflict,
                                      "a newer attach has this end of the process"));
  }
  links_.wake();
}

void ProcessStreams::carry_from(const std::shared_ptr<Subprocess>& process, ProcessEnd end, Key key,
                                std::int64_t offset) {
  const auto tap = begin(process, end, std::move(key));
  tap->begin = tap->at = offset;
  tasks_.spawn(follow(*this, tap, output_of(*process, end)));
}

void ProcessStreams::carry_whole(const std::shared_ptr<Subprocess>& process, ProcessEnd end,
                                 Key key) {
  carry_from(process, end, std::move(key), 0);
}

wire::OutputAt ProcessStreams::carry_output(const std::shared_ptr<Subprocess>& process,
                                            ProcessEnd end, Key key, std::int64_t from) {
  const std::int64_t offset = std::max(from, output_of(*process, end)->begin());
  carry_from(process, end, std::move(key), offset);
  return {offset, from < offset};
}

std::int64_t ProcessStreams::carry_input(const std::shared_ptr<Subprocess>& process, Key key) {
  const auto tap = begin(process, ProcessEnd::kInput, std::move(key));
  tasks_.spawn(follow(*this, tap, process->input()));
  return process->input()->arrived();
}

void ProcessStreams::move(const Key& key) {
  if (const auto tap = taps_.find(key); tap != taps_.end()) tap->second->tell();
}

void ProcessStreams::end(const std::string& session) {
  for (auto one = taps_.lower_bound({session, 0}); one != taps_.end(); ++one) {
    if (one->first.first != session) return;
    one->second->tell();
  }
}

ProcessStreams::Next ProcessStreams::pass_on(Tap& tap, ProcessOutput& output) {
  const auto& [session, stream] = tap.key;
  wire::ServedSession* served = links_.session(session);
  if (tap.taken || !served) return Next::kOver;
  const auto has = served->acknowledged(stream);
  if (!has) {  // Its peer has seen its end, or wants no more of it.
    output.hang_up();
    return Next::kOver;
  }
  static_cast<void>(output.acknowledge(tap.begin + *has));
  const std::size_t room = served->room(stream);
  if (tap.ended || room == 0) return Next::kPeer;
  const auto piece = output.read(tap.at, std::min(room, wire::kChunkBytes));
  if (!piece) {
    served->end(stream, failure_of(piece.error()));
    tap.ended = true;
  } else if (piece->next == tap.at && !piece->ended) {
    return Next::kProcess;
  } else {
    served->skip(stream, piece->begin - tap.at);
    served->append(stream, piece->bytes);
    tap.at = piece->next;
    tap.ended = piece->ended;
    if (tap.ended) served->end(stream);
  }
  links_.wake();
  return Next::kNothing;
}

aio::Task<> ProcessStreams::follow(ProcessStreams& streams, std::shared_ptr<Tap> tap,
                                   std::shared_ptr<ProcessOutput> output) {
  for (;;) {
    const std::uint64_t seen = tap->news;
    const Next next = streams.pass_on(*tap, *output);
    if (next == Next::kOver) break;
    if (next == Next::kPeer) co_await Tap::wait(tap, seen);
    if (next == Next::kProcess) co_await aio::race(output->wait_for(tap->at), Tap::wait(tap, seen));
  }
  streams.taps_.erase(tap->key);
}

ProcessStreams::Next ProcessStreams::take_in(Tap& tap, ProcessInput& input) {
  const auto& [session, stream] = tap.key;
  wire::ServedSession* served = links_.session(session);
  if (tap.taken || !served) return Next::kOver;
  if (input.ended() || input.unread()) {
    served->stop(stream);
    links_.wake();
    return Next::kOver;
  }
  const std::int64_t room = input.may_reach() - input.arrived();
  if (room <= 0) return Next::kProcess;
  const auto piece =
      served->take(stream, std::min(static_cast<std::size_t>(room), wire::kChunkBytes));
  if (!piece) return Next::kPeer;
  links_.wake();  // There may be credit to give.
  put(input, *piece);
  return piece->end ? Next::kOver : Next::kNothing;
}

aio::Task<> ProcessStreams::feed(ProcessStreams& streams, std::shared_ptr<Tap> tap,
                                 std::shared_ptr<ProcessInput> input) {
  for (;;) {
    const std::uint64_t seen = tap->news;
    const Next next = streams.take_in(*tap, *input);
    if (next == Next::kOver) co_return;
    if (next == Next::kPeer) co_await Tap::wait(tap, seen);
    if (next == Next::kProcess)
      co_await aio::race(input->wait_to_reach(input->arrived() + 1), Tap::wait(tap, seen));
  }
}

// A process that is gone reads no more, whether its stdin was ended or not.
aio::Task<> ProcessStreams::follow(ProcessStreams& streams, std::shared_ptr<Tap> tap,
                                   std::shared_ptr<ProcessInput> input) {
  const int first = co_await aio::race(feed(streams, tap, input), until_over(tap->process));
  wire::ServedSession* served = streams.links_.session(tap->key.first);
  if (first == 1 && served) {
    served->stop(tap->key.second);
    streams.links_.wake();
  }
  streams.taps_.erase(tap->key);
}

}  // namespace executor
