#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

// Tables of enumerators and their words, looked up both ways.
namespace wire {

// Empty: `value` has no word.
template <typename Value, std::size_t kSize>
constexpr std::string_view word_for(const std::pair<Value, std::string_view> (&words)[kSize],
                                    Value value) {
  for (const auto& [known, word] : words)
    if (known == value) return word;
  return {};
}

template <typename Value, std::size_t kSize>
constexpr std::optional<Value> value_for(const std::pair<Value, std::string_view> (&words)[kSize],
                                         std::string_view word) {
  for (const auto& [value, known] : words)
    if (known == word) return value;
  return std::nullopt;
}

}  // namespace wire
