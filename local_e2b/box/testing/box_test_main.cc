#include <gtest/gtest.h>

#include "local_e2b/box/box.h"

// The test program is the builder of its own boxes.
int main(int argc, char** argv) {
  if (const auto exit_code = local_e2b::run_box_builder(argc, argv)) return *exit_code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
