#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libs/base/result.h"

namespace executor {

// Compresses what arrives in parts into one gzip member.
class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  std::string add(std::string_view bytes);  // What is ready; often nothing.
  std::string finish();                     // The rest; call once.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Expands gzip that arrives in parts, in pieces of bounded size whatever the ratio is.
class Gunzip {
 public:
  static constexpr std::size_t kPieceBytesMax = 64u << 10;

  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;
  void add(std::string_view bytes);
  // The next piece; empty when more has to be added first. kInvalid for what is not gzip.
  base::Result<std::string> next();
  bool finished() const;  // At the end of a member, with nothing left over.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace executor
