#pragma once

#include <memory>
#include <string>

#include "libs/base/json.h"

namespace valijson {
class Schema;
}

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
};

}  // namespace manifests
