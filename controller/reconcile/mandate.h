#pragma once

#include <string>

#include "libs/base/clock.h"

namespace controller {

// Whether this process is the one that acts for a provider. Safe to ask from many threads.
class Mandate {
 public:
  virtual ~Mandate() = default;
  // To be asked right before whatever changes something: a process that was stopped for long finds
  // out here.
  virtual bool may_act(const std::string& provider) const = 0;
  // Since when it alone acts: others may have sent something before.
  virtual base::Moment since(const std::string& provider) const = 0;
};

// Of the only controller that there is.
class SoleMandate final : public Mandate {
 public:
  explicit SoleMandate(const base::Clock& clock) : began_(clock.now()) {}
  bool may_act(const std::string&) const override { return true; }
  base::Moment since(const std::string&) const override { return began_; }

 private:
  const base::Moment began_;
};

}  // namespace controller
