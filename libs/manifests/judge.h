#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "libs/base/json.h"

namespace valijson {
class Schema;
class Validator;
}  // namespace valijson

namespace manifests {

// valijson's word on whether a value fits a schema.
class Judge {
 public:
  explicit Judge(const base::Json& schema);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;
  // Empty when it fits, else what was found.
  std::string objection(const base::Json& value) const;

 private:
  std::unique_ptr<valijson::Schema> schema_;
  mutable std::mutex mutex_;  // Of the validator, which keeps the patterns it compiled.
  std::unique_ptr<valijson::Validator> validator_;
};

}  // namespace manifests
