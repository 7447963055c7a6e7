#pragma once

#include <string>

namespace controller {

// The attach service, with all that it is made of.
class Entrance {
 public:
  virtual ~Entrance() = default;
  // Once the store is complete: what is not in it is told to be nowhere.
  virtual void open() = 0;
  // Why nobody is let in; empty when they are.
  virtual std::string trouble() const = 0;
};

}  // namespace controller
