#include "executor/options.h"
#include "executor/programs.h"

// sandfleet-executor is one static file with two lives inside a sandbox.
//   --envd: init -> the daemon that speaks E2B's envd API (envd/), which users' SDKs talk to
//   run:    supervisor -> the executor itself (admin/), which Sandfleet's controller talks to
// Both have a parent that starts the serving child again when it dies (init/).
int main(int argc, char** argv) { return executor::parse_and_run(argc, argv); }
