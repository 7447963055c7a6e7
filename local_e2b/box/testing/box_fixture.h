#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "local_e2b/box/box.h"

namespace local_e2b {

// Real boxes on this machine, each with testing/shell_init.cc as its executor. Skips, naming the
// reason, where the machine cannot hold boxes. What a test leaves is destroyed after it.
class BoxTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  BoxSettings settings() const;
  BoxRecord make(const std::string& id);
  // A connection to the shell inside, or none.
  base::Fd connect(const BoxRecord& box);
  // What a shell command prints inside, as root of the box.
  std::string run(const BoxRecord& box, const std::string& command);

  // Reasons why something of boxes is still there: cgroups, folders, mounts of the host's,
  // processes of this user that see the state folder in their mounts; empty when nothing is.
  std::string leftovers() const;

  Capabilities machine_;
  // In memory, because a test leaves hardly anything to keep and the disk is slow to forget.
  std::filesystem::path parent_ = "/dev/shm";
  std::filesystem::path state_;
  std::string cgroup_name_;
  std::unique_ptr<Boxes> boxes_;
};

// The same with the state folder on the disk, as it is in life.
inline constexpr char kOnDisk[] = "/var/tmp";
class BoxOnDiskTest : public BoxTest {
 protected:
  BoxOnDiskTest() { parent_ = kOnDisk; }
};

// When a test program that root started runs itself as an ordinary user: its init for boxes, which
// this user might not reach where it was built.
inline constexpr char kInitVariable[] = "SANDFLEET_TEST_BOX_INIT";

}  // namespace local_e2b
