#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/api/provider.h"
#include "libs/api/sandbox.h"

// The words that stand for enumerators in YAML and JSON, each pair written down once.
namespace api {

template <typename Enum>
struct Word {
  Enum value;
  std::string_view word;
};

const std::vector<Word<DesiredState>>& words_of(DesiredState);
const std::vector<Word<DeletionPolicy>>& words_of(DeletionPolicy);
const std::vector<Word<OnTimeout>>& words_of(OnTimeout);
const std::vector<Word<IdleAction>>& words_of(IdleAction);
const std::vector<Word<EndedBy>>& words_of(EndedBy);
const std::vector<Word<PausedBy>>& words_of(PausedBy);
const std::vector<Word<Routing>>& words_of(Routing);

template <typename Enum>
std::optional<Enum> from_word(std::string_view word) {
  for (const auto& known : words_of(Enum{}))
    if (known.word == word) return known.value;
  return std::nullopt;
}

}  // namespace api
