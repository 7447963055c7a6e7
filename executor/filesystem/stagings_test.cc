#include "executor/filesystem/stagings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/filesystem/staging.h"
#include "executor/filesystem/testing/seam.h"
#include "executor/filesystem/testing/tree.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

Place place(const Tree& tree, std::string_view name) { return *find_place(tree / name); }

std::string begun(Stagings& stagings, const Place& place) { return code_of(stagings.begin(place)); }

std::string name_of(const Tree& tree, const Staging& staging) {
  return fs::path(staging.path()).lexically_relative(tree.path()).string();
}

// covers: A1
TEST(Staging, OfAFileHasNoNameBeforeItIsWhole) {
  const Tree tree;
  tree.make_folder("folder");
  const Place there = place(tree, "folder/file");
  auto staging = tree.stagings->begin_file(there);
  ASSERT_TRUE(staging.ok()) << staging.error().message;
  ASSERT_TRUE(staging->write_at(0, "bytes").ok());
  EXPECT_EQ(tree.everything(), std::vector<std::string>{"folder"});
  ASSERT_TRUE(staging->name_content(there).ok());
  const std::string name = name_of(tree, *staging);
  EXPECT_EQ(tree.everything(), (std::vector<std::string>{"folder", name}));
  EXPECT_TRUE(is_staged_name(fs::path(name).filename().string()));
  EXPECT_EQ(tree.mode(name), 0600u);
  EXPECT_EQ(tree.read(name), "bytes");
  staging->clear();
  EXPECT_EQ(tree.everything(), std::vector<std::string>{"folder"});
}

// covers: A1
TEST(Staging, IsAPrivateFolderWithAPrivateFileWhereAFileMustHaveAName) {
  const Tree tree;
  tree.make_folder("folder");
  const Without nameless(Mechanism::kNameless);
  const auto staging = tree.stagings->begin_file(place(tree, "folder/file"));
  ASSERT_TRUE(staging.ok()) << staging.error().message;
  const std::string inside = name_of(tree, *staging);
  EXPECT_EQ(fs::path(inside).parent_path(), "folder");
  EXPECT_EQ(tree.mode(inside), 0700u);
  EXPECT_EQ(tree.mode(inside + "/content"), 0600u);
}

// covers: A1
TEST(Staging, TakesBytesInOrderAndAgain) {
  const Tree tree;
  const Without nameless(Mechanism::kNameless);
  auto staging = tree.stagings->begin_file(place(tree, "file"));
  ASSERT_TRUE(staging.ok());
  EXPECT_TRUE(staging->write_at(0, "hello ").ok());
  EXPECT_TRUE(staging->write_at(6, "there").ok());
  EXPECT_TRUE(staging->write_at(4, "o ther").ok());  // Sent again after a cut.
  EXPECT_EQ(staging->size(), 11u);
  EXPECT_EQ(code_of(staging->write_at(12, "x")), "FS_IO_ERROR");
  EXPECT_EQ(*base::read_file(staging->path() + "/content"), "hello there");
  EXPECT_EQ(tree.stagings->bytes(), 11u);
}

// covers: A1 A5
TEST(Staging, LeavesNothing) {
  const Tree tree;
  const Without nameless(Mechanism::kNameless);
  {
    auto staging = tree.stagings->begin_file(place(tree, "file"));
    ASSERT_TRUE(staging->write_at(0, "bytes").ok());
    EXPECT_EQ(tree.stagings->count(), 1u);
    const Staging moved = *std::move(staging);
    EXPECT_EQ(tree.leftovers(), 1u);
  }
  EXPECT_EQ(tree.stagings->count(), 0u);
  EXPECT_EQ(tree.stagings->bytes(), 0u);
  EXPECT_EQ(tree.leftovers(), 0u);
  const Without clearing(Mechanism::kClearing);
  EXPECT_EQ(begun(*tree.stagings, place(tree, "file")), "");
  EXPECT_EQ(tree.leftovers(), 1u);
}

TEST(Stagings, AreSoManyAtMost) {
  const Tree tree;
  const auto stagings = tree.reopened({.stagings = 2});
  auto first = stagings->begin(place(tree, "file"));
  ASSERT_TRUE(first.ok());
  {
    const auto second = stagings->begin(place(tree, "file"));
    ASSERT_TRUE(second.ok());
    const auto third = stagings->begin(place(tree, "file"));
    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.error().code, base::ErrorCode::kRateLimited);
  }
  EXPECT_EQ(begun(*stagings, place(tree, "file")), "");
}

TEST(Stagings, HoldSoManyBytesAtMost) {
  const Tree tree;
  const auto stagings = tree.reopened({.file_bytes = 10, .bytes = 15});
  auto first = stagings->begin_file(place(tree, "one"));
  EXPECT_TRUE(first->write_at(0, "0123456789").ok());
  EXPECT_EQ(code_of(first->write_at(10, "0")), "FS_TOO_LARGE");
  EXPECT_TRUE(first->write_at(5, "56789").ok());
  {
    auto second = stagings->begin_file(place(tree, "two"));
    EXPECT_TRUE(second->write_at(0, "01234").ok());
    const auto more = second->write_at(5, "5");
    ASSERT_FALSE(more.ok());
    EXPECT_EQ(more.error().code, base::ErrorCode::kRateLimited);
  }
  auto third = stagings->begin_file(place(tree, "three"));
  EXPECT_TRUE(third->write_at(0, "01234").ok());
}

// Leaves stagings in these folders as a crash would.
void crash_while_writing_in(const Tree& tree, const std::vector<std::string>& folders) {
  const Without nameless(Mechanism::kNameless);
  EXPECT_TRUE(ends_abruptly([&] {
    std::vector<Staging> begun;
    const auto stagings = tree.reopened();
    for (const std::string& folder : folders) {
      auto staging = stagings->begin_file(place(tree, folder + "/file"));
      if (!staging || !staging->write_at(0, "half")) return;
      begun.push_back(*std::move(staging));
    }
    ::_exit(kAbruptEnd);
  }));
}

// covers: A5
TEST(Stagings, OfACrashGoAtTheNextStart) {
  Tree tree;
  for (const char* folder : {"a", "b\n\xff", "c"}) tree.make_folder(folder);
  tree.make_folder("a/.sandfleet-staged-private-00000000-0000000000000000");
  tree.stagings.reset();
  crash_while_writing_in(tree, {"a", "a", "b\n\xff", "c"});
  ASSERT_EQ(tree.leftovers(), 5u);
  fs::remove_all(tree.path() / "c");
  {
    const Without sweep(Mechanism::kSweep);
    EXPECT_EQ(tree.reopened()->swept(), 0u);
    EXPECT_EQ(tree.leftovers(), 4u);
  }
  // Another executor's, by another runtime folder, is none of ours.
  EXPECT_EQ(tree.reopened()->swept(), 3u);
  EXPECT_EQ(tree.leftovers(), 1u);
  EXPECT_EQ(tree.reopened()->swept(), 0u);
}

// covers: A5
TEST(Stagings, WhatCannotBeSweptIsTriedAgain) {
  Tree tree;
  tree.make_folder("a");
  tree.stagings.reset();
  crash_while_writing_in(tree, {"a"});
  fs::rename(tree.path() / "a", tree.path() / "moved");
  tree.link("a", "moved");
  EXPECT_EQ(tree.reopened()->swept(), 0u);  // Not through a link.
  EXPECT_EQ(tree.leftovers(), 1u);
  fs::remove(tree.path() / "a");
  fs::rename(tree.path() / "moved", tree.path() / "a");
  EXPECT_EQ(tree.reopened()->swept(), 1u);
  EXPECT_EQ(tree.leftovers(), 0u);
}

// covers: A5
TEST(Stagings, ARecordThatWasCutOffIsReadAsFarAsItGoes) {
  Tree tree;
  tree.make_folder("a");
  tree.stagings.reset();
  crash_while_writing_in(tree, {"a"});
  const fs::path record = tree.runtime() / "staged-folders";
  const std::string whole = *base::read_file(record);
  const struct {
    std::string text;
    std::size_t swept;
  } kCases[] = {
      {"", 0}, {"garbage", 0}, {whole.substr(0, whole.size() - 1), 0}, {whole + "/cut off", 1}};
  for (const auto& one : kCases) {
    ASSERT_TRUE(base::write_file_atomically(record, one.text, 0600).ok());
    EXPECT_EQ(tree.reopened()->swept(), one.swept);
  }
}

TEST(Stagings, TheRecordStaysSmall) {
  const Tree tree;
  const auto stagings = tree.reopened({.folders = 5});
  const auto recorded = [&](std::string_view folder) {
    return base::read_file(tree.runtime() / "staged-folders")->find(tree / folder) !=
           std::string::npos;
  };
  tree.make_folder("busy");
  const auto busy = stagings->begin(place(tree, "busy/file"));
  ASSERT_TRUE(busy.ok());
  for (const char* folder : {"a", "b", "c", "d"}) {
    tree.make_folder(folder);
    ASSERT_EQ(begun(*stagings, place(tree, std::string(folder) + "/file")), "");
    ASSERT_EQ(begun(*stagings, place(tree, std::string(folder) + "/other")), "");
  }
  EXPECT_TRUE(recorded("a") && recorded("d"));
  // Those in which something still is stay in it.
  tree.make_folder("e");
  ASSERT_EQ(begun(*stagings, place(tree, "e/file")), "");
  EXPECT_TRUE(recorded("busy") && recorded("e"));
  EXPECT_FALSE(recorded("a") || recorded("d"));
}

}  // namespace
}  // namespace executor
