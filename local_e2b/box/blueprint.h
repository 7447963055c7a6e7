#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/json.h"
#include "libs/base/result.h"
#include "local_e2b/box/uid_ranges.h"

// What the server tells the builder, and how the builder's steps are run and reported.
namespace local_e2b {

struct Blueprint {
  std::string id;
  std::filesystem::path folder;
  std::filesystem::path cgroup;  // Empty: it gets none.
  std::filesystem::path executor;
  std::filesystem::path etc;  // The copy of /etc that it starts from.
  bool executor_baked_in = false;
  std::string executor_digest = {};  // Of one that is baked in: noted beside it.
  std::vector<std::filesystem::path> extra_lowers;
  BoxIds ids;
  pid_t server_pid = 0;
  std::optional<std::size_t> descriptors = {};
  std::string fail_at;

  bool operator==(const Blueprint&) const = default;
};
base::Json to_json(const Blueprint& plan);
base::Result<Blueprint> blueprint_from_json(const base::Json& json);

// A folder of the host that a box sees through an overlay of its own.
struct Overlay {
  std::filesystem::path source;  // On the host.
  std::filesystem::path target;  // In the box, relative to its root.
  bool operator==(const Overlay&) const = default;
};
// The copy of /etc, /usr and /opt, what the host keeps beside /usr instead of inside it, and the
// extra ones; only folders that are there.
std::vector<Overlay> overlays_of(const Blueprint& plan);
inline constexpr std::size_t kEtcLayer = 0;  // Its number among them.

// Why a folder may not be shown to boxes; nothing when it may.
std::optional<std::string> objection_to_lower(const std::filesystem::path& lower,
                                              const std::filesystem::path& state);

template <typename Context>
struct Step {
  const char* name;
  base::Result<base::Done> (*run)(Context&);
};

struct StepFailure {
  std::string step, message;
};
base::Json to_json(const StepFailure& failure);

// Runs them in order until one fails; `fail_at` names one that fails without being run.
template <typename Context, std::size_t kCount>
std::optional<StepFailure> run_steps(const Step<Context> (&steps)[kCount], Context& context,
                                     const std::string& fail_at) {
  for (const Step<Context>& step : steps) {
    if (fail_at == step.name) return StepFailure{step.name, "told to fail here"};
    if (auto done = step.run(context); !done) return StepFailure{step.name, done.error().message};
  }
  return std::nullopt;
}

template <typename Context, std::size_t kCount>
void add_names(const Step<Context> (&steps)[kCount], std::vector<std::string>& names) {
  for (const Step<Context>& step : steps) names.emplace_back(step.name);
}

}  // namespace local_e2b
