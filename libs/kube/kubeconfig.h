#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "libs/kube/config.h"

// The kubeconfig format: one context read out of one or several files. Only what that context uses
// is judged, beside each file's outline.
namespace kube {

struct KubeconfigFile {
  std::filesystem::path path;  // Relative names in it start from its folder.
  std::string text;
};

// Of entries with one name, and of current-context, the first file's counts.
base::Result<Config> read_kubeconfig(const std::vector<KubeconfigFile>& files,
                                     const std::string& context);

}  // namespace kube
