#include "executor/options.h"
#include "executor/programs.h"
#include "libs/base/descriptors.h"

// sandfleet-executor is one static file with two lives inside a sandbox.
//   --envd: init -> the daemon that speaks E2B's envd API (envd/), which users' SDKs talk to
//   run:    supervisor -> the executor itself (admin/), which Sandfleet's controller talks to
// Both have a parent that starts the serving child again when it dies (init/). A third life is for
// measuring, outside of sandboxes:
//   stand-in: both of the above for thousands of sandboxes in which nothing runs (stand_in/)
int main(int argc, char** argv) {
  base::hold_standard_descriptors();
  return executor::parse_and_run(argc, argv);
}
