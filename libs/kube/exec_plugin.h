#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/kube/config.h"

namespace kube {

inline constexpr std::size_t kPluginOutputMax = 1u << 20;

struct PluginAnswer {
  std::string token = {};
  std::string certificate = {}, key = {};  // PEM.
  std::optional<base::WallTime> expires = {};
  bool operator==(const PluginAnswer&) const = default;
};

// What a plugin printed: an ExecCredential of the version that it was asked in.
base::Result<PluginAnswer> read_plugin_answer(const ExecPlugin& plugin, std::string_view printed);

// Runs the plugin in a process group of its own, without a terminal, and reads its answer. One that
// takes longer than `timeout`, prints more than kPluginOutputMax, or is in the way of `stop` is
// killed with all that it started. Its standard output is shown to nobody, and of its standard
// error the end, on one line.
base::Result<PluginAnswer> run_plugin(const ExecPlugin& plugin, const Cluster& cluster,
                                      base::Milliseconds timeout, std::stop_token stop);

}  // namespace kube
