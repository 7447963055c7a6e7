#pragma once

#include <string>
#include <string_view>

#include "libs/base/result.h"

namespace base {

std::string random_bytes(std::size_t count);  // From the kernel's generator.
std::string random_hex(std::size_t bytes);    // Lower case, two digits a byte.
std::string random_uuid();                    // RFC 9562 version 4.
std::string sha256(std::string_view bytes);   // 32 raw bytes.
std::string hmac_sha256(std::string_view key, std::string_view bytes);  // 32 raw bytes.
std::string to_hex(std::string_view bytes);
Result<std::string> from_hex(std::string_view text);
std::string to_base64(std::string_view bytes);           // RFC 4648 §4, padded.
std::string to_base64url(std::string_view bytes);        // RFC 4648 §5, no padding.
Result<std::string> from_base64(std::string_view text);  // Padding is optional.
Result<std::string> from_base64url(std::string_view text);
// Compares in time that depends on the lengths only.
bool equal_secrets(std::string_view a, std::string_view b);

// The digest of something that arrives in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::string_view bytes);
  std::string finish();  // 32 raw bytes; call once.

 private:
  void* context_;
};

}  // namespace base
