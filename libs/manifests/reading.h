#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libs/api/sandbox.h"
#include "libs/yaml/problem.h"

namespace manifests {

enum class Kind { kSandbox, kProvider, kSecret };
std::string_view to_word(Kind kind);  // As in `kind:`.

// One object as its manifest asks for it: valid by the schema and by every rule that needs no
// earlier version, defaults filled in.
struct Declared {
  Kind kind = Kind::kSandbox;
  api::Key key;
  base::Json object;   // Of a Secret: never; see `secret`.
  std::string digest;  // Of the document as written, comments and layout apart.
  std::string file;
  int document = 0;  // Counted from 0 within the file.
  int line = 1;
  std::map<std::string, std::string> secret = {};  // Decoded; only in memory.
};

// What one file says. With any problem, nothing of the file counts: its last good version stays.
struct Reading {
  std::vector<Declared> objects = {};
  std::vector<yaml::Problem> problems = {};
};

// Takes out of an object's metadata what only servers write: an object that was printed may be
// declared again as it is.
void drop_written_by_servers(base::Json& metadata);

// `file` is the name that problems carry; `space` the namespace of objects that name none.
Reading read_manifest(std::string_view text, const std::string& file, const std::string& space);

// What the edit of an object breaks that the rules let nobody change. `before` is the whole object
// as it was; `text` the file that `after` was read from, where the positions come from.
std::vector<yaml::Problem> check_edit(const Declared& after, const base::Json& before,
                                      std::string_view text);

}  // namespace manifests
