#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "libs/base/result.h"

// One log line is a constant message plus key/values. Info is for who operates, debug for who
// develops; warn and error ask for a look. A value is never a secret.
namespace base::log {

enum class Level { kDebug, kInfo, kWarn, kError };
enum class Format { kText, kJson };

struct Field {
  Field(std::string_view key, std::string_view value) : key(key), text(value) {}
  Field(std::string_view key, const char* value) : key(key), text(value) {}
  Field(std::string_view key, const std::string& value) : key(key), text(value) {}
  Field(std::string_view key, bool value) : key(key), text(value ? "true" : "false"), bare(true) {}
  template <typename Number>
    requires std::is_arithmetic_v<Number>
  Field(std::string_view key, Number value) : key(key), text(std::to_string(value)), bare(true) {}
  Field(std::string_view key, const Error& error) : key(key), text(error.message) {}

  std::string_view key;
  std::string text;
  bool bare = false;  // A number or a boolean: JSON writes it without quotes.
};
using Fields = std::initializer_list<Field>;

// Call once, in main; before it, lines go to stderr as text from info up.
void configure(Level level, Format format);
Result<Level> parse_level(std::string_view word);
Result<Format> parse_format(std::string_view word);

void debug(std::string_view message, Fields fields = {});
void info(std::string_view message, Fields fields = {});
void warn(std::string_view message, Fields fields = {});
void error(std::string_view message, Fields fields = {});

// One line as it is printed, without the time: what the two formats are tested by.
std::string text_line(std::string_view message, Fields fields);
std::string json_line(Level level, std::string_view time, std::string_view message, Fields fields);

}  // namespace base::log
