#pragma once

#include <string_view>

// Where tests reach in. In the program nothing is left out and nobody is told; the tests link
// executor/filesystem/testing instead, which can leave a mechanism out, to show that what it is
// there for is missed then, and can act between two steps, where others may.
namespace executor {

enum class Mechanism {
  kOpenat2,    // Walks in one system call; without: name by name.
  kNoLinks,    // Walks that go through no link.
  kNoReplace,  // A new name that takes no other's place.
  kNameless,   // Files that are gathered without a name.
  kClearing,   // Stagings that are removed when they end.
  kSweep,      // Stagings that are removed at the next start.
  kTurns,      // Changes of one file that wait for one another.
  kLastLook,   // The version that is compared right before it is replaced.
  kFence,      // The permission mode.
};
bool left_out(Mechanism mechanism);

enum class Step {
  kLocated,     // A path has been resolved to where it leads.
  kStaged,      // All bytes are gathered.
  kPublishing,  // The next step makes it visible.
  kNamed,       // What was gathered has a name of its own; the next call makes it visible.
  kPublished,   // It is visible; what was gathered aside is not yet cleared.
  kRemoving,    // One more entry is about to go.
};
void reached(Step step, std::string_view path);

}  // namespace executor
