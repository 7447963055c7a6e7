#include "executor/files/gzip.h"

#include <zlib.h>

#include <cassert>

namespace executor {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's spelling of: 32 KiB window, gzip header.

Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

struct Gzip::State {
  z_stream stream{};

  std::string deflate_all(std::string_view bytes, int flush) {
    stream.next_in = bytes_of(bytes);
    stream.avail_in = static_cast<uInt>(bytes.size());
    std::string out;
    char piece[64 << 10];
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece);
      stream.avail_out = sizeof piece;
      ::deflate(&stream, flush);
      out.append(piece, sizeof piece - stream.avail_out);
    } while (stream.avail_out == 0);
    return out;
  }
};

Gzip::Gzip() : state_(std::make_unique<State>()) {
  const int made =
      ::deflateInit2(&state_->stream, 1, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  assert(made == Z_OK);
  static_cast<void>(made);
}
Gzip::~Gzip() { ::deflateEnd(&state_->stream); }
std::string Gzip::add(std::string_view bytes) { return state_->deflate_all(bytes, Z_NO_FLUSH); }
std::string Gzip::finish() { return state_->deflate_all({}, Z_FINISH); }

struct Gunzip::State {
  z_stream stream{};
  std::string waiting;
  bool ended = false;
};

Gunzip::Gunzip() : state_(std::make_unique<State>()) {
  const int made = ::inflateInit2(&state_->stream, kGzipWindow);
  assert(made == Z_OK);
  static_cast<void>(made);
}
Gunzip::~Gunzip() { ::inflateEnd(&state_->stream); }
void Gunzip::add(std::string_view bytes) { state_->waiting.append(bytes); }
bool Gunzip::finished() const { return state_->ended && state_->waiting.empty(); }

base::Result<std::string> Gunzip::next() {
  z_stream& stream = state_->stream;
  std::string piece;
  while (piece.empty() && !state_->waiting.empty()) {
    if (state_->ended) {  // A gzip file may be several members in a row.
      ::inflateReset(&stream);
      state_->ended = false;
    }
    piece.resize(kPieceBytesMax);
    stream.next_in = bytes_of(state_->waiting);
    stream.avail_in = static_cast<uInt>(state_->waiting.size());
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    state_->waiting.erase(0, state_->waiting.size() - stream.avail_in);
    piece.resize(piece.size() - stream.avail_out);
    if (result == Z_STREAM_END) {
      state_->ended = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return base::error(base::ErrorCode::kInvalid,
                         "the body is not gzip: ", stream.msg ? stream.msg : "it ends too soon");
    }
  }
  return piece;
}

}  // namespace executor
