#include "libs/base/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <array>
#include <cstdlib>

namespace base {
namespace {

constexpr std::string_view kStandard =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::string_view bytes, std::string_view alphabet, bool padded) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = bytes.size() - at;
    unsigned group = static_cast<unsigned char>(bytes[at]) << 16;
    if (left > 1) group |= static_cast<unsigned char>(bytes[at + 1]) << 8;
    if (left > 2) group |= static_cast<unsigned char>(bytes[at + 2]);
    text += alphabet[group >> 18];
    text += alphabet[group >> 12 & 63];
    if (left > 1)
      text += alphabet[group >> 6 & 63];
    else if (padded)
      text += '=';
    if (left > 2)
      text += alphabet[group & 63];
    else if (padded)
      text += '=';
  }
  return text;
}

Result<std::string> decode(std::string_view text, std::string_view alphabet) {
  const Error bad{ErrorCode::kInvalid, "not base64"};
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  if (text.size() % 4 == 1) return bad;
  std::string bytes;
  unsigned group = 0;
  int bits = 0;
  for (char c : text) {
    const std::size_t digit = alphabet.find(c);
    if (digit == std::string_view::npos) return bad;
    group = group << 6 | static_cast<unsigned>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 0xff);
    }
  }
  return bytes;
}

const unsigned char* raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t filled = 0;
  while (filled < count) {
    const ssize_t got = getrandom(bytes.data() + filled, count - filled, 0);
    if (got < 0) std::abort();  // Only a kernel without getrandom can refuse.
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string random_hex(std::size_t bytes) { return to_hex(random_bytes(bytes)); }

std::string random_uuid() {
  std::string bytes = random_bytes(16);
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  const std::string hex = to_hex(bytes);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

std::string sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(raw(bytes), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(bytes), bytes.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &length);
  return digest;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Result<std::string> from_hex(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (text.size() % 2 != 0)
    return Error{ErrorCode::kInvalid, "not hexadecimal: an odd number of digits"};
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const int high = digit(text[at]), low = digit(text[at + 1]);
    if (high < 0 || low < 0) return Error{ErrorCode::kInvalid, "not hexadecimal"};
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string to_base64(std::string_view bytes) { return encode(bytes, kStandard, true); }
std::string to_base64url(std::string_view bytes) { return encode(bytes, kUrl, false); }
Result<std::string> from_base64(std::string_view text) { return decode(text, kStandard); }
Result<std::string> from_base64url(std::string_view text) { return decode(text, kUrl); }

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr);
}
Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }
void Sha256::add(std::string_view bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size());
}
std::string Sha256::finish() {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_),
                     reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return digest;
}

}  // namespace base
