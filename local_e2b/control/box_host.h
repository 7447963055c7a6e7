#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/aio/stream.h"
#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "local_e2b/box/box.h"

namespace local_e2b {

inline constexpr int kEnvdPort = 49983;

// What envd is told by POST /init.
struct EnvdInit {
  std::string access_token;
  std::map<std::string, std::string> env = {};
  bool set_env = false;  // A resumed sandbox keeps those it has.
};

// What the fleet needs of boxes: without threads, root or processes when it is a fake.
class BoxHost {
 public:
  virtual ~BoxHost() = default;
  virtual aio::Task<base::Result<BoxRecord>> create(BoxSpec spec) = 0;
  // Why that box, or without one any new box, can never be frozen; nothing when it can.
  virtual std::optional<std::string> objection_to_freeze(const BoxRecord* box = nullptr) const = 0;
  virtual aio::Task<base::Result<base::Done>> freeze(BoxRecord box) = 0;
  virtual aio::Task<base::Result<base::Done>> thaw(BoxRecord box) = 0;
  virtual aio::Task<base::Result<base::Done>> destroy(BoxRecord box) = 0;
  virtual aio::Task<bool> frozen(BoxRecord box) = 0;
  virtual aio::Task<std::vector<std::string>> dead_of(std::vector<BoxRecord> boxes) = 0;
  virtual aio::Task<> trim_logs(std::vector<BoxRecord> boxes) = 0;
  virtual aio::Task<std::vector<std::string>> destroy_orphans() = 0;
  virtual aio::Task<Swept> destroy_unknown(std::vector<BoxRecord> known) = 0;
  // Waits until envd answers, then tells it; its version.
  virtual aio::Task<base::Result<std::string>> init(BoxRecord box, EnvdInit init) = 0;
  // kUnavailable when nothing listens on the port inside.
  virtual aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(BoxRecord box, int port) = 0;
};

}  // namespace local_e2b
