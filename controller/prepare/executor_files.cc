#include "controller/prepare/executor_files.h"

#include <elf.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"

namespace controller {
namespace {

constexpr std::size_t kExecutorBytesMax = 512u << 20;
constexpr char kName[] = "sandfleet-executor";

struct Processor {
  Elf64_Half elf;
  std::string_view name;
};
constexpr Processor kProcessors[] = {{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}};

const ExecutorFile* find(const ExecutorFiles& executors, std::string_view machine) {
  const auto found = std::find_if(executors.begin(), executors.end(),
                                  [&](const auto& each) { return each.machine == machine; });
  return found == executors.end() ? nullptr : &*found;
}

base::Result<base::Done> add(ExecutorFiles& executors, const std::filesystem::path& path) {
  TRY(std::string content, base::read_file(path, kExecutorBytesMax));
  ExecutorFile file = as_executor(std::move(content));
  if (find(executors, file.machine))
    return base::error(base::ErrorCode::kInvalid, path.string(), ": another executor is for ",
                       file.machine.empty() ? "a processor that is not known, too" : file.machine,
                       "; give one for each processor");
  executors.push_back(std::move(file));
  return base::Done{};
}

base::Result<ExecutorFiles> read_those_in(const std::filesystem::path& folder) {
  ExecutorFiles executors;
  const auto add_if_there = [&](const std::filesystem::path& path) -> base::Result<base::Done> {
    auto added = add(executors, path);
    if (!added && added.error().code == base::ErrorCode::kNotFound) return base::Done{};
    return added;
  };
  CHECK_OK(add_if_there(folder / kName));
  for (const auto& [elf, machine] : kProcessors)
    if (!find(executors, machine))
      CHECK_OK(add_if_there(folder / (std::string(kName) + "-").append(machine)));
  if (executors.empty())
    base::log::warn("no executor to send: only templates that have one can be used",
                    {{"looked_at", (folder / kName).string()}});
  return executors;
}

}  // namespace

ExecutorFile as_executor(std::string content) {
  std::string digest = base::to_hex(base::sha256(content));
  std::string machine = machine_of(content);
  return {std::move(content), std::move(digest), std::move(machine)};
}

std::string machine_of(std::string_view elf) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof header || !elf.starts_with(ELFMAG)) return "";
  std::memcpy(&header, elf.data(), sizeof header);
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) return "";
  for (const auto& [number, name] : kProcessors)
    if (header.e_machine == number) return std::string(name);
  return "";
}

base::Result<ExecutorFiles> read_executors(const std::vector<std::string>& paths,
                                           const std::filesystem::path& folder) {
  if (paths.empty()) return read_those_in(folder);
  ExecutorFiles executors;
  for (const auto& path : paths) CHECK_OK(add(executors, path));
  return executors;
}

base::Result<const ExecutorFile*> choose(const ExecutorFiles& executors, std::string_view machine) {
  assert(!executors.empty());
  if (machine.empty()) return &executors.front();
  if (const auto* same = find(executors, machine)) return same;
  if (const auto* unknown = find(executors, "")) return unknown;
  std::vector<std::string> at_hand;
  for (const auto& each : executors) at_hand.push_back(each.machine);
  return base::error(base::ErrorCode::kInvalid, "this sandbox's processor is ", machine,
                     ", and the executor at hand is for ", base::join(at_hand, " or "),
                     "; give one for it with --executor");
}

}  // namespace controller
