#include "executor/filesystem/seam.h"

namespace executor {

bool left_out(Mechanism) { return false; }
void reached(Step, std::string_view) {}

}  // namespace executor
