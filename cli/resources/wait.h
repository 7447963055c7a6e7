#pragma once

#include <optional>
#include <string>

#include "libs/api/sandbox.h"

namespace cli {

// Whether what was asked of a Sandbox is so.
struct Progress {
  enum class Verdict { kReached, kNotYet, kStalled, kRefused, kEnded };
  Verdict verdict = Verdict::kNotYet;
  std::string words;   // What is still missing, or why it never will be.
  bool heard = false;  // The controller has spoken of what was asked.
  bool operator==(const Progress&) const = default;
};

// Whatever is asked of it, it will not run again. One that ends because it idled may yet be spared
// until it is gone.
bool has_ended_for_good(const api::Sandbox& sandbox);

// The controller has taken the wish, seen this generation, and the sandbox is as wished.
Progress progress_to(api::DesiredState wished, const std::optional<api::Sandbox>& sandbox);

// The same of a whole spec.
Progress progress_to(const api::SandboxSpec& wished, const std::optional<api::Sandbox>& sandbox);

// The object of that UID is no more; another of its name does not count. `refusal` is why the
// controller will not delete it, if it has said so.
Progress progress_to_absence(const std::string& uid, const std::optional<api::Sandbox>& sandbox,
                             const std::optional<std::string>& refusal);

}  // namespace cli
