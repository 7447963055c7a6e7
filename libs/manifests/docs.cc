// manifests_docs FOLDER: writes the pages that the CRDs and the catalogue of reasons know best.
#include <cstdio>
#include <filesystem>

#include "libs/base/files.h"
#include "libs/manifests/reference.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: manifests_docs FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto reasons =
      base::read_file(std::filesystem::path(SANDFLEET_SOURCE) / "libs/api/reasons.h");
  if (!reasons) {
    std::fprintf(stderr, "manifests_docs: %s\n", reasons.error().message.c_str());
    return 1;
  }
  for (const auto& [name, page] :
       {std::pair("api.md", manifests::api_page()),
        std::pair("conditions.md", manifests::conditions_page(*reasons))}) {
    const auto written = base::write_file_atomically(folder / name, page, 0644);
    if (!written) {
      std::fprintf(stderr, "manifests_docs: %s\n", written.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
