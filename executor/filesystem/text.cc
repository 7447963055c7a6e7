#include "executor/filesystem/text.h"

#include "libs/base/utf8.h"

namespace executor {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// How much of a text tells its newlines, in UTF-16 units, as harnesses count.
constexpr std::size_t kNewlineSampleUnits = 4096;

std::string_view newline_sample(std::string_view text) {
  std::size_t units = 0, at = 0;
  while (at < text.size() && units < kNewlineSampleUnits) {
    const auto byte = static_cast<unsigned char>(text[at]);
    units += byte >= 0xF0 ? 2 : 1;
    at += byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
  }
  return text.substr(0, at);
}

bool ends_lines_with_crlf(std::string_view text) {
  const std::string_view sample = newline_sample(text);
  std::size_t crlf = 0, bare = 0;
  for (std::size_t at = sample.find('\n'); at != std::string_view::npos;
       at = sample.find('\n', at + 1))
    ++(at > 0 && sample[at - 1] == '\r' ? crlf : bare);
  return crlf > bare;
}

std::size_t count_matches(std::string_view text, std::string_view wanted) {
  std::size_t count = 0;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size()))
    ++count;
  return count;
}

std::string replace_matches(std::string_view text, std::string_view old_string,
                            std::string_view new_string) {
  std::string replaced;
  std::size_t from = 0;
  for (std::size_t at = text.find(old_string); at != std::string_view::npos;
       at = text.find(old_string, from)) {
    replaced.append(text, from, at - from).append(new_string);
    from = at + old_string.size();
  }
  return replaced.append(text, from);
}

}  // namespace

bool has_nul(std::string_view sample) { return sample.find('\0') != std::string_view::npos; }

std::string_view without_bom(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

std::string normalise_newlines(std::string_view text) {
  return replace_matches(text, "\r\n", "\n");
}

std::optional<std::string> diff_side(std::string_view stored, std::size_t other_bytes,
                                     std::size_t bytes_max) {
  if (stored.size() >= bytes_max || other_bytes >= bytes_max) return std::nullopt;
  if (has_nul(stored.substr(0, kNulSampleBytes)) || !base::is_utf8(stored)) return std::nullopt;
  return normalise_newlines(without_bom(stored));
}

FsResult<EditedText> edit_text(std::string_view stored, const TextEdit& edit,
                               std::size_t bytes_max) {
  if (has_nul(stored) || !base::is_utf8(stored))
    return fs_error(FsCode::kNotText, "only UTF-8 text without zero bytes can be edited");
  const std::string_view text = without_bom(stored);
  const std::string_view mark = stored.substr(0, stored.size() - text.size());
  const std::string old_string = normalise_newlines(edit.old_string);
  const std::string new_string = normalise_newlines(edit.new_string);

  EditedText edited;
  edited.before = normalise_newlines(text);
  if (!old_string.empty()) edited.replacements = count_matches(edited.before, old_string);
  if (edited.replacements == 0)
    return fs_error(FsCode::kEditNotFound, "the text to replace is not in the file");
  if (edited.replacements > 1 && !edit.replace_all)
    return fs_error(FsCode::kAmbiguousEdit, "the text to replace is in the file ",
                    std::to_string(edited.replacements), " times");
  const std::size_t kept = edited.before.size() - edited.replacements * old_string.size();
  if (kept > bytes_max || new_string.size() > (bytes_max - kept) / edited.replacements)
    return fs_error(FsCode::kTooLarge, "the edited file would be larger than ",
                    std::to_string(bytes_max), " bytes");
  edited.after = replace_matches(edited.before, old_string, new_string);
  edited.stored = mark;
  edited.stored +=
      ends_lines_with_crlf(text) ? replace_matches(edited.after, "\n", "\r\n") : edited.after;
  return edited;
}

}  // namespace executor
