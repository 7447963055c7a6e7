#include "executor/search/query.h"

#include <string_view>

namespace executor {
namespace {

using Arguments = std::vector<std::string>;

// Values go with their flags, so that none is taken for one.
std::string with(std::string_view flag, const std::string& value) {
  return std::string(flag) + "=" + value;
}

std::string_view case_flag(wire::CaseMode mode) {
  switch (mode) {
    case wire::CaseMode::kInsensitive:
      return "--ignore-case";
    case wire::CaseMode::kSmart:
      return "--smart-case";
    case wire::CaseMode::kSensitive:
      break;
  }
  return "--case-sensitive";
}

void select(const wire::FileSelection& files, const std::string& where, Arguments& arguments) {
  for (const std::string& glob : files.globs) arguments.push_back(with("--glob", glob));
  for (const std::string& type : files.types) arguments.push_back(with("--type", type));
  if (files.hidden) arguments.emplace_back("--hidden");
  if (!files.ignore_files) arguments.emplace_back("--no-ignore");
  if (files.order == wire::SearchOrder::kPath) arguments.emplace_back("--sort=path");
  if (files.order == wire::SearchOrder::kModified) arguments.emplace_back("--sort=modified");
  arguments.emplace_back("--");
  arguments.push_back(where);
}

}  // namespace

Arguments arguments_of(const wire::GlobArgs& request, const std::string& where) {
  Arguments arguments = {"--no-config", "--color=never", "--files", "--null"};
  select(request.files, where, arguments);
  return arguments;
}

Arguments arguments_of(const wire::GrepArgs& request, const std::string& where) {
  Arguments arguments = {"--no-config", "--color=never", "--json",
                         with("--regexp", request.pattern),
                         std::string(case_flag(request.case_mode))};
  if (request.literal) arguments.emplace_back("--fixed-strings");
  if (request.word) arguments.emplace_back("--word-regexp");
  if (request.multiline) arguments.emplace_back("--multiline");
  if (request.binary) arguments.emplace_back("--text");
  if (request.before > 0)
    arguments.push_back(with("--before-context", std::to_string(request.before)));
  if (request.after > 0)
    arguments.push_back(with("--after-context", std::to_string(request.after)));
  if (request.file_bytes_max)
    arguments.push_back(with("--max-filesize", std::to_string(*request.file_bytes_max)));
  select(request.files, where, arguments);
  return arguments;
}

}  // namespace executor
