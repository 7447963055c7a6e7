#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cli/testing/inside.h"
#include "libs/base/testing/eventually.h"

namespace cli {

// What others have left: a command whose output is kept.
class Left : public Inside {
 protected:
  Left() {
    with([&](ScriptedProcesses& processes) { processes.add_detached(kHandle, "notes"); });
  }
  void write(const std::string& text) {
    with([&](ScriptedProcesses& processes) { processes.write(kHandle, text); });
  }
  void finish(std::int64_t code) {
    with([&](ScriptedProcesses& processes) { processes.finish(kHandle, code); });
  }
  void see(const std::string& text) {
    EXPECT_TRUE(base::eventually([&] { return shown() == text; })) << shown();
  }

  void rush(const ScriptedProcesses::Rush& rush) {
    with([&](ScriptedProcesses& processes) { processes.rush(kHandle, rush); });
  }
  int readings() {
    int readings = 0;
    with([&](ScriptedProcesses& processes) { readings = processes.readings(); });
    return readings;
  }

  int ended() {
    int ended = 0;
    with([&](ScriptedProcesses& processes) { ended = processes.sessions_ended(); });
    return ended;
  }

  const std::string kHandle = std::string(16, 'a');
};

}  // namespace cli
