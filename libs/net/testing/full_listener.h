#pragma once

#include <string>
#include <vector>

#include "libs/base/fd.h"

namespace net {

// A port of this machine at which connecting does not end: its queue is full, and nobody accepts.
class FullListener {
 public:
  FullListener();
  const std::string& url() const { return url_; }  // "http://127.0.0.1:PORT"

 private:
  base::Fd listener_;
  std::vector<base::Fd> waiting_;
  std::string url_;
};

}  // namespace net
