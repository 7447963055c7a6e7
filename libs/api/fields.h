#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/api/words.h"
#include "libs/base/json.h"

namespace api {

// Reads the members of one JSON object, and keeps the first thing that does not fit; a missing
// member gives its default. The failure is shared with the objects inside, so one look at the end
// is enough.
class Fields {
 public:
  Fields(const base::Json& object, std::string path, std::optional<base::Error>& failure);

  std::string text(const char* key, std::string otherwise = {});
  std::optional<std::string> optional_text(const char* key);
  std::int64_t integer(const char* key, std::int64_t otherwise);
  bool yes(const char* key, bool otherwise);
  std::optional<base::Seconds> seconds(const char* key);
  std::optional<base::WallTime> time(const char* key);
  std::map<std::string, std::string> texts_by_name(const char* key);
  std::vector<std::string> texts(const char* key);
  Fields inside(const char* key);
  std::vector<Fields> items(const char* key);
  bool has(const char* key) const { return find(key) != nullptr; }

  template <typename Enum>
  Enum word(const char* key, Enum otherwise) {
    const auto written = optional_text(key);
    if (!written) return otherwise;
    if (const auto known = from_word<Enum>(*written)) return *known;
    std::vector<std::string> choices;
    for (const auto& choice : words_of(Enum{}))
      if (!choice.word.empty()) choices.emplace_back(choice.word);
    refuse_word(key, *written, choices);
    return otherwise;
  }

 private:
  const base::Json* find(const char* key) const;
  void refuse(const std::string& key, const std::string& why);
  void refuse_word(const char* key, const std::string& word,
                   const std::vector<std::string>& choices);

  const base::Json* object_;
  std::string path_;
  std::optional<base::Error>* failure_;
};

Metadata metadata_from(Fields fields);
base::Json to_json(const Metadata& metadata);
std::vector<Condition> conditions_from(std::vector<Fields> items);
base::Json to_json(const std::vector<Condition>& conditions);
// Fails unless apiVersion and kind are as wanted.
std::optional<base::Error> check_kind(const base::Json& object, std::string_view kind);

}  // namespace api
