#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "executor/filesystem/failure.h"

// What is text, and how an edit changes it. All of it is pure.
namespace executor {

// A zero byte in the first so many means that a file is not to be read as text.
inline constexpr std::size_t kNulSampleBytes = 8192;
// From this length on a text is not handed out for showing a difference.
inline constexpr std::size_t kDiffBytesMax = 10u << 20;

bool has_nul(std::string_view sample);
std::string_view without_bom(std::string_view text);    // U+FEFF at the beginning.
std::string normalise_newlines(std::string_view text);  // CRLF to LF; a lone CR stays.

// What the stored bytes are as a text to show; nothing when they are none, or when they or
// `other_bytes`, the length on the other side of the difference, come to `bytes_max`.
std::optional<std::string> diff_side(std::string_view stored, std::size_t other_bytes,
                                     std::size_t bytes_max);

struct TextEdit {
  std::string old_string, new_string;  // Each taken as it is written: no patterns.
  bool replace_all = false;
};
struct EditedText {
  std::string stored;         // With the newlines and the byte order mark of before.
  std::string before, after;  // Without them.
  std::size_t replacements = 0;
};
// Matches are found on text with LF newlines, and do not overlap. kNotText, kEditNotFound,
// kAmbiguousEdit; kTooLarge when the result would be longer than `bytes_max`.
FsResult<EditedText> edit_text(std::string_view stored, const TextEdit& edit,
                               std::size_t bytes_max);

}  // namespace executor
