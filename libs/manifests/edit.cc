#include "libs/manifests/edit.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/manifests/folder.h"
#include "libs/yaml/reader.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

base::Error refuse(const std::string& pointer, const std::string& why) {
  return base::error(ErrorCode::kInvalid, "cannot edit ", yaml::field_of(pointer),
                     " in place: ", why, "; edit the file by hand");
}

// Plain where plain text reads back as the same text, else in double quotes.
std::string written(const Json& value) {
  if (!value.is_string()) return base::to_text(value);
  const auto& text = value.get_ref<const std::string&>();
  const bool word = !text.empty() && std::ranges::all_of(text, [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) || letter == '-' || letter == '_';
  });
  const auto plain = yaml::resolve_plain_scalar(text);
  const bool safe = word && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
  return safe && plain && *plain == value ? text : base::to_text(value);
}

std::size_t line_end(std::string_view text, std::size_t from) {
  const std::size_t end = text.find('\n', from);
  return end == std::string_view::npos ? text.size() : end;
}

// Where a quoted scalar that begins at `from` ends, within its line.
std::optional<std::size_t> quoted_end(std::string_view text, std::size_t from) {
  const char quote = text[from];
  const std::size_t limit = line_end(text, from);
  for (std::size_t at = from + 1; at < limit; ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
      continue;
    }
    if (text[at] != quote) continue;
    if (quote == '\'' && at + 1 < limit && text[at + 1] == '\'') {
      ++at;
      continue;
    }
    return at + 1;
  }
  return std::nullopt;
}

// Where a plain scalar ends: at a comment, at the end of its line, or, in a flow collection, at
// what ends an item there.
std::size_t plain_end(std::string_view text, std::size_t from, bool in_flow) {
  std::size_t end = from;
  const std::size_t limit = line_end(text, from);
  for (std::size_t at = from; at < limit; ++at) {
    const bool comment =
        text[at] == '#' && at > from && (text[at - 1] == ' ' || text[at - 1] == '\t');
    if (comment || (in_flow && std::string_view(",]}").find(text[at]) != std::string_view::npos))
      break;
    if (text[at] != ' ' && text[at] != '\t' && text[at] != '\r') end = at + 1;
  }
  return end;
}

Result<std::string> replace(std::string_view text, const std::string& pointer, std::size_t from,
                            bool in_flow, const Json& value) {
  if (from >= text.size() || text[from] == '\n') return refuse(pointer, "its value is empty");
  const char first = text[from];
  if (first == '&' || first == '!') return refuse(pointer, "it has an anchor or a tag");
  if (first == '*') return refuse(pointer, "it is an alias");
  if (first == '|' || first == '>') return refuse(pointer, "it is a block of text");
  if (first == '"' || first == '\'') {
    const auto end = quoted_end(text, from);
    if (!end) return refuse(pointer, "it stands on several lines");
    // Quotes stay quotes, so that JSON stays JSON.
    return std::string(text.substr(0, from)) + base::to_text(value) +
           std::string(text.substr(*end));
  }
  const std::size_t end = plain_end(text, from, in_flow);
  return std::string(text.substr(0, from)) + written(value) + std::string(text.substr(end));
}

// A new first line of the block mapping at `parent`.
Result<std::string> insert(std::string_view text, const yaml::Document& document,
                           const std::string& parent, const std::string& member,
                           const Json& value) {
  const std::string pointer = yaml::pointer_to(parent, member);
  const Json::json_pointer place(parent);
  if (!document.json.contains(place) || !document.json.at(place).is_object())
    return refuse(pointer, "there is no mapping to add it to");
  const yaml::Position* first = nullptr;
  for (const auto& [name, inner] : document.json.at(place).items()) {
    const yaml::Position* key = document.positions.exact_key(yaml::pointer_to(parent, name));
    if (key && (!first || key->offset < first->offset)) first = key;
  }
  if (!first) return refuse(pointer, "the mapping is empty");
  const std::size_t line = first->offset - static_cast<std::size_t>(first->column - 1);
  const std::string_view indent = text.substr(line, first->offset - line);
  if (indent.find_first_not_of(' ') != std::string_view::npos)
    return refuse(pointer, "the mapping does not stand on lines of its own");
  const std::string_view rest = text.substr(line);
  const std::size_t end = line_end(text, line);
  const char* newline = end > line && end < text.size() && text[end - 1] == '\r' ? "\r\n" : "\n";
  return std::string(text.substr(0, line)) + std::string(indent) + member + ": " + written(value) +
         newline + std::string(rest);
}

const yaml::Document* numbered(const yaml::File& file, int number) {
  for (const yaml::Document& document : file.documents)
    if (document.number == number) return &document;
  return nullptr;
}

// Whether `after` is `before` with that one value changed, by reading both.
bool differs_only_there(const yaml::File& before, const yaml::File& after, int number,
                        const std::string& pointer, const Json& value) {
  if (!after.problems.empty() || before.documents.size() != after.documents.size()) return false;
  for (std::size_t index = 0; index < before.documents.size(); ++index) {
    Json wanted = before.documents[index].json;
    if (before.documents[index].number == number) wanted[Json::json_pointer(pointer)] = value;
    if (wanted != after.documents[index].json) return false;
  }
  return true;
}

}  // namespace

Result<std::string> edit_scalar(std::string_view text, int number,
                                const std::vector<std::string>& path, const Json& value) {
  if (path.empty() || value.is_structured())
    return base::error(ErrorCode::kInvalid, "only one scalar can be edited in place");
  const yaml::File before = yaml::read(text, "the manifest");
  if (!before.problems.empty())
    return base::error(ErrorCode::kInvalid, to_text(before.problems[0]));
  const yaml::Document* document = numbered(before, number);
  if (!document)
    return base::error(ErrorCode::kInvalid, "the manifest has no document ",
                       std::to_string(number + 1));
  if (text.starts_with("\xEF\xBB\xBF"))
    return base::error(ErrorCode::kInvalid,
                       "the manifest begins with a byte order mark; remove it");
  std::string parent;
  for (std::size_t step = 0; step + 1 < path.size(); ++step)
    parent = yaml::pointer_to(parent, path[step]);
  const std::string pointer = yaml::pointer_to(parent, path.back());
  const Json::json_pointer place(pointer);
  const bool present = document->json.contains(place);
  if (present && document->json.at(place).is_structured())
    return refuse(pointer, "it is no single value");
  if (present && document->json.at(place) == value) return std::string(text);
  const yaml::Position* at = document->positions.exact(pointer);
  if (present && !at) return refuse(pointer, "it comes from an alias or a merge");
  const auto right = [&](const Result<std::string>& edited) {
    return edited &&
           differs_only_there(before, yaml::read(*edited, "the manifest"), number, pointer, value);
  };
  if (!present) {
    auto edited = insert(text, *document, parent, path.back(), value);
    if (!edited || right(edited)) return edited;
    return refuse(pointer, "the text around it would read differently");
  }
  // A plain value ends elsewhere in a flow collection; the reading tells which it was.
  auto in_block = replace(text, pointer, at->offset, false, value);
  if (!in_block || right(in_block)) return in_block;
  auto in_flow = replace(text, pointer, at->offset, true, value);
  if (right(in_flow)) return in_flow;
  return refuse(pointer, "the text around it would read differently");
}

Result<Done> edit_scalar_in_file(const fs::path& file, int document,
                                 const std::vector<std::string>& path, const Json& value) {
  std::error_code error;
  const fs::path target = fs::canonical(file, error);  // A link stays a link.
  if (error) return base::errno_error("edit", file, error.value());
  TRY(const auto before, base::read_file(target, yaml::kFileBytesMax));
  TRY(const auto after, edit_scalar(before, document, path, value));
  if (after == before) return Done{};
  struct stat found{};
  if (::stat(target.c_str(), &found) != 0) return base::errno_error("edit", target, errno);
  TRY(const auto now, base::read_file(target, yaml::kFileBytesMax));
  if (now != before)
    return base::error(ErrorCode::kConflict, target.string(), " changed meanwhile; try again");
  return base::write_file_atomically(target, after, found.st_mode & 07777);
}

Result<Done> apply_manifest(const fs::path& folder, const std::string& name, std::string_view text,
                            const std::string& space) {
  const fs::path extension = fs::path(name).extension();
  const bool right = extension == ".yaml" || extension == ".yml" || extension == ".json";
  if (!right || name.starts_with('.') || name.find('/') != std::string::npos)
    return base::error(ErrorCode::kInvalid, "\"", name,
                       "\" is no name of a manifest; it must end in .yaml, .yml or .json");
  const Reading wanted = read_manifest(text, name, space);
  if (!wanted.problems.empty()) return base::error(ErrorCode::kInvalid, to_text(wanted.problems));
  FolderReader reader(folder, space);
  TRY(const auto files, reader.read_all());
  bool has_secret = false;
  for (const Declared& object : wanted.objects) {
    has_secret = has_secret || object.kind == Kind::kSecret;
    for (const ReadFile& file : files)
      for (const Declared& other : file.reading->objects) {
        if (other.kind != object.kind || other.key != object.key) continue;
        if (file.name != name)
          return base::error(ErrorCode::kInvalid, name, ":", std::to_string(object.line), ": ",
                             std::string(to_word(object.kind)), " ", api::to_text(object.key),
                             " stands in ", file.name, " already; change it there");
        const auto forbidden = check_edit(object, other.object, text);
        if (!forbidden.empty()) return base::error(ErrorCode::kInvalid, to_text(forbidden));
      }
  }
  struct stat found{};
  const fs::path path = folder / name;
  const mode_t mode = ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777
                      : has_secret                      ? 0600
                                                        : 0644;
  return base::write_file_atomically(path, text, mode);
}

}  // namespace manifests
