#include "cli/logs/output.h"

#include "libs/wire/frames/file_operations.h"

namespace cli {

const char* word_of(wire::OutputName name) {
  return name == wire::OutputName::kStdout ? "stdout" : "stderr";
}

wire::Call question(const std::string& handle, const Output& output, std::int64_t from,
                    std::int64_t bytes, base::Milliseconds wait) {
  if (output.file)
    return wire::call_of(
        wire::ReadBytesArgs{.place = {.path = output.file}, .from = from, .length = bytes},
        {.down = true});
  wire::ReadOutputArgs args{
      .handle = handle, .output = output.name, .from = from, .bytes_max = bytes};
  if (wait.count() > 0) args.wait_ms = wait.count();
  return wire::call_of(args, {.down = true});
}

}  // namespace cli
