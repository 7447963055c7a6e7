#include "cli/logs/line_tail.h"

namespace cli {

void LineTail::look(std::string_view block) {
  while (!found_ && !block.empty()) {
    const bool newline = block.back() == '\n';
    if (newline && at_ != end_ && --left_ == 0) found_ = at_;
    block.remove_suffix(1);
    if (!found_) --at_;
  }
  if (at_ == 0 && !found_) found_ = 0;
}

}  // namespace cli
