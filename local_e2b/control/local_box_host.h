#pragma once

#include "libs/aio/background.h"
#include "local_e2b/control/box_host.h"

namespace local_e2b {

// The boxes of this machine, worked on by background threads.
class LocalBoxHost final : public BoxHost {
 public:
  LocalBoxHost(Boxes& boxes, aio::Background& background, const base::Clock& clock)
      : boxes_(boxes), background_(background), clock_(clock) {}

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
  aio::Task<base::Result<base::Done>> wait_for_envd(BoxRecord box);

  Boxes& boxes_;
  aio::Background& background_;
  const base::Clock& clock_;
};

}  // namespace local_e2b
