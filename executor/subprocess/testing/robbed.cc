#include "executor/subprocess/testing/robbed.h"

#include <signal.h>

#include <utility>

#include "libs/aio/loop.h"

namespace executor::testing {
namespace {

// Never destroyed, as they may outlive the loop that they are of.
std::vector<std::unique_ptr<Containment>>& left_behind() {
  static auto& all = *new std::vector<std::unique_ptr<Containment>>();
  return all;
}

class RobbedContainment final : public Containment {
 public:
  RobbedContainment(aio::Executor executor, std::unique_ptr<Containment> whole,
                    std::shared_ptr<const Mechanisms> mechanisms)
      : whole_(std::move(whole)), mechanisms_(std::move(mechanisms)), ended_(executor) {}

  ~RobbedContainment() override {
    if (!mechanisms_->end_with_us) left_behind().push_back(std::move(whole_));
  }

  aio::Task<base::Result<base::Done>> watch(const TreeNews& news) override {
    const TreeNews overheard{.begun =
                                 [this, &news](pid_t pid) {
                                   command_ = pid;
                                   news.begun(pid);
                                 },
                             .exited =
                                 [this, &news](const Exit& exit) {
                                   news.exited(exit);
                                   exited_ = true;
                                   ended_.notify_all();
                                 }};
    std::optional<base::Result<base::Done>> emptied;
    co_await aio::race(aio::keep_result(whole_->watch(overheard), emptied), until_believed());
    if (!mechanisms_->proof && exited_) co_return base::Done{};
    co_return *std::move(emptied);
  }

  std::vector<pid_t> members() const override { return whole_->members(); }

  base::Result<base::Done> kill() override {
    if (mechanisms_->kill_of_the_tree) return whole_->kill();
    if (command_ > 1) ::kill(-command_, SIGKILL);
    return base::Done{};
  }

 private:
  aio::Task<> until_believed() {
    while (mechanisms_->proof || !exited_) co_await ended_.wait();
  }

  std::unique_ptr<Containment> whole_;
  std::shared_ptr<const Mechanisms> mechanisms_;
  aio::Condition ended_;
  bool exited_ = false;
  pid_t command_ = 0;
};

class RobbedContainments final : public Containments {
 public:
  RobbedContainments(aio::Executor executor, std::unique_ptr<Containments> whole,
                     std::shared_ptr<const Mechanisms> mechanisms)
      : executor_(std::move(executor)),
        whole_(std::move(whole)),
        mechanisms_(std::move(mechanisms)) {}

  base::Result<Contained> begin(Launch launch) override {
    TRY(Contained contained, whole_->begin(std::move(launch)));
    contained.tree =
        std::make_unique<RobbedContainment>(executor_, std::move(contained.tree), mechanisms_);
    return contained;
  }

 private:
  aio::Executor executor_;
  std::unique_ptr<Containments> whole_;
  std::shared_ptr<const Mechanisms> mechanisms_;
};

}  // namespace

std::unique_ptr<Containments> rob(aio::Executor executor,
                                  std::unique_ptr<Containments> containments,
                                  std::shared_ptr<const Mechanisms> mechanisms) {
  return std::make_unique<RobbedContainments>(std::move(executor), std::move(containments),
                                              std::move(mechanisms));
}

}  // namespace executor::testing
