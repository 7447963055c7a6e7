#include "libs/aio/tls/tls_stream.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "libs/aio/loop.h"
#include "libs/aio/tls/tls.h"

namespace aio {
namespace {

namespace asio = boost::asio;

// Room for one record (RFC 8446 §5.2) and a little more.
constexpr std::size_t kRingBytes = 20u << 10;
constexpr std::size_t kRecordBytes = 16u << 10;
constexpr base::Milliseconds kFarewellPatience{5'000};

base::Error failed(std::string_view what, std::string_view why) {
  return base::error(base::ErrorCode::kUnavailable, "TLS ", what, ": ", why);
}

base::Error cut_short() { return failed("read", "the connection was cut short"); }

}  // namespace

struct TlsStream::State {
  State(Executor executor, std::shared_ptr<Stream> stream, Ssl session)
      : executor(std::move(executor)), beneath(std::move(stream)), ssl(std::move(session)) {
    BIO *own = nullptr, *other = nullptr;
    BIO_new_bio_pair(&own, kRingBytes, &other, kRingBytes);
    SSL_set_bio(ssl.get(), own, own);
    wire.reset(other);
  }

  // What became of a call of OpenSSL.
  enum class Turn { kDone, kEnd, kWantsBytes, kWantsRoom, kFailed };
  Turn turn_of(int returned) const {
    if (returned > 0) return Turn::kDone;
    switch (SSL_get_error(ssl.get(), returned)) {
      case SSL_ERROR_ZERO_RETURN:
        return Turn::kEnd;
      case SSL_ERROR_WANT_READ:
        return Turn::kWantsBytes;
      case SSL_ERROR_WANT_WRITE:
        return Turn::kWantsRoom;
      default:
        return Turn::kFailed;
    }
  }

  Task<base::Result<base::Done>> fill();
  Task<base::Result<base::Done>> empty();
  Task<base::Result<int>> take(char* buffer, int size, int (*how)(SSL*, void*, int));
  base::Error give_up(const char* what);
  void say_farewell();
  void send_at_once();

  const Executor executor;
  const std::shared_ptr<Stream> beneath;
  const Ssl ssl;
  Bio wire;               // Our end of the rings.
  bool secured = false;   // The handshake is done.
  bool torn = false;      // A record is going out, or went out in part, or OpenSSL gave up.
  bool farewell = false;  // Nothing is written any more.
};

// Takes bytes of the wire for OpenSSL to read. Who is cancelled here has lost none.
Task<base::Result<base::Done>> TlsStream::State::fill() {
  char* room = nullptr;
  const int size = BIO_nwrite0(wire.get(), &room);
  if (size <= 0) co_return failed("read", "a record is too large");
  CO_TRY(const std::size_t got, co_await beneath->read(room, static_cast<std::size_t>(size)));
  if (got == 0) co_return cut_short();
  BIO_nwrite(wire.get(), &room, static_cast<int>(got));
  co_return base::Done{};
}

// Puts on the wire what OpenSSL has written.
Task<base::Result<base::Done>> TlsStream::State::empty() {
  if (torn) co_return failed("write", "an earlier write was broken off");
  torn = true;  // It stays so for whoever is cancelled meanwhile.
  base::Result<base::Done> wrote = base::Done{};
  char* bytes = nullptr;
  for (int size = 0; wrote && (size = BIO_nread0(wire.get(), &bytes)) > 0;) {
    wrote = co_await beneath->write({bytes, static_cast<std::size_t>(size)});
    if (wrote) BIO_nread(wire.get(), &bytes, size);
  }
  torn = !wrote;
  co_return wrote;
}

// By SSL_read or SSL_peek: 0 at the end that the other side has told.
Task<base::Result<int>> TlsStream::State::take(char* buffer, int size,
                                               int (*how)(SSL*, void*, int)) {
  for (;;) {
    if (!beneath->open()) co_return failed("read", "the connection was closed");
    ERR_clear_error();
    const int got = how(ssl.get(), buffer, size);
    switch (turn_of(got)) {
      case Turn::kDone:
        co_return got;
      case Turn::kEnd:
        co_return 0;
      case Turn::kWantsBytes:
        CO_CHECK_OK(co_await fill());
        break;
      case Turn::kWantsRoom:  // It is owed an answer, again and again, and reads none.
        co_return failed("read", "the other side asks for too much");
      case Turn::kFailed:
        co_return give_up("read");
    }
  }
}

// The other side may still learn why.
base::Error TlsStream::State::give_up(const char* what) {
  base::Error why = failed(what, openssl_error());
  send_at_once();
  torn = true;
  return why;
}

// None after an error, which is what OpenSSL demands, nor within a record.
void TlsStream::State::say_farewell() {
  if (farewell) return;
  farewell = true;
  if (!secured || torn) return;
  ERR_clear_error();
  SSL_shutdown(ssl.get());
  ERR_clear_error();
  send_at_once();
}

// As much as there is room for now.
void TlsStream::State::send_at_once() {
  const int socket = beneath->read_descriptor();
  char* bytes = nullptr;
  for (int size = 0; !torn && socket >= 0 && (size = BIO_nread0(wire.get(), &bytes)) > 0;) {
    const auto sent =
        ::send(socket, bytes, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent <= 0) return;
    BIO_nread(wire.get(), &bytes, static_cast<int>(sent));
  }
}

TlsStream::TlsStream(Executor executor, std::shared_ptr<Stream> beneath, Ssl ssl)
    : state_(std::make_shared<State>(std::move(executor), std::move(beneath), std::move(ssl))) {}

const SSL* TlsStream::ssl() const { return state_->ssl.get(); }

Task<base::Result<base::Done>> TlsStream::shake_hands() {
  const auto state = state_;
  for (;;) {
    ERR_clear_error();
    const auto turn = state->turn_of(SSL_do_handshake(state->ssl.get()));
    const long verdict = SSL_get_verify_result(state->ssl.get());
    std::string why = turn == State::Turn::kFailed ? openssl_error() : "";
    if (verdict != X509_V_OK) why += std::string(": ") + X509_verify_cert_error_string(verdict);
    const auto told = co_await state->empty();  // Also why it failed.
    if (turn == State::Turn::kFailed) co_return failed("handshake", why);
    if (!told) co_return told.error();
    if (turn == State::Turn::kDone) break;
    if (turn == State::Turn::kEnd) co_return failed("handshake", "the other side hung up");
    if (turn == State::Turn::kWantsBytes) CO_CHECK_OK(co_await state->fill());
  }
  state->secured = true;
  co_return base::Done{};
}

Task<base::Result<std::size_t>> TlsStream::read(char* buffer, std::size_t size) {
  const auto state = state_;
  const int most = static_cast<int>(std::min(size, kRecordBytes));
  CO_TRY(const int got, co_await state->take(buffer, most, SSL_read));
  co_return static_cast<std::size_t>(got);
}

Task<base::Result<base::Done>> TlsStream::wait_readable() {
  const auto state = state_;
  char first = 0;
  CO_CHECK_OK(co_await state->take(&first, 1, SSL_peek));
  co_return base::Done{};
}

Task<base::Result<base::Done>> TlsStream::wait_urgent() {
  const auto state = state_;
  co_return co_await state->beneath->wait_urgent();
}

Task<base::Result<base::Done>> TlsStream::write(std::string_view bytes) {
  const auto state = state_;
  while (!bytes.empty()) {
    if (state->farewell || !state->beneath->open())
      co_return failed("write", "the connection was closed");
    ERR_clear_error();
    const int put = SSL_write(state->ssl.get(), bytes.data(),
                              static_cast<int>(std::min(bytes.size(), kRecordBytes)));
    const auto turn = state->turn_of(put);
    if (turn == State::Turn::kFailed) co_return state->give_up("write");
    if (turn == State::Turn::kDone) bytes.remove_prefix(static_cast<std::size_t>(put));
    CO_CHECK_OK(co_await state->empty());
  }
  co_return base::Done{};
}

namespace {
// The last words, where the peer was slow to make room for them.
template <typename State>
Task<> finish_farewell(std::shared_ptr<State> state) {
  co_await within(state->empty(), kFarewellPatience);
}
}  // namespace

void TlsStream::close_write() {
  state_->say_farewell();
  if (!state_->torn && BIO_pending(state_->wire.get()) > 0)
    asio::co_spawn(state_->executor, finish_farewell(state_), asio::detached);
}

void TlsStream::close() {
  if (!open()) return;
  state_->say_farewell();
  state_->beneath->close();
}

void TlsStream::reset() {
  state_->farewell = true;
  state_->beneath->reset();
}

bool TlsStream::open() const { return state_->beneath->open(); }
int TlsStream::read_descriptor() const { return state_->beneath->read_descriptor(); }

}  // namespace aio
