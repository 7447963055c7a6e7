#include "libs/manifests/judge.h"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "libs/base/strings.h"

namespace manifests {

using base::Json;

Judge::Judge(const Json& schema)
    : schema_(std::make_unique<valijson::Schema>()),
      validator_(std::make_unique<valijson::Validator>()) {
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), *schema_);
}

Judge::~Judge() = default;

std::string Judge::objection(const Json& value) const {
  std::lock_guard lock(mutex_);
  try {
    valijson::ValidationResults results;
    const valijson::adapters::NlohmannJsonAdapter target(value);
    if (validator_->validate(*schema_, target, &results)) return "";
    valijson::ValidationResults::Error error;
    if (!results.popError(error)) return "no reason given";
    return base::join(error.context, "") + " " + error.description;
  } catch (const std::exception& exception) {
    return exception.what();
  }
}

}  // namespace manifests
