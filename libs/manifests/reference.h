#pragma once

#include <string>
#include <string_view>

namespace manifests {

// docs/api.md, from the CRDs.
std::string api_page();
// docs/conditions.md, from the text of libs/api/reasons.h.
std::string conditions_page(std::string_view reasons);

}  // namespace manifests
