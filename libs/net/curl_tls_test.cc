#include <gtest/gtest.h>

#include "libs/net/curl_transport.h"
#include "libs/net/testing/tls_server.h"

namespace net {
namespace {

Reply get(const std::string& url, CurlOptions options) {
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

}  // namespace
}  // namespace net
