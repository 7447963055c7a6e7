#pragma once

#include <string>
#include <string_view>

#include "libs/net/testing/answer.h"
#include "libs/wire/admin.h"
#include "libs/wire/proof.h"

namespace controller {

inline constexpr std::string_view kTestRoute = "http://inside";

// What was asked of an executor that is reached at kTestRoute.
inline wire::Question question_of(const net::Request& request) {
  return {request.headers.find(wire::kNonceField).value_or(""), request.method,
          request.url.substr(kTestRoute.size()), request.body};
}

// What somebody answers who has `key` and was asked `question`.
inline net::Answer answer_with_proof(const wire::Health& health, std::string_view key,
                                     const wire::Question& question) {
  const std::string body = base::to_text(wire::to_json(health));
  return net::answer(200, body, {{wire::kProofField, wire::prove(key, question, body)}});
}

}  // namespace controller
