#include "libs/archives/compression.h"

#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <new>

namespace archives {
namespace {

constexpr std::uint32_t kTrailerMagic = 0x184D2A5A;
constexpr std::size_t kSkippableHeaderBytes = 8;

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

void append_little_endian(std::string& bytes, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(number >> 8 * i));
}

bool is_skippable(std::uint32_t magic) {
  return (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

void set(ZSTD_CCtx* context, ZSTD_cParameter what, int value) {
  [[maybe_unused]] const std::size_t done = ZSTD_CCtx_setParameter(context, what, value);
  assert(!ZSTD_isError(done));
}

}  // namespace

void Compressor::Free::operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
void Decompressor::Free::operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }

Compressor::Compressor(int level, Sink sink)
    : sink_(std::move(sink)), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize(), '\0') {
  if (!context_) throw std::bad_alloc();
  set(context_.get(), ZSTD_c_compressionLevel, std::clamp(level, kLevelMin, kLevelMax));
  set(context_.get(), ZSTD_c_checksumFlag, 1);
}

Result<base::Done> Compressor::compress(std::string_view bytes, bool end) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (;;) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    const std::size_t left =
        ZSTD_compressStream2(context_.get(), &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left)) return unfit("cannot compress: ", ZSTD_getErrorName(left));
    if (out.pos > 0) CHECK_OK(sink_({out_.data(), out.pos}));
    if (in.pos == in.size && (!end || left == 0)) return base::Done{};
  }
}

Result<base::Done> Compressor::write(std::string_view bytes) { return compress(bytes, false); }
Result<base::Done> Compressor::finish() { return compress({}, true); }

std::string trailer_frame(std::string_view trailer) {
  assert(trailer.size() <= kTrailerBytesMax);
  std::string frame;
  append_little_endian(frame, kTrailerMagic);
  append_little_endian(frame, static_cast<std::uint32_t>(trailer.size()));
  return frame.append(trailer);
}

Decompressor::Decompressor(Source source)
    : source_(std::move(source)), context_(ZSTD_createDCtx()), out_(ZSTD_DStreamOutSize(), '\0') {
  if (!context_) throw std::bad_alloc();
  [[maybe_unused]] const std::size_t done =
      ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kWindowLogMax);
  assert(!ZSTD_isError(done));
}

// Whether so many bytes are ahead; false when the stream ends before.
Result<bool> Decompressor::have(std::size_t bytes) {
  while (in_.size() - at_ < bytes) {
    TRY(std::string more, source_());
    if (more.empty()) return false;
    in_.erase(0, at_);
    at_ = 0;
    in_ = in_.empty() ? std::move(more) : in_ + more;
  }
  return true;
}

Result<base::Done> Decompressor::pass_over(std::uint32_t magic, std::size_t bytes) {
  const bool ours = magic == kTrailerMagic;
  if (ours && bytes > kTrailerBytesMax) return unfit("what is told behind the archive is too long");
  if (ours) trailer_.clear();
  while (bytes > 0) {
    TRY(const bool more, have(1));
    if (!more) return unfit("the archive is cut off");
    const std::size_t count = std::min(bytes, in_.size() - at_);
    if (ours) trailer_.append(in_, at_, count);
    at_ += count;
    bytes -= count;
  }
  return base::Done{};
}

// To the first byte of the next frame that holds anything, or to the end.
Result<base::Done> Decompressor::begin_frame() {
  for (;;) {
    TRY(const bool any, have(1));
    if (!any && began_) return base::Done{};
    TRY(const bool whole, have(4));
    const std::string_view ahead = std::string_view(in_).substr(at_);
    const std::uint32_t magic = whole ? little_endian(ahead) : 0;
    if (magic == ZSTD_MAGICNUMBER) {
      in_frame_ = began_ = true;
      return base::Done{};
    }
    if (!is_skippable(magic))
      return unfit("the archive is not compressed with zstd, or is cut off");
    TRY(const bool header, have(kSkippableHeaderBytes));
    if (!header) return unfit("the archive is cut off");
    const std::uint32_t bytes = little_endian(std::string_view(in_).substr(at_ + 4));
    at_ += kSkippableHeaderBytes;
    CHECK_OK(pass_over(magic, bytes));
  }
}

Result<std::string_view> Decompressor::read() {
  for (;;) {
    if (!in_frame_) CHECK_OK(begin_frame());
    if (!in_frame_) return std::string_view();
    ZSTD_inBuffer in{in_.data(), in_.size(), at_};
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    const std::size_t hint = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_isError(hint)) return unfit("cannot decompress: ", ZSTD_getErrorName(hint));
    at_ = in.pos;
    if (hint == 0) in_frame_ = false;
    if (out.pos > 0) return std::string_view(out_.data(), out.pos);
    if (!in_frame_) continue;
    TRY(const bool more, have(1));
    if (!more) return unfit("the archive is cut off");
  }
}

}  // namespace archives
