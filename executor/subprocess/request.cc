#include "executor/subprocess/request.h"

#include <algorithm>
#include <string_view>

namespace executor {
namespace {

ProcessFailure invalid(std::string_view why) { return ProcessFailure(ProcessFault::kInvalid, why); }

bool has_zero(const std::string& text) { return text.find('\0') != std::string::npos; }

bool is_handle(const std::string& id) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return id.size() >= kHandleBytesMin && id.size() <= kHandleBytesMax &&
         std::all_of(id.begin(), id.end(), fits);
}

ProcessResult<base::Done> check_argv(const SpawnRequest& request) {
  if (request.argv.empty() || request.argv[0].empty()) return invalid("argv names no program");
  if (request.argv.size() > kArgumentsMax) return invalid("argv has too many arguments");
  std::size_t bytes = 0;
  for (const std::string& argument : request.argv) {
    if (has_zero(argument)) return invalid("an argument holds a zero byte");
    if (argument.size() > kArgumentBytesMax) return invalid("an argument is too long");
    bytes += argument.size() + 1;
  }
  for (const auto& [name, value] : request.env)
    bytes += name.size() + value.value_or("").size() + 2;
  if (bytes > kCommandBytesMax) return invalid("arguments and variables are too long together");
  return base::Done{};
}

ProcessResult<base::Done> check_output(const OutputMode& mode) {
  const auto* collect = std::get_if<Collect>(&mode);
  if (!collect) return base::Done{};
  if (collect->bytes_max < 0 || collect->bytes_max > kCollectBytesMax)
    return invalid("maxBytes of a collected output is out of range");
  if (collect->spill_bytes_max && *collect->spill_bytes_max < 0)
    return invalid("maxBytes of a spill is negative");
  return base::Done{};
}

ProcessResult<base::Done> check_terminal(const SpawnRequest& request) {
  if (!request.terminal) return base::Done{};
  CHECK_OK(check(*request.terminal));
  if (std::holds_alternative<Data>(request.stdin_mode))
    return invalid("what is typed into a terminal has no end; pipe it");
  if (!std::holds_alternative<Ignored>(request.stderr_mode))
    return invalid("a terminal shows errors as it shows all output; discard stderr");
  const auto* collect = std::get_if<Collect>(&request.stdout_mode);
  if (!collect || collect->spill_bytes_max)
    return invalid("the output of a terminal is collected, without a spill");
  if (collect->bytes_max > kScrollbackBytesMax)
    return invalid("a terminal keeps at most 4 MiB of its output");
  return base::Done{};
}

}  // namespace

ProcessResult<base::Done> check(const TerminalSize& size) {
  if (size.rows < 1 || size.columns < 1)
    return invalid("a terminal has 1 to 65535 rows and as many columns");
  return base::Done{};
}

ProcessResult<base::Done> check(const EnvironmentChanges& changes) {
  if (changes.size() > kVariablesMax) return invalid("too many variables");
  for (const auto& [name, value] : changes) {
    if (name.empty() || has_zero(name) || name.find('=') != std::string::npos)
      return invalid("a variable has an empty name, or '=' or a zero byte in it");
    if (value && has_zero(*value)) return invalid("the value of a variable holds a zero byte");
  }
  return base::Done{};
}

ProcessResult<base::Done> check(const SpawnRequest& request) {
  if (!is_handle(request.id)) return invalid("a handle is 16 to 64 of A-Z, a-z, 0-9, '_' and '-'");
  CHECK_OK(check(request.env));
  CHECK_OK(check_argv(request));
  if (request.cwd.empty() || request.cwd[0] != '/' || has_zero(request.cwd) ||
      request.cwd.size() > kPathBytesMax)
    return invalid("cwd is not an absolute path");
  if (request.grace_ms < 1 || request.grace_ms > kGraceMsMax)
    return invalid("graceMs is not within 1 and 2147483647");
  const auto* data = std::get_if<Data>(&request.stdin_mode);
  if (data && data->bytes.size() > kDataBytesMax) return invalid("too much data for stdin");
  CHECK_OK(check_output(request.stdout_mode));
  CHECK_OK(check_output(request.stderr_mode));
  return check_terminal(request);
}

}  // namespace executor
