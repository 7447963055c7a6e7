#include "libs/base/file_digest.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "libs/base/crypto.h"
#include "libs/base/files.h"

namespace base {
namespace {

constexpr std::size_t kPieceBytes = 256u << 10;

}  // namespace

Result<std::string> sha256_of(const Fd& file, const std::filesystem::path& path) {
  Sha256 digest;
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read", path, errno);
    if (got == 0) return to_hex(digest.finish());
    digest.add(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
  }
}

}  // namespace base
