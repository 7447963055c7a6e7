#include <gtest/gtest.h>

#include "libs/net/curl_transport.h"
#include "libs/net/testing/tls_server.h"

namespace net {
namespace {

Reply get(const std::string& url, ConnectionOptions options) {
  options.proxy = "";
  return curl_transport(options)->send({"GET", url + "/"}, base::Milliseconds(20'000), {});
}

TEST(CurlTls, BelievesAnAuthorityFromMemory) {
  const TlsIdentity identity;
  const TlsServer server(identity);
  const Reply reply = get(server.url(), {.ca_bundle = identity.certificate_pem()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "anonymous");
}

TEST(CurlTls, SendsNothingToAServerThatNobodyVouchesFor) {
  const TlsIdentity identity, stranger;
  const TlsServer server(identity);
  for (const std::string& bundle : {std::string(), stranger.certificate_pem()}) {
    const Reply reply = get(server.url(), {.ca_bundle = bundle});
    ASSERT_FALSE(reply);
    EXPECT_FALSE(reply.error().sent) << reply.error().message;
  }
  EXPECT_EQ(server.requests(), 0);
}

TEST(CurlTls, ShowsAClientCertificateFromMemory) {
  const TlsIdentity identity, client;
  const TlsServer server(identity, &client);
  const Reply reply = get(server.url(), {.ca_bundle = identity.certificate_pem(),
                                         .client_certificate = client.certificate_pem(),
                                         .client_key = client.key_pem()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "known");
  EXPECT_FALSE(get(server.url(), {.ca_bundle = identity.certificate_pem()}));
  EXPECT_EQ(server.requests(), 1);
}

TEST(CurlTls, AsksForAndChecksAnotherNameThanTheUrls) {
  const TlsIdentity identity("DNS:api.internal");
  const TlsServer server(identity);
  ConnectionOptions options{.ca_bundle = identity.certificate_pem()};
  EXPECT_FALSE(get(server.url(), options));
  options.tls_server_name = "other.internal";
  EXPECT_FALSE(get(server.url(), options));
  EXPECT_EQ(server.requests(), 0);
  options.tls_server_name = "api.internal";
  const Reply reply = get(server.url(), options);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_TRUE(server.last_head().find("Host: " + server.url().substr(8) + "\r\n") !=
              std::string::npos)
      << server.last_head();
}

TEST(CurlTls, BelievesAnybodyOnlyWhenToldTo) {
  const TlsIdentity identity("DNS:api.internal");
  const TlsServer server(identity);
  const Reply reply = get(server.url(), {.verify_server = false});
  ASSERT_TRUE(reply) << reply.error().message;
}

}  // namespace
}  // namespace net
