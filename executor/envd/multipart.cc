#include "executor/envd/multipart.h"

#include <utility>

#include "libs/base/strings.h"

namespace executor {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kBoundaryBytesMax = 70;  // RFC 2046 §5.1.1.

base::Error malformed(std::string_view why) {
  return base::error(base::ErrorCode::kInvalid, "malformed multipart body: ", why);
}

// One `name=value` at `at`, which moves past it and its ';'. Quoted values may hold anything.
std::pair<std::string, std::string> take_parameter(std::string_view text, std::size_t& at) {
  std::string name, value;
  while (at < text.size() && text[at] != '=' && text[at] != ';') name += text[at++];
  if (at < text.size() && text[at] == '=') {
    ++at;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    if (at < text.size() && text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        // Browsers write a quote as %22; only the quote and the backslash itself are ever escaped.
        const bool escaped = text[at] == '\\' && at + 1 < text.size() &&
                             (text[at + 1] == '"' || text[at + 1] == '\\');
        if (escaped) ++at;
        value += text[at];
      }
      while (at < text.size() && text[at] != ';') ++at;
    } else {
      while (at < text.size() && text[at] != ';') value += text[at++];
      value = std::string(base::trim(value));
    }
  }
  if (at < text.size()) ++at;
  return {base::lower(base::trim(name)), value};
}

Multipart::PartBegins read_part_head(std::string_view head) {
  Multipart::PartBegins part;
  for (const std::string& line : base::split(head, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (!base::equal_ignoring_case(base::trim(line.substr(0, colon)), "content-disposition"))
      continue;
    const std::string value = line.substr(colon + 1);
    part.name = header_parameter(value, "name").value_or("");
    part.file_name = header_parameter(value, "filename");
    if (const auto extended = header_parameter(value, "filename*")) {
      const auto quote = extended->rfind('\'');
      if (quote != std::string::npos)
        part.file_name = base::percent_decode(extended->substr(quote + 1));
    }
  }
  return part;
}

}  // namespace

std::optional<std::string> header_parameter(std::string_view value, std::string_view name) {
  auto at = value.find(';');
  if (at == std::string_view::npos) return std::nullopt;
  for (++at; at < value.size();) {
    auto [key, text] = take_parameter(value, at);
    if (key == name) return text;
  }
  return std::nullopt;
}

std::optional<std::string> multipart_boundary(std::string_view content_type) {
  const std::string kind = base::lower(base::trim(content_type.substr(0, content_type.find(';'))));
  if (kind != "multipart/form-data") return std::nullopt;
  auto boundary = header_parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kBoundaryBytesMax) return std::nullopt;
  return boundary;
}

// The first boundary has no line before it; with this one all are alike.
Multipart::Multipart(std::string boundary)
    : delimiter_("\r\n--" + std::move(boundary)), held_(kLineEnd) {}

void Multipart::add(std::string_view bytes) { held_.append(bytes); }

base::Result<Multipart::Event> Multipart::next() {
  switch (state_) {
    case State::kPreamble:
      return read_preamble();
    case State::kAfterBoundary:
      return read_after_boundary();
    case State::kHead:
      return read_head();
    case State::kBody:
      return read_body();
    case State::kFinished:
      held_.clear();
      return Event(Finished{});
  }
  return Event(Finished{});
}

base::Result<Multipart::Event> Multipart::read_preamble() {
  const auto found = held_.find(delimiter_);
  if (found == std::string::npos) {
    if (held_.size() > kPartHeadBytesMax) return malformed("no boundary at its beginning");
    return Event(NeedsMore{});
  }
  held_.erase(0, found + delimiter_.size());
  state_ = State::kAfterBoundary;
  return read_after_boundary();
}

base::Result<Multipart::Event> Multipart::read_after_boundary() {
  const auto first = held_.find_first_not_of(" \t");
  if (first == std::string::npos || held_.size() < first + 2) {
    if (held_.size() > kPartHeadBytesMax) return malformed("a boundary without an end");
    return Event(NeedsMore{});
  }
  const std::string_view mark = std::string_view(held_).substr(first, 2);
  if (mark == "--") {
    state_ = State::kFinished;
    return Event(Finished{});
  }
  if (mark != kLineEnd) return malformed("a boundary is followed by other text");
  held_.erase(0, first);  // The line end stays: a part without headers begins with an empty line.
  state_ = State::kHead;
  return read_head();
}

base::Result<Multipart::Event> Multipart::read_head() {
  const auto end = held_.find("\r\n\r\n");
  if (end == std::string::npos || end > kPartHeadBytesMax) {
    if (held_.size() > kPartHeadBytesMax) return malformed("the head of a part is too long");
    return Event(NeedsMore{});
  }
  PartBegins part = read_part_head(std::string_view(held_).substr(0, end));
  held_.erase(0, end + 2);  // A part without a body has its boundary right after this line end.
  if (!held_.starts_with(delimiter_)) held_.erase(0, 2);
  state_ = State::kBody;
  return Event(std::move(part));
}

base::Result<Multipart::Event> Multipart::read_body() {
  const auto found = held_.find(delimiter_);
  if (found == 0) {
    held_.erase(0, delimiter_.size());
    state_ = State::kAfterBoundary;
    return Event(PartEnds{});
  }
  // Without a delimiter, the last bytes may be the beginning of one.
  std::size_t ready = found;
  if (found == std::string::npos)
    ready = held_.size() < delimiter_.size() ? 0 : held_.size() - delimiter_.size() + 1;
  if (ready == 0) return Event(NeedsMore{});
  PartBytes part{held_.substr(0, ready)};
  held_.erase(0, ready);
  return Event(std::move(part));
}

}  // namespace executor
