#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/json.h"
#include "libs/yaml/problem.h"

// YAML as Kubernetes reads it: YAML 1.1 words and numbers (yes, 0644, 1_000), timestamps as text,
// merge keys, keys once, then JSON.
namespace yaml {

inline constexpr std::size_t kFileBytesMax = 1 << 20;
inline constexpr int kDocumentsMax = 1000;  // In one file.
inline constexpr int kDepthMax = 64;
inline constexpr int kNodesMax =
    100'000;  // Of one document, aliases counted as what they stand for.

struct Position {
  int line = 0, column = 0;  // Counted from 1.
  std::size_t offset = 0;    // In bytes from the start of the text.
  bool operator==(const Position&) const = default;
};

// Where each value stands, by its JSON pointer.
class PositionMap {
 public:
  void set(const std::string& pointer, Position value) { values_[pointer] = value; }
  void set_key(const std::string& pointer, Position key) { keys_[pointer] = key; }
  // Of the value, or of the nearest thing around it that has one (a default, an aliased part).
  Position value(std::string pointer) const;
  // Of the key that names it; where there is none, as value().
  Position key(const std::string& pointer) const;
  const Position* exact(const std::string& pointer) const;
  const Position* exact_key(const std::string& pointer) const;

 private:
  std::map<std::string, Position> values_, keys_;
};

struct Document {
  int number = 0;  // Counted from 0 within the file; one without content is counted and left out.
  base::Json json;
  PositionMap positions;
};

struct File {
  std::vector<Document> documents = {};
  std::vector<Problem> problems = {};  // At most one: reading stops there.
};

File read(std::string_view text, const std::string& file);

// "/spec/env/0/name" as "spec.env[0].name".
std::string field_of(const std::string& pointer);
// One more step on a JSON pointer.
std::string pointer_to(const std::string& pointer, const std::string& member);
std::string pointer_to(const std::string& pointer, std::size_t index);

// What an unquoted word stands for.
base::Result<base::Json> resolve_plain_scalar(const std::string& word);

}  // namespace yaml
