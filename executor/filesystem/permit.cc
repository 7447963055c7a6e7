#include "executor/filesystem/permit.h"

#include "executor/filesystem/seam.h"

namespace executor {

bool permits(const Permission& permission, const std::string& key) {
  return left_out(Mechanism::kFence) || may_change(writable_roots(permission), key);
}

FsResult<base::Done> permit(const Permission& permission, const std::string& key) {
  if (permits(permission, key)) return base::Done{};
  return fs_error(FsCode::kSandboxDenied, "the permission mode ", wire::to_word(permission.mode),
                  " does not allow changing ", key);
}

}  // namespace executor
