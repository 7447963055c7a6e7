#include "libs/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "libs/base/clock.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace base::log {
namespace {

std::atomic<Format> g_format{Format::kText};

spdlog::logger& logger() {
  static const auto made = [] {
    auto logger = spdlog::stderr_color_mt("sandfleet");
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%-5l%$ %v", spdlog::pattern_time_type::utc);
    logger->flush_on(spdlog::level::debug);
    return logger;
  }();
  return *made;
}

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::string_view level_word(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      return "error";
  }
  return "info";
}

bool steers(std::string_view text) { return on_one_line(text) != text; }

// JSON escapes what is below 0x20 and lets all else through, so it is ASCII where that would do
// harm.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', steers(text), nlohmann::json::error_handler_t::replace);
}

void write(Level level, std::string_view message, Fields fields) {
  const auto severity = spdlog_level(level);
  if (!logger().should_log(severity)) return;
  const std::string line = g_format == Format::kJson
                               ? json_line(level, to_rfc3339(SystemClock().wall()), message, fields)
                               : text_line(message, fields);
  logger().log(severity, "{}", line);
}

}  // namespace

void configure(Level level, Format format) {
  g_format = format;
  logger().set_level(spdlog_level(level));
  if (format == Format::kJson) logger().set_pattern("%v");
}

Result<Level> parse_level(std::string_view word) {
  for (Level level : {Level::kDebug, Level::kInfo, Level::kWarn, Level::kError})
    if (word == level_word(level)) return level;
  return base::error(ErrorCode::kInvalid, "no log level '", word,
                     "'; use debug, info, warn or error");
}

Result<Format> parse_format(std::string_view word) {
  if (word == "text") return Format::kText;
  if (word == "json") return Format::kJson;
  return base::error(ErrorCode::kInvalid, "no log format '", word, "'; use text or json");
}

std::string text_line(std::string_view message, Fields fields) {
  std::string line(message);
  for (const Field& field : fields) {
    const bool plain = field.bare || (!field.text.empty() && !steers(field.text) &&
                                      field.text.find_first_of(" \"=") == std::string::npos);
    line.append(" ").append(field.key).append("=").append(plain ? field.text
                                                                : json_string(field.text));
  }
  return line;
}

std::string json_line(Level level, std::string_view time, std::string_view message, Fields fields) {
  std::string line = "{\"time\":" + json_string(time) +
                     ",\"level\":" + json_string(level_word(level)) +
                     ",\"message\":" + json_string(message);
  for (const Field& field : fields)
    line.append(",")
        .append(json_string(field.key))
        .append(":")
        .append(field.bare ? field.text : json_string(field.text));
  return line + "}";
}

void debug(std::string_view message, Fields fields) { write(Level::kDebug, message, fields); }
void info(std::string_view message, Fields fields) { write(Level::kInfo, message, fields); }
void warn(std::string_view message, Fields fields) { write(Level::kWarn, message, fields); }
void error(std::string_view message, Fields fields) { write(Level::kError, message, fields); }

}  // namespace base::log
