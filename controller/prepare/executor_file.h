#pragma once

#include <string>
#include <string_view>

namespace controller {

// The executor that is sent where the template does not have it. Without one, that of the template
// is taken as it is.
struct ExecutorFile {
  std::string content;
  std::string sha256_hex;
  std::string machine = {};  // That it runs on, as uname(1) names it; empty: not known.
};

ExecutorFile as_executor(std::string content);

// By the header of an ELF file (elf(5), e_machine), for processors that an executor is built for.
std::string machine_of(std::string_view elf);

}  // namespace controller
