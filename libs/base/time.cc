#include "libs/base/time.h"

#include <time.h>

#include <cstdio>
#include <cstring>

namespace base {
namespace {

WallTime from_calendar(std::tm calendar, Milliseconds rest) {
  return WallTime(Seconds(timegm(&calendar))) + rest;
}

std::tm to_calendar(WallTime time) {
  const std::time_t seconds = std::chrono::floor<Seconds>(time).time_since_epoch().count();
  std::tm calendar{};
  gmtime_r(&seconds, &calendar);
  return calendar;
}

bool in_range(const std::tm& calendar) {
  return calendar.tm_mon >= 0 && calendar.tm_mon < 12 && calendar.tm_mday >= 1 &&
         calendar.tm_mday <= 31 && calendar.tm_hour >= 0 && calendar.tm_hour < 24 &&
         calendar.tm_min >= 0 && calendar.tm_min < 60 && calendar.tm_sec >= 0 &&
         calendar.tm_sec <= 60;
}

}  // namespace

std::string to_rfc3339(WallTime time) {
  const std::tm calendar = to_calendar(time);
  const auto rest = (time - std::chrono::floor<Seconds>(time)).count();
  char text[40];
  std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &calendar);
  std::string made(text, length);
  if (rest != 0) {
    std::snprintf(text, sizeof text, ".%03d", static_cast<int>(rest));
    made += text;
  }
  return made + "Z";
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  const Error bad = error(ErrorCode::kInvalid, "not an RFC 3339 time: '", text, "'");
  std::tm calendar{};
  int used = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &calendar.tm_year,
                  &calendar.tm_mon, &calendar.tm_mday, &calendar.tm_hour, &calendar.tm_min,
                  &calendar.tm_sec, &used) != 6 ||
      used != 19)
    return bad;
  calendar.tm_year -= 1900;
  calendar.tm_mon -= 1;
  if (!in_range(calendar)) return bad;

  std::size_t at = 19;
  long fraction = 0;
  if (at < copy.size() && copy[at] == '.') {
    const std::size_t start = ++at;
    long unit = 100;
    for (; at < copy.size() && copy[at] >= '0' && copy[at] <= '9'; ++at, unit /= 10)
      fraction += (copy[at] - '0') * unit;
    if (at == start) return bad;
  }
  const std::string zone = copy.substr(at);
  if (zone == "Z" || zone == "z") return from_calendar(calendar, Milliseconds(fraction));
  int hours = 0, minutes = 0;
  char sign = 0;
  if (zone.size() != 6 || std::sscanf(zone.c_str(), "%c%2d:%2d", &sign, &hours, &minutes) != 3 ||
      (sign != '+' && sign != '-'))
    return bad;
  const auto offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  const WallTime local = from_calendar(calendar, Milliseconds(fraction));
  return sign == '+' ? local - offset : local + offset;
}

Result<WallTime> parse_http_date(std::string_view text) {
  std::tm calendar{};
  const std::string copy(text);
  const char* end = strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &calendar);
  if (end == nullptr || *end != '\0')
    return error(ErrorCode::kInvalid, "not an HTTP date: '", text, "'");
  return from_calendar(calendar, Milliseconds(0));
}

std::string to_http_date(WallTime time) {
  const std::tm calendar = to_calendar(time);
  char text[64];
  return std::string(text,
                     std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &calendar));
}

}  // namespace base
