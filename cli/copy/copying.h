#pragma once

#include <string>

#include "cli/line/options.h"
#include "libs/base/result.h"

// What is to be copied where, as it was typed. Pure.
namespace cli {

// One side of a copy.
struct Side {
  bool inside = false;        // In a sandbox; else on this machine.
  std::string sandbox, path;  // [NAMESPACE/]NAME.
  bool stream() const { return !inside && path == "-"; }
  bool operator==(const Side&) const = default;
};
// NAME:PATH or NAMESPACE/NAME:PATH is inside. What begins with / or . is here, whatever it holds.
Side read_side(const std::string& word);

struct Copying {
  Side from, to;
  const Side& inside() const { return from.inside ? from : to; }
};
// kInvalid: there are not two words of which one is inside.
base::Result<Copying> read_copying(const Options& options);

// As cp(1) would have it: where the target is a folder that is there, the copy stands in it by its
// own name; "dir/." means what is in it.
std::string arrival_of(const std::string& from, const std::string& to, bool to_is_folder);

}  // namespace cli
