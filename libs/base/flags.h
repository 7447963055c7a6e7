#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/result.h"

namespace base {

struct FlagRule {
  bool required = false;
  std::string environment = {};           // Read when the flag is not given.
  std::vector<std::string> choices = {};  // Empty: any.
  std::int64_t at_least = INT64_MIN, at_most = INT64_MAX;
};

// One flag as a program that helps to type it needs to know it.
struct FlagShape {
  std::vector<std::string> names;  // With their dashes.
  bool takes_value = true;
  std::vector<std::string> choices = {};  // Empty: any.
};

// The flags of one program, or of one of its commands: a table of name, help and the field that is
// set, whose value beforehand is the default that the help shows.
//
//   Flags flags("sandfleet-controller", "Keeps Sandbox resources and E2B sandboxes in step.");
//   flags.text("--manifests", options.manifests, "folder of YAML to watch");
//   if (auto exit_code = flags.parse(argc, argv)) return *exit_code;
class Flags {
 public:
  Flags(std::string program, std::string about);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // A name without leading dashes is positional.
  void text(const std::string& name, std::string& field, const std::string& help,
            const FlagRule& rule = {});
  void texts(const std::string& name, std::vector<std::string>& field, const std::string& help,
             const FlagRule& rule = {});
  void number(const std::string& name, std::int64_t& field, const std::string& help,
              const FlagRule& rule = {});
  void flag(const std::string& name, bool& field, const std::string& help);

  // A command of its own, `program NAME ...`; `run` gives the exit code when it was chosen.
  Flags& command(const std::string& name, const std::string& about, std::function<int()> run);

  // Nothing: go on (only when no command was chosen). A number: exit with it. --help and --version
  // exit 0; what cannot be read is named on stderr with what to do, exit 2.
  std::optional<int> parse(int argc, const char* const* argv);
  // Those with dashes that were declared so far, in that order.
  const std::vector<FlagShape>& shapes() const;
  // The same for what only the program knows to be wrong.
  int refuse(const std::string& why) const;
  std::string help() const;  // What --help prints; of a command, after the program's name.

 private:
  struct State;
  explicit Flags(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace base
