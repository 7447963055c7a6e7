#include "cli/reach/way.h"

#include <algorithm>

#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/wire/frames/message.h"

namespace cli {

using base::error;
using base::ErrorCode;
using base::Result;

namespace {

std::string first_of(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts)
    if (!text.empty()) return std::string(text);
  return "";
}

// Where names without one are looked for; a cluster that cannot be had has no say.
std::string space_for(const Options& options, const Surroundings& around) {
  if (!options.space.empty()) return options.space;
  const auto place = choose_place(options, around);
  return place && place->cluster ? place->cluster->space : "default";
}

bool is_of_a_token(char byte) { return byte >= '!' && byte <= '~'; }

}  // namespace

Result<Way> choose_way(const Options& options, const std::string& named,
                       const Surroundings& around) {
  const std::string text = first_of({named, around.sandbox});
  if (text.empty())
    return error(ErrorCode::kInvalid,
                 "which sandbox? Name it, as [NAMESPACE/]NAME, or set SANDFLEET_SANDBOX");
  if (!options.token_file.empty() && !options.service_account.empty())
    return error(ErrorCode::kInvalid, "--token-file and --service-account: give one");
  const bool has_slash = text.find('/') != std::string::npos;
  const Words words = has_slash ? read_words({text}) : Words{.names = {text}};
  const auto parts = base::split(words.names[0], '/');
  const bool spaced = parts.size() == 2;
  if (words.subject != Subject::kSandboxes || parts.size() > 2 || parts.back().empty() ||
      parts.front().empty())
    return error(ErrorCode::kInvalid, "\"", text, "\" is no sandbox; name it as [NAMESPACE/]NAME");
  if (spaced && !options.space.empty() && options.space != parts[0])
    return error(ErrorCode::kInvalid, "\"", text, "\" is not in namespace ", options.space,
                 ": leave one of the two out");
  return Way{.socket = first_of({options.socket, around.socket, around.socket_of_user, kSocket}),
             .sandbox = {spaced ? parts[0] : space_for(options, around), parts.back()},
             .token_file = options.service_account.empty()
                               ? first_of({options.token_file, around.token_file})
                               : "",
             .service_account = options.service_account};
}

std::function<Result<wire::Credential>()> credential_from(const std::string& token_file) {
  return [token_file]() -> Result<wire::Credential> {
    if (token_file.empty()) return wire::Credential(std::optional<std::string>());
    TRY(const auto text, base::read_file(token_file));
    std::string token(base::trim(text));
    if (token.empty()) return error(ErrorCode::kNotFound, "there is no token in ", token_file);
    if (token.size() > wire::kTokenBytesMax || !std::ranges::all_of(token, is_of_a_token))
      return error(ErrorCode::kInvalid, token_file, " holds no token");
    return wire::Credential(std::optional<std::string>(std::move(token)));
  };
}

base::Error to_error(const wire::Failure& failure) {
  using Code = wire::FailureCode;
  switch (failure.code) {
    case Code::kNotFound:
    case Code::kLost:
      return error(ErrorCode::kNotFound, failure.message);
    case Code::kDenied:
      return error(ErrorCode::kDenied, failure.message);
    case Code::kConflict:
      return error(ErrorCode::kConflict, failure.message);
    default:
      return error(ErrorCode::kUnavailable, failure.message);
  }
}

}  // namespace cli
