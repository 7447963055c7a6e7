#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "local_e2b/control/box_host.h"

namespace local_e2b {

// Boxes that exist in the books only, for measuring those who drive a provider: making, freezing
// and ending one costs nothing, and the ports of all of them lead to one process.
class BookkeepingHost final : public BoxHost {
 public:
  struct Inside {
    pid_t pid = 0;  // Of the process that answers for all of them.
    std::string envd_version;
    std::map<int, int> ports;  // Of 127.0.0.1, by the port inside.
    // Then every box is dead, and no new one can be made.
    std::function<bool()> has_ended = [] { return false; };
  };
  explicit BookkeepingHost(Inside inside) : inside_(std::move(inside)) {}

  aio::Task<base::Result<BoxRecord>> create(BoxSpec spec) override;
  std::optional<std::string> objection_to_freeze(const BoxRecord* box = nullptr) const override;
  aio::Task<base::Result<base::Done>> freeze(BoxRecord box) override;
  aio::Task<base::Result<base::Done>> thaw(BoxRecord box) override;
  aio::Task<base::Result<base::Done>> destroy(BoxRecord box) override;
  aio::Task<bool> frozen(BoxRecord box) override;
  aio::Task<std::vector<std::string>> dead_of(std::vector<BoxRecord> boxes) override;
  aio::Task<> trim_logs(std::vector<BoxRecord> boxes) override;
  aio::Task<std::vector<std::string>> destroy_orphans() override;
  aio::Task<Swept> destroy_unknown(std::vector<BoxRecord> known) override;
  aio::Task<base::Result<std::string>> init(BoxRecord box, EnvdInit init) override;
  aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(BoxRecord box, int port) override;

 private:
  const Inside inside_;
  std::set<std::string> frozen_;
};

}  // namespace local_e2b
