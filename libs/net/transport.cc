#include "libs/net/transport.h"

#include <algorithm>

#include "libs/base/strings.h"

namespace net {
namespace {

constexpr std::string_view kHidden = "<hidden>";

// Values of these are worth stealing.
bool is_secret(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "x-api-key",           "authorization", "x-access-token", "e2b-traffic-access-token",
      "proxy-authorization", "cookie",        "set-cookie",     "x-admin-token",
      "x-amz-security-token"};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view secret) {
    return base::equal_ignoring_case(name, secret);
  });
}

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool has_control(std::string_view text, bool blank_allowed) {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (blank_allowed && (c == '\t' || c == ' ')) return false;
    return byte <= 0x20 || byte == 0x7f;
  });
}

Failure refuse(std::string message) {
  return Failure{{base::ErrorCode::kInvalid, std::move(message)}, false};
}

}  // namespace

void Headers::add(std::string name, std::string value) {
  all_.push_back({std::move(name), std::move(value)});
}

std::optional<std::string> Headers::find(std::string_view name) const {
  for (const Header& header : all_)
    if (base::equal_ignoring_case(header.name, name)) return header.value;
  return std::nullopt;
}

std::string describe_url(std::string_view url) {
  const std::size_t fragment = url.find('#');
  if (fragment != std::string_view::npos) url = url.substr(0, fragment);
  const std::size_t query_at = url.find('?');
  std::string text(url.substr(0, query_at));

  const std::size_t scheme = text.find("://");
  const std::size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  const std::size_t path = std::min(text.find('/', host), text.size());
  const std::size_t user_end = text.rfind('@', path);
  if (user_end != std::string::npos && user_end >= host) text.erase(host, user_end + 1 - host);

  if (query_at == std::string_view::npos) return text;
  char separator = '?';
  for (const std::string& pair : base::split(url.substr(query_at + 1), '&')) {
    text += separator;
    text += pair.substr(0, pair.find('='));
    text += "=";
    text += kHidden;
    separator = '&';
  }
  return text;
}

std::string describe(const Headers& headers) {
  std::string text;
  for (const Header& header : headers.all()) {
    if (!text.empty()) text += ", ";
    text += header.name + ": ";
    text += is_secret(header.name) ? kHidden : std::string_view(header.value);
  }
  return text;
}

std::string describe(const Request& request) {
  std::string text = request.method + " " + describe_url(request.url);
  if (!request.headers.all().empty()) text += " [" + describe(request.headers) + "]";
  if (request.source) return text + " body: streamed";
  return text + " body: " + std::to_string(request.body.size()) + " bytes";
}

base::ErrorCode code_of_status(int status) {
  switch (status) {
    case 401:
    case 403:
      return base::ErrorCode::kDenied;
    case 404:
      return base::ErrorCode::kNotFound;
    case 409:
      return base::ErrorCode::kConflict;
    case 429:
      return base::ErrorCode::kRateLimited;
    case 408:
      return base::ErrorCode::kUnavailable;
    default:
      return status >= 400 && status < 500 ? base::ErrorCode::kInvalid
                                           : base::ErrorCode::kUnavailable;
  }
}

base::Error error_of(std::string_view what, const Failure& failure) {
  return {failure.code, std::string(what) + ": " + failure.message, failure.retry_after};
}

std::string tame(std::string_view text, std::string_view secret) {
  std::string tamed = base::on_one_line(text);
  for (std::size_t at = 0; !secret.empty() && (at = tamed.find(secret, at)) != std::string::npos;
       at += kHidden.size())
    tamed.replace(at, secret.size(), kHidden);
  if (tamed.size() <= kTamedBytesMax) return tamed;
  return std::string(base::cut(tamed, kTamedBytesMax)) + "...";
}

std::string base_url(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::optional<Failure> objection_to(const Request& request) {
  if (!is_token(request.method)) return refuse("the method is not an HTTP token");
  const std::string scheme = base::lower(request.url.substr(0, request.url.find("://")));
  if ((scheme != "http" && scheme != "https") || has_control(request.url, false))
    return refuse("not an http:// or https:// URL: '" + describe_url(request.url) + "'");
  for (const Header& header : request.headers.all()) {
    if (!is_token(header.name)) return refuse("a header's name is not an HTTP token");
    if (has_control(header.value, true))
      return refuse("header " + header.name + " has a control character in its value");
  }
  if (request.source && !request.body.empty())
    return refuse("a request has a body or a source, not both");
  return std::nullopt;
}

}  // namespace net
