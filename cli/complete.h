#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/line/options.h"
#include "cli/resources/backend.h"

// What may come next on a command line, for kubectl: it runs kubectl_complete-sandfleet with the
// words so far, the last one unfinished, and reads choices and a directive.
namespace cli {

struct Completion {
  std::vector<std::string> choices = {};
  bool files = false;  // The shell's own file names instead.
  bool operator==(const Completion&) const = default;
};

// The names that are there, of what the options so far say.
using FindNames = std::function<std::vector<std::string>(const Options&, Subject)>;

// Whether a program that was called so is to complete words.
bool completes(const std::string& path);
Completion complete(const std::vector<std::string>& words, const FindNames& find_names);
std::string to_text(const Completion& completion);

// For find_names, where the resources are; none when they cannot be had.
std::vector<std::string> names_in(Backend& backend, const Options& options, Subject subject);

}  // namespace cli
