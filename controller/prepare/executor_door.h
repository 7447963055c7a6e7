#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "libs/base/result.h"
#include "libs/envd/sandbox.h"
#include "libs/net/transport.h"
#include "libs/wire/admin.h"
#include "libs/wire/proof.h"

namespace controller {

// The executor's small HTTP side, whose answers prove that they are its own. kDenied: it refuses
// our token, or another answers in its place; kConflict: an edge on the way turned us away, so
// nothing is known of the executor and our way in may be an old one; kNotFound: the edge says that
// the sandbox runs and nobody listens on the executor's port; kUnavailable: no executor answers.
class ExecutorDoor {
 public:
  virtual ~ExecutorDoor() = default;
  virtual base::Result<wire::Health> health(std::stop_token stop) = 0;
  virtual base::Result<wire::Activity> activity(std::stop_token stop) = 0;
  virtual base::Result<wire::Health> quiesce(const wire::Quiesce& quiesce,
                                             std::stop_token stop) = 0;
  virtual base::Result<wire::Health> resumed(const wire::Resumed& resumed,
                                             std::stop_token stop) = 0;
};

class HttpExecutorDoor final : public ExecutorDoor {
 public:
  HttpExecutorDoor(net::Transport& transport, envd::Route route, std::string admin_key,
                   std::string admin_token);
  base::Result<wire::Health> health(std::stop_token stop) override;
  base::Result<wire::Activity> activity(std::stop_token stop) override;
  base::Result<wire::Health> quiesce(const wire::Quiesce& quiesce, std::stop_token stop) override;
  base::Result<wire::Health> resumed(const wire::Resumed& resumed, std::stop_token stop) override;

 private:
  net::Reply send(const wire::Question& question, const std::string& token, std::stop_token stop);
  std::optional<base::WallTime> its_time(const net::Response& reply,
                                         const wire::Question& question) const;
  void tell_time(base::WallTime its_time, std::stop_token stop);
  template <typename Answer>
  base::Result<Answer> ask(std::string method, const std::string& path, std::string body,
                           base::Result<Answer> (*read)(const base::Json&), std::stop_token stop);
  net::Transport& transport_;
  const envd::Route route_;
  const std::string admin_key_, admin_token_;
};

}  // namespace controller
