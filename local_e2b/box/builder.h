#pragma once

namespace local_e2b {

// argv[1] of the builder. It reads a Blueprint in JSON on stdin and writes its report to stdout, a
// line of JSON each: {"initPid": N}, then only if it fails {"step": NAME, "message": WHY}. The
// report ends when the executor runs.
inline constexpr char kBuilderFlag[] = "--build-box";

}  // namespace local_e2b
