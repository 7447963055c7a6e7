#pragma once

#include <cassert>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace base {

// What went wrong, in the few kinds that callers act on differently.
enum class ErrorCode {
  kInvalid,  // The request can never succeed as written.
  kDenied,   // Credentials are missing or not enough.
  kNotFound,
  kConflict,     // Someone else changed it first; read again and retry.
  kRateLimited,  // Retry no sooner than Error::retry_after.
  kUnavailable,  // The other side did not answer, or answered 5xx.
  kCancelled,    // We are shutting down or the caller went away.
};

std::string_view to_word(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;  // For people: what was attempted, and what came back; never a secret.
  std::optional<std::chrono::milliseconds> retry_after = std::nullopt;
  bool operator==(const Error&) const = default;
};

// A value, or the failure that stands in its place: an Error, or a type that derives from it.
template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  using Value = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(value()); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const E& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  T& value() {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    assert(ok());
    return *std::get_if<0>(&state_);
  }

  std::variant<T, E> state_;
};

// Result<Done>: it worked, and there is nothing to hand back.
struct Done {
  bool operator==(const Done&) const = default;
};

// TRY(auto sandbox, cloud.create(wanted));
// Declares `sandbox` from the result, or returns the result's error; CO_TRY does so in a coroutine.
#define BASE_CONCAT_(a, b) a##b
#define BASE_CONCAT(a, b) BASE_CONCAT_(a, b)
#define TRY(declaration, expression) TRY_(BASE_CONCAT(result_, __LINE__), declaration, expression)
#define TRY_(result, declaration, expression) \
  auto result = (expression);                 \
  if (!result) return result.error();         \
  declaration = *std::move(result)
#define CO_TRY(declaration, expression) \
  CO_TRY_(BASE_CONCAT(result_, __LINE__), declaration, expression)
#define CO_TRY_(result, declaration, expression) \
  auto result = (expression);                    \
  if (!result) co_return result.error();         \
  declaration = *std::move(result)

// CHECK_OK(step()); passes the error up when there is no value to keep.
#define CHECK_OK(expression)                                                               \
  if (auto BASE_CONCAT(result_, __LINE__) = (expression); !BASE_CONCAT(result_, __LINE__)) \
  return BASE_CONCAT(result_, __LINE__).error()
#define CO_CHECK_OK(expression)                                                            \
  if (auto BASE_CONCAT(result_, __LINE__) = (expression); !BASE_CONCAT(result_, __LINE__)) \
  co_return BASE_CONCAT(result_, __LINE__).error()

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

// The message is the parts joined: error(ErrorCode::kInvalid, "no user ", name).
template <typename... Parts>
Error error(ErrorCode code, const Parts&... parts) {
  Error made{code, {}};
  (made.message.append(std::string_view(parts)), ...);
  return made;
}

}  // namespace base
