#include "agentd/way/folder_watch.h"

#include <gtest/gtest.h>

#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/file_store.h"

namespace agentd {
namespace {

using aio::testing::kPatience;
using aio::testing::tell;

// A controller's store at work on its folders.
struct Site {
  Site() {
    std::filesystem::create_directory(folder / "manifests");
    open();
  }
  void open() {
    auto opened = manifests::FileStore::open({.manifests = folder / "manifests",
                                              .state = folder / "state",
                                              .removal_hold = base::Milliseconds(20)},
                                             clock);
    ASSERT_TRUE(opened) << opened.error().message;
    store = *std::move(opened);
    store->start();
  }
  void declare(const std::string& desired) {
    const std::string text =
        "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata:\n  name: box\nspec:\n"
        "  template:\n    id: base\n  desiredState: " +
        desired + "\n";
    EXPECT_TRUE(base::write_file_atomically(folder / "manifests" / "box.yaml", text, 0644));
  }

  const base::TemporaryFolder folder;
  base::SystemClock clock;
  std::unique_ptr<manifests::FileStore> store;
  aio::Loop loop;
  Standings standings{loop.executor()};
};

const wire::SandboxName kBox{"default", "box"};

aio::Task<bool> until(Standings& standings, Standing standing) {
  while (standings.standing(kBox) != standing) co_await standings.moved().wait();
  co_return true;
}
aio::Task<bool> becomes(Site& site, Standing standing) {
  co_return (co_await aio::within(until(site.standings, standing), kPatience)).value_or(false);
}

aio::Task<> follow(Site& site) {
  const FolderWatch watch(site.loop.executor(), site.standings, site.folder / "state");
  site.declare("Paused");
  EXPECT_TRUE(co_await becomes(site, Standing::kPaused));
  site.declare("Terminated");
  EXPECT_TRUE(co_await becomes(site, Standing::kEnded));
}
TEST(FolderWatch, TellsHowSandboxesOfAStateFolderStand) { tell(follow); }

aio::Task<> nobody_at_work(Site& site) {
  const FolderWatch watch(site.loop.executor(), site.standings, site.folder / "state");
  site.declare("Paused");
  EXPECT_TRUE(co_await becomes(site, Standing::kPaused));
  EXPECT_TRUE(site.store->close());
  site.store.reset();
  EXPECT_TRUE(co_await becomes(site, Standing::kUnknown));
  site.open();
  EXPECT_TRUE(co_await becomes(site, Standing::kPaused));
}
TEST(FolderWatch, KnowsNothingWhileNoControllerIsAtWork) { tell(nobody_at_work); }

}  // namespace
}  // namespace agentd
