#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/wire/frames/search_operations.h"

// What ripgrep says, record by record, in memory that does not grow with it.
namespace executor {

struct Record {
  std::string bytes;
  bool cut = false;  // It is longer than may be: these are its last bytes.
  std::string head;  // Of one that is cut: its first ones.
};

class Records {
 public:
  static constexpr std::size_t kBytesMax = 1u << 20;
  static constexpr std::size_t kHeadBytes = 64, kTailBytes = 64u << 10;

  explicit Records(char separator) : separator_(separator) {}
  // Those that these bytes complete.
  std::vector<Record> add(std::string_view bytes);

 private:
  void grow(std::string_view bytes);

  char separator_;
  Record record_;
};

// A path as `rg --files ./` names it, by the folder that it ran in.
std::string path_of(std::string_view told);

// The records of `rg --json`.
class GrepRecords {
 public:
  explicit GrepRecords(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}
  // The line that it tells of, if it does. That of one that is cut has no text.
  std::optional<wire::SearchLine> read(const Record& record);

 private:
  std::optional<wire::SearchLine> read_cut(const Record& record) const;

  std::size_t line_bytes_max_;
  std::string path_;  // Of the file at hand.
};

}  // namespace executor
