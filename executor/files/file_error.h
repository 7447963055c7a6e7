#pragma once

#include <filesystem>
#include <string_view>

#include "libs/base/files.h"
#include "libs/base/result.h"

namespace executor {

// A failure of the filesystem, with the kernel's number for callers that answer by it; 0 when the
// kernel was not the one to object.
struct FileError : base::Error {
  int error_number = 0;

  FileError(base::Error error, int number = 0)
      : base::Error(std::move(error)), error_number(number) {}
  FileError(std::string_view what, const std::filesystem::path& path, int number)
      : base::Error(base::errno_error(what, path, number)), error_number(number) {}
};

template <typename T>
using FileResult = base::Result<T, FileError>;

}  // namespace executor
