#include "libs/net/cpprest/tls_material.h"

#include <gtest/gtest.h>

#include "libs/net/testing/tls_server.h"

namespace net {
namespace {

TEST(TlsMaterial, RefusesWhatIsNoPemOfItsKind) {
  const TlsIdentity own, stranger;
  struct Row {
    const char* name;
    std::string bundle, certificate, key;
    bool good;
  };
  const Row rows[] = {
      {"nothing", "", "", "", true},
      {"all", stranger.certificate_pem(), own.certificate_pem(), own.key_pem(), true},
      {"a bundle of nothing", "nonsense", "", "", false},
      {"a key for a bundle", own.key_pem(), "", "", false},
      {"no certificate", "", "nonsense", own.key_pem(), false},
      {"no key", "", own.certificate_pem(), "", false},
      {"another's key", "", own.certificate_pem(), stranger.key_pem(), false},
  };
  for (const Row& row : rows) {
    const auto made = TlsMaterial::from_pem(row.bundle, row.certificate, row.key);
    EXPECT_EQ(made.ok(), row.good) << row.name;
  }
}

TEST(TlsMaterial, GivesAContextTheWholeChain) {
  const TlsIdentity own, issuer;
  const auto made =
      TlsMaterial::from_pem(issuer.certificate_pem() + own.certificate_pem(),
                            own.certificate_pem() + issuer.certificate_pem(), own.key_pem());
  ASSERT_TRUE(made.ok());
  for (int round = 0; round < 2; ++round) {
    const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_method()));
    made->give_to(context.get());
    EXPECT_EQ(X509_cmp(SSL_CTX_get0_certificate(context.get()), own.certificate.get()), 0);
    STACK_OF(X509)* chain = nullptr;
    SSL_CTX_get0_chain_certs(context.get(), static_cast<void*>(&chain));
    ASSERT_EQ(sk_X509_num(chain), 1);
    EXPECT_EQ(X509_cmp(sk_X509_value(chain, 0), issuer.certificate.get()), 0);
    EXPECT_EQ(sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(context.get()))),
              2);
  }
}

}  // namespace
}  // namespace net
