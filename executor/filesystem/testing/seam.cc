#include "executor/filesystem/testing/seam.h"

#include <mutex>
#include <optional>
#include <set>

namespace executor {
namespace {

struct Watched {
  Step step;
  std::function<void(std::string_view)> act;
  When::Times times = When::Times::kOnce;
};

std::mutex mutex;
std::set<Mechanism> missing;
std::optional<Watched> watched;

}  // namespace

bool left_out(Mechanism mechanism) {
  const std::lock_guard lock(mutex);
  return missing.contains(mechanism);
}

void reached(Step step, std::string_view path) {
  std::function<void(std::string_view)> act;
  {
    const std::lock_guard lock(mutex);
    if (!watched || watched->step != step) return;
    act = watched->act;
    if (watched->times == When::Times::kOnce) watched.reset();
  }
  act(path);
}

Without::Without(Mechanism mechanism) : mechanism_(mechanism) {
  const std::lock_guard lock(mutex);
  missing.insert(mechanism_);
}
Without::~Without() {
  const std::lock_guard lock(mutex);
  missing.erase(mechanism_);
}

When::When(Step step, std::function<void(std::string_view path)> act, Times times) {
  const std::lock_guard lock(mutex);
  watched = Watched{step, std::move(act), times};
}
When::~When() {
  const std::lock_guard lock(mutex);
  watched.reset();
}

}  // namespace executor
