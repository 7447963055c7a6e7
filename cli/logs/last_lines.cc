#include "cli/logs/last_lines.h"

#include <algorithm>
#include <utility>

#include "cli/logs/line_tail.h"
#include "libs/wire/frames/process_operations.h"

namespace cli {
namespace {

constexpr std::int64_t kBlockBytes = 64 << 10;

// As much again as there is, so that few readings find even the first of many lines.
std::int64_t bytes_before(const Block& block) {
  const auto more =
      std::clamp(static_cast<std::int64_t>(block.bytes.size()), kBlockBytes, wire::kReadBytesMax);
  return std::min(more, block.from);
}

}  // namespace

base::Result<LastLines> last_lines_of_kept(const ReadBlock& read, std::int64_t known,
                                           std::int64_t lines) {
  TRY(Block block, read(std::max<std::int64_t>(0, known - kBlockBytes), wire::kReadBytesMax));
  LineTail tail(block.end(), lines);
  tail.look(block.bytes);
  bool more = block.from > 0;
  while (!tail.found() && more) {
    const std::int64_t from = block.from - bytes_before(block);
    TRY(Block before, read(from, block.from - from));
    more = before.from == from && from > 0;
    if (before.from >= block.from || before.end() < block.from) break;
    before.bytes.resize(static_cast<std::size_t>(block.from - before.from));
    tail.look(before.bytes);
    block = {before.from, std::move(before.bytes) + block.bytes};
  }
  const std::int64_t begin = tail.found().value_or(block.from);
  block.bytes.erase(0, static_cast<std::size_t>(begin - block.from));
  block.from = begin;
  return LastLines{std::move(block), tail.found().has_value()};
}

base::Result<std::int64_t> last_lines_in_file(const ReadBlock& read, std::int64_t size,
                                              std::int64_t lines) {
  LineTail tail(size, lines);
  while (!tail.found()) {
    const std::int64_t from = std::max<std::int64_t>(0, tail.at() - kBlockBytes);
    TRY(const Block block, read(from, tail.at() - from));
    if (block.from != from || block.end() != tail.at())
      return base::error(base::ErrorCode::kUnavailable, "it ends at ", std::to_string(block.end()),
                         ", and is to have ", std::to_string(size), " bytes");
    tail.look(block.bytes);
  }
  return *tail.found();
}

}  // namespace cli
