#include "controller/prepare/executor_file.h"

#include <elf.h>

#include <cstring>
#include <utility>

#include "libs/base/crypto.h"

namespace controller {

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
  if (header.e_machine == EM_X86_64) return "x86_64";
  if (header.e_machine == EM_AARCH64) return "aarch64";
  return "";
}

}  // namespace controller
