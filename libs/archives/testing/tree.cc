#include "libs/archives/testing/tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include "libs/base/crypto.h"

namespace archives::testing {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return base::to_hex(base::sha256(content.str()));
}

class Gardener {
 public:
  explicit Gardener(unsigned seed) : random_(seed) {}

  void grow(const fs::path& top, int entries) {
    folders_ = {top};
    for (int i = 0; i < entries; ++i) plant(pick(folders_) / name(i));
    // From the innermost on, so that no folder changes after its time was set.
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder)
      weather(*folder, 0700 | below(0100));
  }

 private:
  unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }
  fs::path pick(const std::vector<fs::path>& among) {
    return among[below(static_cast<unsigned>(among.size()))];
  }
  // Long ones too, with spaces, newlines and bytes that are no text.
  std::string name(int number) {
    static const char* const kBeginnings[] = {
        "a", "with space", "new\nline", "\xc3\xa9t\xc3\xa9", "\xff\xfe", "-dash", "tab\t", "*?[x]"};
    std::string made = std::string(kBeginnings[below(8)]) + std::to_string(number);
    if (below(8) == 0) made += std::string(below(150), 'n');
    return made;
  }
  void weather(const fs::path& path, mode_t mode) {
    const std::timespec times[2] = {{1, 0},
                                    {1'000'000'000 + below(500'000'000), below(1'000'000'000)}};
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  void plant(const fs::path& path) {
    const unsigned kind = below(12);
    if (kind < 2 && folders_.size() < 60) {
      fs::create_directory(path);
      folders_.push_back(path);
    } else if (kind == 2) {
      fs::create_symlink(below(2) ? "../" + path.filename().string() : "nowhere", path);
    } else if (kind == 3 && !files_.empty()) {
      fs::create_hard_link(pick(files_), path);
    } else if (kind == 4) {
      plant_sparse(path);
    } else {
      plant_file(path);
    }
  }
  void plant_file(const fs::path& path) {
    static constexpr unsigned kSizes[] = {1, 512, 513, 70'000, 300'000};
    std::string content(below(kSizes[below(5)]), '\0');
    const bool noise = below(2) != 0;
    for (char& byte : content) byte = noise ? static_cast<char>(random_()) : 'x';
    std::ofstream(path, std::ios::binary) << content;
    weather(path, 0400 | below(0400));
    files_.push_back(path);
  }
  void plant_sparse(const fs::path& path) {
    std::ofstream file(path, std::ios::binary);
    file.seekp(1'000'000 + below(1'000'000));
    if (below(2)) file << "data";
    file.close();
    if (below(2)) fs::resize_file(path, 3'000'000);
    weather(path, 0640);
  }

  std::mt19937 random_;
  std::vector<fs::path> folders_, files_;
};

}  // namespace

std::map<std::string, std::string> described(const fs::path& folder) {
  std::map<std::string, std::string> all;
  std::map<ino_t, std::string> first;
  std::vector<fs::path> paths = {folder};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    struct stat found{};
    EXPECT_EQ(::lstat(path.c_str(), &found), 0);
    const std::string name = path == folder ? "." : path.lexically_relative(folder).string();
    std::array<char, 80> head{};
    std::snprintf(head.data(), head.size(), "%o %lld.%ld", found.st_mode,
                  static_cast<long long>(found.st_mtim.tv_sec), found.st_mtim.tv_nsec);
    std::string& words = all[name];
    words = head.data();
    if (S_ISLNK(found.st_mode)) words += " -> " + fs::read_symlink(path).string();
    if (!S_ISREG(found.st_mode)) continue;
    words += " " + std::to_string(found.st_size) + " " + content_of(path);
    if (found.st_nlink > 1) words += " = " + first.emplace(found.st_ino, name).first->second;
  }
  return all;
}

void grow(const fs::path& folder, unsigned seed, int entries) {
  Gardener(seed).grow(folder, entries);
}

base::Fd open_folder(const fs::path& folder) {
  return base::Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Packed packed(const fs::path& folder, const PackOptions& options) {
  Packed made;
  const auto report = pack(open_folder(folder), options,
                           [&](std::string_view bytes) -> Result<base::Done> {
                             made.archive += bytes;
                             return base::Done{};
                           },
                           {});
  EXPECT_TRUE(report) << report.error().message;
  if (report) made.report = *report;
  return made;
}

Result<Came> unpacked(const std::string& archive, const fs::path& into,
                      const UnpackOptions& options, std::size_t piece,
                      const std::stop_token& stop) {
  const fs::path aside = into.parent_path() / ("aside-" + base::random_hex(4));
  fs::create_directory(aside);
  std::size_t at = 0;
  Report report;
  auto result = unpack(
      [&]() -> Result<std::string> {
        std::string bytes = archive.substr(std::min(at, archive.size()), piece);
        at += bytes.size();
        return bytes;
      },
      open_folder(into), open_folder(aside), options, report, stop);
  EXPECT_TRUE(fs::is_empty(aside)) << "something was left aside";
  fs::remove_all(aside);
  if (!result) return result.error();
  return Came{*std::move(result), std::move(report)};
}

std::string tar_part(const std::string& name, char type, const std::string& content,
                     const std::string& link, const std::string& size) {
  std::string header(512, '\0');
  std::array<char, 16> octal{};
  std::snprintf(octal.data(), octal.size(), "%011zo", content.size());
  header.replace(0, name.size(), name);
  header.replace(100, 7, type == '5' ? "0000755" : "0006644");
  header.replace(108, 7, "0000000").replace(116, 7, "0000000");
  header.replace(124, 11, size.empty() ? octal.data() : size);
  header.replace(136, 11, "07346545000");
  header[156] = type;
  header.replace(157, link.size(), link);
  header.replace(257, 5, "ustar").replace(263, 2, "00");
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  std::snprintf(octal.data(), octal.size(), "%06o", sum);
  header.replace(148, 6, octal.data());
  header[154] = '\0';
  std::string part = header + content;
  part.resize((part.size() + 511) / 512 * 512, '\0');
  return part;
}

std::string compressed(const std::string& bytes) {
  std::string out;
  Compressor compressor(1, [&](std::string_view more) -> Result<base::Done> {
    out += more;
    return base::Done{};
  });
  EXPECT_TRUE(compressor.write(bytes));
  EXPECT_TRUE(compressor.finish());
  return out;
}

}  // namespace archives::testing
