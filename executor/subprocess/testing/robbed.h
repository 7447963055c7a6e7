#pragma once

#include <memory>

#include "executor/subprocess/containment.h"

// For tests of leaks: each is first seen to fail while the mechanism that it is about is switched
// off. Nothing but tests links this.
namespace executor::testing {

struct Mechanisms {
  bool kill_of_the_tree = true;  // Else only the command's process group is killed.
  bool proof = true;             // Else the end of the command is believed to be that of all.
  bool end_with_us = true;       // Else what still lives is left behind when we are gone.
};

// `mechanisms` may be switched at any time.
std::unique_ptr<Containments> rob(aio::Executor executor,
                                  std::unique_ptr<Containments> containments,
                                  std::shared_ptr<const Mechanisms> mechanisms);

}  // namespace executor::testing
