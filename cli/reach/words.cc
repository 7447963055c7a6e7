#include "cli/reach/words.h"

namespace cli {

std::string dropped(std::int64_t bytes, std::string_view output) {
  return "the first " + std::to_string(bytes) + " bytes of its " + std::string(output) +
         " are gone: no more is kept";
}

std::string unknown(const std::string& why) { return "what became of it is not known: " + why; }

}  // namespace cli
