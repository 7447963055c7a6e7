#include "libs/aio/tls/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <ostream>

#include "libs/aio/http_client.h"
#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/aio/tls/tls_stream.h"
#include "libs/aio/websocket.h"

namespace aio {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Use = base::CertificateTerms::Use;
using testing::kPatience;
using testing::tell;

base::Certified authority() {
  const auto now = base::SystemClock().wall();
  return *base::make_authority({"authority", {}, now - 2h, now + 1h});
}

base::Certified certified(const base::Certified& authority, std::vector<std::string> names,
                          Use use = Use::kServer, base::Milliseconds life = 1h) {
  const auto now = base::SystemClock().wall();
  return *base::issue(authority, {"one", std::move(names), now - 1h, now + life, use});
}

// A client and a server that have not shaken hands, and what is beneath them.
struct Site {
  Site() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_beneath = Stream::over(loop.executor(), base::Fd(ends[0]));
    server_beneath = Stream::over(loop.executor(), base::Fd(ends[1]));
  }

  Task<> serve(TlsServer server) {
    auto secured = co_await server.secure(server_beneath, kPatience);
    if (secured) {
      server_side = secured->stream;
      shown = secured->client;
    } else {
      server_told = secured.error().message;
    }
  }
  Task<> dial(TlsClient client, std::string host) {
    auto secured = co_await client.secure(client_beneath, std::move(host), kPatience);
    if (secured) {
      client_side = *secured;
    } else {
      client_told = secured.error().message;
    }
  }
  Task<> meet(TlsClient::Options client, TlsServer::Options server, std::string host = "box.test") {
    co_await both(serve(*TlsServer::with(server)), dial(*TlsClient::with(client), std::move(host)));
  }
  // With one authority that both know.
  Task<> meet() {
    co_await meet({.authorities = trusted.certificate},
                  {.identity = certified(trusted, {"box.test", "127.0.0.1"})});
  }

  Loop loop;
  const base::Certified trusted = authority();
  std::shared_ptr<Stream> client_beneath, server_beneath, client_side, server_side;
  std::optional<base::CertificateFacts> shown;
  std::string client_told, server_told;
};

Task<> send(std::shared_ptr<Stream> stream, std::string bytes) {
  const auto wrote = co_await stream->write(bytes);
  EXPECT_TRUE(wrote) << wrote.error().message;
  stream->close_write();
}

Task<> receive(std::shared_ptr<Stream> stream, std::string& received) {
  received = co_await testing::hear_all(std::move(stream));
}

Task<> carries_much_both_ways(Site& site) {
  co_await site.meet();
  std::string up(3u << 20, 'u'), down(2u << 20, 'd'), at_server, at_client;
  for (std::size_t i = 0; i < up.size(); i += 997) up[i] = static_cast<char>(i);
  co_await both(both(send(site.client_side, up), receive(site.server_side, at_server)),
                both(send(site.server_side, down), receive(site.client_side, at_client)));
  EXPECT_TRUE(at_server == up + "<end>");
  EXPECT_TRUE(at_client == down + "<end>");
}
TEST(Tls, CarriesMuchBothWaysAtOnceToItsEnds) { tell(carries_much_both_ways); }

Task<> answers_after_the_end(Site& site) {
  co_await site.meet();
  site.client_side->close_write();
  EXPECT_EQ(co_await testing::hear_all(site.server_side), "<end>");
  EXPECT_FALSE(co_await site.client_side->write("more"));
  EXPECT_TRUE(co_await site.server_side->write("an answer"));
  site.server_side->close();
  EXPECT_EQ(co_await testing::hear_all(site.client_side), "an answer<end>");
}
TEST(Tls, AnswersWhoHasSaidAllOfHis) { tell(answers_after_the_end); }

Task<> a_cut_is_no_end(Site& site) {
  co_await site.meet();
  EXPECT_TRUE(co_await site.server_side->write("half an ans"));
  site.server_beneath->close();
  EXPECT_EQ(co_await testing::hear_until(site.client_side, "half an ans"), "half an ans");
  char byte;
  const auto got = co_await site.client_side->read(&byte, 1);
  if (got) co_return ADD_FAILURE() << "an end that nobody told";
  EXPECT_EQ(got.error().message, "TLS read: the connection was cut short");
}
TEST(Tls, TellsACutFromAnEnd) { tell(a_cut_is_no_end); }

Task<> bent_bytes(Site& site) {
  co_await site.meet();
  EXPECT_TRUE(co_await site.server_beneath->write(std::string("\x17\x03\x03\x00\x20", 5) +
                                                  std::string(32, 'x')));
  char byte;
  const auto got = co_await site.client_side->read(&byte, 1);
  if (got) co_return ADD_FAILURE() << "bytes that nobody wrote";
  EXPECT_THAT(got.error().message, HasSubstr("decryption failed"));
  EXPECT_FALSE(co_await site.client_side->write("on"));
  const auto heard = co_await testing::hear_all(site.server_side);
  EXPECT_THAT(heard, HasSubstr("<broken>")) << "it learns of it";
}
TEST(Tls, BelievesNoBytesThatWereBent) { tell(bent_bytes); }

Task<> a_wait_that_is_broken_off(Site& site) {
  co_await site.meet();
  char byte;
  EXPECT_FALSE(co_await within(site.client_side->read(&byte, 1), 20ms));
  EXPECT_FALSE(co_await within(site.client_side->wait_readable(), 20ms));
  EXPECT_TRUE(co_await site.server_side->write("all of it"));
  EXPECT_TRUE(co_await site.client_side->wait_readable());
  EXPECT_EQ(co_await testing::hear_until(site.client_side, "of it"), "all of it");
}
TEST(Tls, LosesNothingWhereAWaitIsBrokenOff) { tell(a_wait_that_is_broken_off); }

Task<> a_stalled_reader(Site& site) {
  co_await site.meet();
  EXPECT_FALSE(co_await within(site.client_side->write(std::string(16u << 20, 'x')), 100ms));
  const auto more = co_await site.client_side->write("more");
  EXPECT_FALSE(more) << "a record went out in part";
  site.client_side->close();
  std::string heard = co_await testing::hear_all(site.server_side);
  EXPECT_THAT(heard.substr(heard.size() - 8), "<broken>") << "no farewell within a record";
}
TEST(Tls, WaitsForAReaderAndTakesABrokenWriteForTheEnd) { tell(a_stalled_reader); }

Task<> a_server_is_named(Site& site) {
  co_await site.meet();
  const auto* server = static_cast<const TlsStream*>(site.server_side.get());
  EXPECT_STREQ(SSL_get_servername(server->ssl(), TLSEXT_NAMETYPE_host_name), "box.test");
  EXPECT_STREQ(SSL_get_version(server->ssl()), "TLSv1.3");
  EXPECT_FALSE(site.shown);
}
TEST(Tls, NamesTheServerThatItMeans) { tell(a_server_is_named); }

struct Server {
  const char* name;
  std::vector<std::string> names;
  base::Milliseconds life;
  bool known;
  const char* host;
  const char* fault;  // Empty: none.
};
void PrintTo(const Server& c, std::ostream* out) { *out << c.name; }

const Server kServers[] = {
    {"is_believed", {"box.test"}, 1h, true, "box.test", ""},
    {"of_any_name_in_a_domain", {"*.box.test"}, 1h, true, "a.box.test", ""},
    {"by_its_address", {"127.0.0.1"}, 1h, true, "127.0.0.1", ""},
    {"by_its_v6_address", {"::1"}, 1h, true, "::1", ""},
    {"of_another_name", {"box.test"}, 1h, true, "other.test", "hostname mismatch"},
    {"of_another_address", {"127.0.0.2"}, 1h, true, "127.0.0.1", "IP address mismatch"},
    {"that_names_an_address_as_a_host", {"box.test"}, 1h, true, "127.0.0.1", "IP address mismatch"},
    {"whose_time_is_over", {"box.test"}, -1min, true, "box.test", "certificate has expired"},
    {"nobody_vouches_for", {"box.test"}, 1h, false, "box.test", "unable to get local issuer"},
    {"asked_for_by_no_name",
     {"box.test"},
     1h,
     true,
     "a b",
     "neither a host name nor an IP address"},
    {"asked_for_by_an_empty_name", {"box.test"}, 1h, true, "", "neither a host name"},
};

class OfServers : public ::testing::TestWithParam<Server> {};

Task<> meet(Site& site, const Server& c) {
  const base::Certified signer = c.known ? site.trusted : authority();
  const auto server = *TlsServer::with({certified(signer, c.names, Use::kServer, c.life)});
  const auto client = *TlsClient::with({.authorities = site.trusted.certificate});
  TaskGroup group(site.loop.executor());
  group.spawn(site.serve(server));
  co_await site.dial(client, c.host);
  EXPECT_EQ(site.client_side != nullptr, *c.fault == '\0');
  EXPECT_THAT(site.client_told, HasSubstr(c.fault));
  site.client_beneath->close();
  co_await group.wait();
}

TEST_P(OfServers, OneIsBelievedOrNot) {
  Site site;
  testing::run(site.loop, meet(site, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Tls, OfServers, ::testing::ValuesIn(kServers),
                         [](const auto& info) { return info.param.name; });

struct Client {
  const char* name;
  bool shows, known;
  Use use;
  const char* fault;
};
void PrintTo(const Client& c, std::ostream* out) { *out << c.name; }

const Client kClients[] = {
    {"is_believed", true, true, Use::kClient, ""},
    {"that_shows_nothing", false, true, Use::kClient, "peer did not return a certificate"},
    {"nobody_vouches_for", true, false, Use::kClient, "certificate verify failed"},
    {"with_a_certificate_of_a_server", true, true, Use::kServer, "certificate verify failed"},
};

class OfClients : public ::testing::TestWithParam<Client> {};

Task<> meet(Site& site, const Client& c) {
  const auto shown = certified(c.known ? site.trusted : authority(), {}, c.use);
  TlsClient::Options client{.authorities = site.trusted.certificate};
  if (c.shows) client.identity = shown;
  co_await site.meet(client, {.identity = certified(site.trusted, {"box.test"}),
                              .client_authorities = site.trusted.certificate});
  EXPECT_THAT(site.server_told, HasSubstr(c.fault));
  if (*c.fault == '\0') {
    EXPECT_EQ(site.shown.value_or(base::CertificateFacts{}).common_name, "one");
    co_return;
  }
  // TLS 1.3 has a client finish before it is judged.
  char byte;
  const auto got = co_await site.client_side->read(&byte, 1);
  EXPECT_FALSE(got);
}

TEST_P(OfClients, OneIsBelievedOrNot) {
  Site site;
  testing::run(site.loop, meet(site, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Tls, OfClients, ::testing::ValuesIn(kClients),
                         [](const auto& info) { return info.param.name; });

Task<> silence(Site& site) {
  const auto client = *TlsClient::with({.authorities = site.trusted.certificate});
  const auto secured = co_await client.secure(site.client_beneath, "box.test", 50ms);
  if (secured) co_return ADD_FAILURE();
  EXPECT_EQ(secured.error().message, "no secure connection to box.test: no handshake in time");
  EXPECT_FALSE(site.client_beneath->open());
}
TEST(Tls, WaitsForAHandshakeSoLong) { tell(silence); }

Task<> no_tls(Site& site) {
  EXPECT_TRUE(co_await site.server_beneath->write("HTTP/1.1 400 Bad Request\r\n\r\n"));
  co_await site.dial(*TlsClient::with({.authorities = site.trusted.certificate}), "box.test");
  EXPECT_THAT(site.client_told, HasSubstr("wrong version number"));
  co_await site.serve(*TlsServer::with({certified(site.trusted, {"box.test"})}));
  EXPECT_FALSE(site.server_side);
}
TEST(Tls, IsNotSpokenWithWhoSpeaksNone) { tell(no_tls); }

// Both sides as they are, but that the client may speak nothing newer.
Task<> as_of_old(Site& site, int version, bool met) {
  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> old(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(old.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(old.get(), version);
  SSL_CTX_set_security_level(old.get(), 0);
  Ssl ssl(SSL_new(old.get()));
  SSL_set_connect_state(ssl.get());
  const auto client =
      std::make_shared<TlsStream>(site.loop.executor(), site.client_beneath, std::move(ssl));
  TaskGroup group(site.loop.executor());
  group.spawn(site.serve(*TlsServer::with({certified(site.trusted, {"box.test"})})));
  EXPECT_EQ((co_await client->shake_hands()).ok(), met);
  co_await group.wait();
  EXPECT_EQ(site.server_side != nullptr, met);
}
TEST(Tls, IsSpokenFromVersion12On) {
  for (const auto& [version, met] : {std::pair(TLS1_1_VERSION, false), {TLS1_2_VERSION, true}}) {
    Site site;
    testing::run(site.loop, as_of_old(site, version, met));
  }
}

TEST(Tls, RefusesWhatIsNoCertificate) {
  const auto trusted = authority();
  const auto one = certified(trusted, {"a"}), other = certified(trusted, {"b"});
  EXPECT_FALSE(TlsClient::with({.authorities = "nonsense"}));
  EXPECT_FALSE(TlsClient::with({.identity = base::Certified{one.certificate, "nonsense"}}));
  EXPECT_FALSE(TlsServer::with({.identity = {one.certificate, other.key}}));
  EXPECT_FALSE(TlsServer::with({.identity = one, .client_authorities = ""}));
  EXPECT_TRUE(TlsClient::with({})) << "the system's";
}

// What speaks in the clear behind a router that speaks TLS.
Task<> pump(std::shared_ptr<Stream> from, std::shared_ptr<Stream> to) {
  char piece[16u << 10];
  for (;;) {
    const auto got = co_await from->read(piece, sizeof piece);
    if (!got || *got == 0 || !co_await to->write({piece, *got})) break;
  }
  to->close_write();
}

constexpr std::size_t kMessageBytes = 200'000;
const WebSocketOptions kOptions{.subprotocol = "echo.1", .message_bytes_max = kMessageBytes};

Task<> echo(std::shared_ptr<HttpExchange> exchange) {
  if (exchange->head().method == "POST") {
    const auto body = co_await exchange->read_all(1u << 20);
    HttpReply reply{.body = body ? *body : ""};
    (void)co_await exchange->reply(std::move(reply));
    co_return;
  }
  const auto socket = co_await WebSocket::accept(exchange, kOptions);
  if (!socket) co_return;
  for (;;) {
    auto message = co_await (*socket)->read();
    if (!message || !co_await (*socket)->write(*std::move(message))) co_return;
  }
}

struct RoutedSite : Site {
  RoutedSite() { port = *server.listen("127.0.0.1", 0); }
  // The client's end of one connection, secured.
  Task<std::shared_ptr<Stream>> connect() {
    co_await meet();
    const auto inside = co_await testing::dial(port);
    pumps.spawn(pump(server_side, inside));
    pumps.spawn(pump(inside, server_side));
    co_return client_side;
  }

  HttpServer server{loop.executor(), echo};
  TaskGroup pumps{loop.executor()};
  int port = 0;
};

Task<> http_over_it(RoutedSite& site) {
  HttpRequest request{.method = "POST", .body = std::string(300'000, 'b')};
  const std::string body = request.body;
  const auto reply = co_await exchange(co_await site.connect(), std::move(request), kPatience);
  if (!reply) co_return ADD_FAILURE() << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_TRUE(reply->body == body);
}
TEST(Tls, CarriesHttp) { tell(http_over_it); }

Task<> messages_over_it(RoutedSite& site) {
  const auto socket =
      co_await WebSocket::open(co_await site.connect(), "box.test", "/v1/session", {}, kOptions);
  if (!socket) co_return ADD_FAILURE() << socket.error().message;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, kMessageBytes}) {
    std::string message(size, '\0');
    for (std::size_t i = 0; i < size; ++i) message[i] = static_cast<char>(i * 7);
    EXPECT_TRUE(co_await (*socket)->write(message));
    const auto back = co_await within((*socket)->read(), kPatience);
    EXPECT_TRUE(back && *back && **back == message) << size;
  }
  const auto none = co_await within((*socket)->read(), 20ms);
  EXPECT_FALSE(none && *none);
  (*socket)->reset();
  EXPECT_FALSE(co_await (*socket)->write("more"));
}
TEST(Tls, CarriesWebSockets) { tell(messages_over_it); }

Task<> a_cut_beneath_messages(RoutedSite& site) {
  const auto socket =
      co_await WebSocket::open(co_await site.connect(), "box.test", "/v1/session", {}, kOptions);
  if (!socket) co_return ADD_FAILURE() << socket.error().message;
  site.server_beneath->close();
  const auto got = co_await within((*socket)->read(), kPatience);
  EXPECT_TRUE(got && !*got);
  EXPECT_EQ((*got).error().code, base::ErrorCode::kUnavailable);
}
TEST(Tls, TellsAWebSocketOfACut) { tell(a_cut_beneath_messages); }

}  // namespace
}  // namespace aio
