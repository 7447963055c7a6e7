#pragma once

#include <functional>
#include <string_view>

#include "executor/filesystem/seam.h"

namespace executor {

// While it lives, `mechanism` is left out.
class Without {
 public:
  explicit Without(Mechanism mechanism);
  ~Without();
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  Mechanism mechanism_;
};

// While it lives, `act` is called when `step` is first reached, or each time, in the thread that
// does.
class When {
 public:
  enum class Times { kOnce, kAlways };
  When(Step step, std::function<void(std::string_view path)> act, Times times = Times::kOnce);
  ~When();
  When(const When&) = delete;
  When& operator=(const When&) = delete;
};

}  // namespace executor
