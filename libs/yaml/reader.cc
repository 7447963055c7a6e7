#include "libs/yaml/reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <memory>
#include <sstream>
#include <utility>

#include "libs/base/crypto.h"

namespace yaml {

using base::Json;

namespace {

// The first byte that is not part of well-formed UTF-8, or the size.
std::size_t first_bad_byte(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || at + length > text.size() || lead == 0) return at;
    for (std::size_t next = 1; next < length; ++next)
      if ((static_cast<unsigned char>(text[at + next]) & 0xC0) != 0x80) return at;
    const auto second = length > 1 ? static_cast<unsigned char>(text[at + 1]) : 0;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F))
      return at;
    at += length;
  }
  return at;
}

Position position_of(const YAML::Mark& mark) {
  return {mark.line + 1, mark.column + 1, static_cast<std::size_t>(std::max(mark.pos, 0))};
}

struct Refusal {
  Position position;
  std::string pointer, rule, cure;
};

// Builds one document's JSON from the parser's events. A refusal is thrown, and caught in
// read: the parser offers no other way to stop.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(Document& document) : document_(document) {}
  bool empty() const { return empty_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    scalar(mark, anchor, nullptr, "");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool names_member = at_key();
    Json value = scalar_value(mark, tag, text);
    if (names_member && tag == "?" && text == "<<") value = kMergeKey;
    scalar(mark, anchor, std::move(value), text);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end())
      refuse(mark, "an alias stands inside what it stands for", "write the value out");
    count(mark, known->second.nodes);
    if (at_key()) {
      if (!known->second.value.is_string()) refuse(mark, "a key must be text", "write the key out");
      start_member(mark, known->second.value.get<std::string>());
      return;
    }
    place(mark, known->second.value);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Json::object());
  }
  void OnMapEnd() override {
    merge(frames_.back());
    close();
  }

 private:
  static constexpr const char* kMergeKey = "<<";

  struct Frame {
    Json value;
    std::string pointer;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    int nodes_before = 0;
    std::optional<std::string> member = {};  // The key whose value comes next.
    bool merging = false;                    // That key is a plain <<.
    std::vector<Json> merges = {};
  };
  struct Anchored {
    Json value;
    int nodes = 1;
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string rule, std::string cure) {
    throw Refusal{position_of(mark), frames_.empty() ? "" : next_pointer(), std::move(rule),
                  std::move(cure)};
  }

  bool at_key() const {
    return !frames_.empty() && frames_.back().value.is_object() && !frames_.back().member;
  }

  std::string next_pointer() const {
    if (frames_.empty()) return "";
    const Frame& frame = frames_.back();
    if (frame.value.is_array()) return pointer_to(frame.pointer, frame.value.size());
    return frame.member ? pointer_to(frame.pointer, *frame.member) : frame.pointer;
  }

  void count(const YAML::Mark& mark, int nodes) {
    nodes_ += nodes;
    if (nodes_ > kNodesMax)
      refuse(mark,
             "the document has more than " + std::to_string(kNodesMax) +
                 " values, aliases counted as what they stand for",
             "split it, and write few aliases");
  }

  Json scalar_value(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return text;
    if (tag == "?" || tag.empty()) {
      auto plain = resolve_plain_scalar(text);
      if (!plain) refuse(mark, plain.error().message, "quote it if text is meant");
      return *std::move(plain);
    }
    return tagged_value(mark, tag, text);
  }

  Json tagged_value(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    const auto plain = resolve_plain_scalar(text);
    const auto wants = [&](const char* name) {
      return tag == std::string("tag:yaml.org,2002:") + name;
    };
    if (wants("binary")) {
      const auto bytes = base::from_base64(text);
      if (bytes) return *bytes;
    }
    if (plain &&
        ((wants("int") && plain->is_number_integer()) || (wants("float") && plain->is_number()) ||
         (wants("bool") && plain->is_boolean()) || (wants("null") && plain->is_null())))
      return *plain;
    refuse(mark, "the tag " + tag + " does not fit here", "remove the tag");
  }

  void scalar(const YAML::Mark& mark, YAML::anchor_t anchor, Json value, const std::string& text) {
    if (frames_.empty() && value.is_null()) return;  // A document without content.
    count(mark, 1);
    if (at_key()) {
      if (value.is_null()) refuse(mark, "a key must be text", "write the key in quotes");
      // JSON's keys are texts: yes: and 1: become "true" and "1", as in Kubernetes.
      const std::string key = value.is_string() ? value.get<std::string>() : base::to_text(value);
      if (anchor != 0) anchors_[anchor] = {key, 1};
      start_member(mark, key, value.is_string() && value == kMergeKey && text == kMergeKey);
      return;
    }
    if (anchor != 0) anchors_[anchor] = {value, 1};
    place(mark, std::move(value));
  }

  void start_member(const YAML::Mark& mark, const std::string& key, bool merging = false) {
    Frame& frame = frames_.back();
    const std::string pointer = pointer_to(frame.pointer, key);
    if (frame.value.contains(key)) {
      frame.member = key;
      refuse(mark, "the key stands twice in one mapping", "keep one of the two");
    }
    frame.member = key;
    frame.merging = merging;
    document_.positions.set_key(pointer, position_of(mark));
  }

  void place(const YAML::Mark& mark, Json value) {
    empty_ = false;
    document_.positions.set(next_pointer(), position_of(mark));
    attach(std::move(value));
  }

  void attach(Json value) {
    if (frames_.empty()) {
      document_.json = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.value.is_array()) {
      frame.value.push_back(std::move(value));
      return;
    }
    if (frame.merging)
      frame.merges.push_back(std::move(value));
    else
      frame.value[*frame.member] = std::move(value);
    frame.member.reset();
    frame.merging = false;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Json value) {
    if (at_key()) refuse(mark, "a key must be text", "write a plain key");
    if (tag != "?" && tag != "!" && !tag.empty() && tag != "tag:yaml.org,2002:map" &&
        tag != "tag:yaml.org,2002:seq")
      refuse(mark, "the tag " + tag + " does not fit here", "remove the tag");
    if (frames_.size() >= kDepthMax)
      refuse(mark, "values nest deeper than " + std::to_string(kDepthMax), "flatten the document");
    count(mark, 1);
    empty_ = false;
    const std::string pointer = next_pointer();
    document_.positions.set(pointer, position_of(mark));
    frames_.push_back({std::move(value), pointer, mark, anchor, nodes_ - 1});
  }

  void close() {
    Frame done = std::move(frames_.back());
    frames_.pop_back();
    if (done.anchor != 0) anchors_[done.anchor] = {done.value, nodes_ - done.nodes_before};
    attach(std::move(done.value));
  }

  // `<<`: members of the mappings given there that the mapping itself does not have.
  void merge(Frame& frame) {
    for (const Json& merged : frame.merges) {
      const Json sources = merged.is_array() ? merged : Json::array({merged});
      for (const Json& source : sources) {
        if (!source.is_object())
          refuse(frame.mark, "<< must stand for a mapping or a list of mappings",
                 "write the fields out");
        for (const auto& [key, value] : source.items())
          if (!frame.value.contains(key)) frame.value[key] = value;
      }
    }
  }

  Document& document_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  int nodes_ = 0;
  bool empty_ = true;
};

Problem whole_file(const std::string& file, std::string rule, std::string cure) {
  return {file, 0, 0, "", std::move(rule), std::move(cure)};
}

std::optional<Problem> refuse_unread(std::string_view text, const std::string& file) {
  if (text.size() > kFileBytesMax)
    return whole_file(file,
                      "the file has " + std::to_string(text.size()) + " bytes, more than the " +
                          std::to_string(kFileBytesMax) + " allowed",
                      "split it");
  const std::size_t bad = first_bad_byte(text);
  if (bad == text.size()) return std::nullopt;
  const std::string_view before = text.substr(0, bad);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const auto column = bad - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return Problem{file,
                 static_cast<int>(line),
                 static_cast<int>(column),
                 "",
                 "the file is not UTF-8 text here",
                 "save it as UTF-8"};
}

std::string cure_of(const std::string& message) {
  if (message.find("tab") != std::string::npos) return "indent with spaces";
  if (message.find("alias") != std::string::npos || message.find("anchor") != std::string::npos)
    return "define the anchor above its first use";
  return "check indentation, colons and quotes around here";
}

}  // namespace

Position PositionMap::value(std::string pointer) const {
  for (;;) {
    if (const Position* found = exact(pointer)) return *found;
    if (const auto key = keys_.find(pointer); key != keys_.end()) return key->second;
    const std::size_t slash = pointer.rfind('/');
    if (slash == std::string::npos) return {1, 1};
    pointer.resize(slash);
  }
}

Position PositionMap::key(const std::string& pointer) const {
  const Position* found = exact_key(pointer);
  return found ? *found : value(pointer);
}

const Position* PositionMap::exact(const std::string& pointer) const {
  const auto found = values_.find(pointer);
  return found == values_.end() ? nullptr : &found->second;
}

const Position* PositionMap::exact_key(const std::string& pointer) const {
  const auto found = keys_.find(pointer);
  return found == keys_.end() ? nullptr : &found->second;
}

std::string pointer_to(const std::string& pointer, const std::string& member) {
  std::string grown = pointer + "/";
  for (const char letter : member)
    grown += letter == '~' ? "~0" : letter == '/' ? "~1" : std::string(1, letter);
  return grown;
}

std::string pointer_to(const std::string& pointer, std::size_t index) {
  return pointer + "/" + std::to_string(index);
}

File read(std::string_view text, const std::string& file) {
  File read;
  if (auto refused = refuse_unread(text, file)) {
    read.problems.push_back(*std::move(refused));
    return read;
  }
  try {
    std::istringstream input{std::string(text)};
    YAML::Parser parser(input);
    for (int number = 0;; ++number) {
      Document document{number};
      Builder builder(document);
      if (!parser.HandleNextDocument(builder)) return read;
      if (number >= kDocumentsMax) {
        read.problems.push_back(whole_file(
            file, "the file has more than " + std::to_string(kDocumentsMax) + " documents",
            "split it"));
        return read;
      }
      if (!builder.empty()) read.documents.push_back(std::move(document));
    }
  } catch (const Refusal& refusal) {
    read.problems.push_back({file, refusal.position.line, refusal.position.column,
                             field_of(refusal.pointer), refusal.rule, refusal.cure});
  } catch (const YAML::Exception& exception) {
    const Position at = position_of(exception.mark);
    read.problems.push_back({file, at.line, at.column, "", "this is not YAML: " + exception.msg,
                             cure_of(exception.msg)});
  }
  return read;
}

}  // namespace yaml
