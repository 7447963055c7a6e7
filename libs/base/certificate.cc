#include "libs/base/certificate.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>

namespace base {
namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* thing) const {
    Free(thing);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;

constexpr std::size_t kNameBytesMax = 253;  // Of a DNS name.
constexpr int kCommonNameBytesMax = 64;     // ub-common-name of RFC 5280.
constexpr int kSerialBits = 127;

Memory reading(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const Memory memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(memory.get(), certificate);
  return text_of(memory.get());
}

std::string pem_of(EVP_PKEY* key) {
  const Memory memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(memory.get());
}

// Nobody is asked for a passphrase.
int no_passphrase(char*, int, int, void*) { return 0; }

Certificate certificate_from(const std::string& pem) {
  Certificate read(PEM_read_bio_X509(reading(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return read;
}

Key key_from(const std::string& pem) {
  Key read(PEM_read_bio_PrivateKey(reading(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return read;
}

WallTime time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::time_point_cast<WallTime::duration>(
      std::chrono::system_clock::from_time_t(timegm(&parts)));
}

void set_time(ASN1_TIME* into, WallTime time) {
  ASN1_TIME_set(into, std::chrono::system_clock::to_time_t(
                          std::chrono::time_point_cast<std::chrono::system_clock::duration>(time)));
}

// A certificate may be for all hosts of a domain.
bool is_dns_name(std::string_view name) {
  return is_host_name(name.starts_with("*.") ? name.substr(2) : name);
}

// "DNS:a.b,IP:10.0.0.1", as OpenSSL reads it.
Result<std::string> alternative_names(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    if (!as_server_name(name))
      return error(ErrorCode::kInvalid, "\"", name, "\" is neither a host name nor an IP address");
    text += (text.empty() ? "" : ",") + std::string(is_ip_address(name) ? "IP:" : "DNS:") + name;
  }
  return text;
}

bool extend(X509* certificate, X509* issuer, int what, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension made(X509V3_EXT_conf_nid(nullptr, &context, what, value));
  return made && X509_add_ext(certificate, made.get(), -1) == 1;
}

Certificate blank(const CertificateTerms& terms, EVP_PKEY* key) {
  Certificate made(X509_new());
  X509_set_version(made.get(), X509_VERSION_3);
  const Number serial(BN_new());
  BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY);
  BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(made.get()));
  set_time(X509_getm_notBefore(made.get()), terms.not_before);
  set_time(X509_getm_notAfter(made.get()), terms.not_after);
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(terms.common_name.data()),
      std::min(static_cast<int>(terms.common_name.size()), kCommonNameBytesMax), -1, 0);
  X509_set_pubkey(made.get(), key);
  return made;
}

// `issuer` is the certificate itself where it vouches for itself.
Result<Certified> finish(X509* made, EVP_PKEY* key, X509* issuer, EVP_PKEY* signer) {
  X509_set_issuer_name(made, X509_get_subject_name(issuer));
  const bool is_signed = extend(made, issuer, NID_subject_key_identifier, "hash") &&
                         extend(made, issuer, NID_authority_key_identifier, "keyid") &&
                         X509_sign(made, signer, EVP_sha256()) > 0;
  ERR_clear_error();
  if (!is_signed) return error(ErrorCode::kInvalid, "cannot sign a certificate");
  return Certified{pem_of(made), pem_of(key)};
}

Result<Done> make_useful(X509* certificate, X509* issuer, const CertificateTerms& terms) {
  TRY(const std::string alternatives, alternative_names(terms.names));
  const bool client = terms.use == CertificateTerms::Use::kClient;
  const bool extended =
      extend(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
      extend(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
      extend(certificate, issuer, NID_ext_key_usage, client ? "clientAuth" : "serverAuth") &&
      (alternatives.empty() ||
       extend(certificate, issuer, NID_subject_alt_name, alternatives.c_str()));
  ERR_clear_error();
  if (!extended) return error(ErrorCode::kInvalid, "cannot make a certificate for ", alternatives);
  return Done{};
}

std::string common_name_of(X509* certificate) {
  std::array<char, kCommonNameBytesMax + 1> text{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text.data(),
                            text.size());
  return text.data();
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> names;
  const Names listed(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; listed && i < sk_GENERAL_NAME_num(listed.get()); ++i) {
    int kind = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(listed.get(), i), &kind);
    const auto* text = static_cast<const ASN1_STRING*>(value);
    if (kind == GEN_DNS) {
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                         static_cast<std::size_t>(ASN1_STRING_length(text)));
    } else if (kind == GEN_IPADD) {
      std::array<char, INET6_ADDRSTRLEN> shown{};
      const int family = ASN1_STRING_length(text) == sizeof(in_addr) ? AF_INET : AF_INET6;
      if (inet_ntop(family, ASN1_STRING_get0_data(text), shown.data(), shown.size()))
        names.emplace_back(shown.data());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool is_ip_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  return inet_pton(AF_INET, name.c_str(), parsed.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), parsed.data()) == 1;
}

std::optional<std::string> as_server_name(const std::string& name) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  in6_addr parsed{};
  for (const int family : {AF_INET, AF_INET6})
    if (inet_pton(family, name.c_str(), &parsed) == 1)
      return inet_ntop(family, &parsed, text.data(), text.size());
  return is_dns_name(name) ? std::optional(name) : std::nullopt;
}

bool is_host_name(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= kNameBytesMax && name.front() != '.' &&
         name.front() != '-' && std::all_of(name.begin(), name.end(), fits);
}

Result<Certified> make_authority(const CertificateTerms& terms) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate made = blank(terms, key.get());
  if (!extend(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !extend(made.get(), made.get(), NID_key_usage, "critical,keyCertSign,cRLSign"))
    return error(ErrorCode::kInvalid, "cannot make an authority");
  return finish(made.get(), key.get(), made.get(), key.get());
}

Result<Certified> issue(const Certified& authority, const CertificateTerms& terms) {
  const Certificate issuer = certificate_from(authority.certificate);
  const Key signer = key_from(authority.key);
  if (!issuer || !signer || X509_check_ca(issuer.get()) == 0 ||
      X509_check_private_key(issuer.get(), signer.get()) != 1) {
    ERR_clear_error();
    return error(ErrorCode::kInvalid, "what should issue a certificate is no authority");
  }
  const Key key(EVP_EC_gen("P-256"));
  const Certificate made = blank(terms, key.get());
  CHECK_OK(make_useful(made.get(), issuer.get(), terms));
  return finish(made.get(), key.get(), issuer.get(), signer.get());
}

Result<CertificateFacts> facts_of_certificate(const std::string& pem) {
  const Certificate read = certificate_from(pem);
  if (!read) return error(ErrorCode::kInvalid, "not a certificate in PEM");
  return CertificateFacts{common_name_of(read.get()), names_of(read.get()),
                          time_of(X509_get0_notBefore(read.get())),
                          time_of(X509_get0_notAfter(read.get()))};
}

Result<CertificateFacts> facts_of(const Certified& certified) {
  TRY(auto facts, facts_of_certificate(certified.certificate));
  const Key key = key_from(certified.key);
  if (!key) return error(ErrorCode::kInvalid, "the certificate's key is no key in PEM");
  const bool fits =
      X509_check_private_key(certificate_from(certified.certificate).get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) return error(ErrorCode::kInvalid, "the key is not the certificate's");
  return facts;
}

bool is_issued_by(const std::string& certificate, const std::string& authority) {
  const Certificate issued = certificate_from(certificate), issuer = certificate_from(authority);
  if (!issued || !issuer) return false;
  const bool verified = X509_verify(issued.get(), X509_get0_pubkey(issuer.get())) == 1;
  ERR_clear_error();
  return verified;
}

std::vector<std::string> certificates_in(const std::string& bundle) {
  std::vector<std::string> found;
  const Memory memory = reading(bundle);
  for (;;) {
    const Certificate next(PEM_read_bio_X509(memory.get(), nullptr, no_passphrase, nullptr));
    if (!next) break;
    found.push_back(pem_of(next.get()));
  }
  ERR_clear_error();
  return found;
}

}  // namespace base
