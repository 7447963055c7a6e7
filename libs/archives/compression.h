#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libs/archives/failure.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

// Zstandard (RFC 8878), as a stream in either direction, in memory that does not grow with it.
namespace archives {

inline constexpr int kLevelMin = 1, kLevelUsual = 3, kLevelMax = 9;
// What a reader must remember, as a power of two: 8 MiB, which `zstd -19` stays within. An archive
// that asks for more is refused.
inline constexpr int kWindowLogMax = 23;

// Takes the next bytes.
using Sink = std::function<Result<base::Done>(std::string_view)>;
// The next bytes; none at the end.
using Source = std::function<Result<std::string>()>;

class Compressor {
 public:
  Compressor(int level, Sink sink);
  Result<base::Done> write(std::string_view bytes);
  Result<base::Done> finish();

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  Result<base::Done> compress(std::string_view bytes, bool end);

  Sink sink_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::string out_;
};

// A frame behind the archive that other readers skip (RFC 8878, 3.1.2, magic number 0x184D2A5A):
// what we tell of it in at most so many bytes.
inline constexpr std::size_t kTrailerBytesMax = 64u << 10;
std::string trailer_frame(std::string_view trailer);

class Decompressor {
 public:
  explicit Decompressor(Source source);
  // What stays as it is until the next call; nothing at the end. kUnfit when the stream is cut off.
  Result<std::string_view> read();
  const std::string& trailer() const { return trailer_; }  // At the end.

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  Result<bool> have(std::size_t bytes);
  Result<base::Done> begin_frame();
  Result<base::Done> pass_over(std::uint32_t magic, std::size_t bytes);

  Source source_;
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::string in_, out_, trailer_;
  std::size_t at_ = 0;  // How much of `in_` is used.
  bool in_frame_ = false, began_ = false;
};

}  // namespace archives
