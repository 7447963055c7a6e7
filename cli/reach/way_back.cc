#include "cli/reach/way_back.h"

#include <algorithm>
#include <string_view>

namespace cli {
namespace {

bool means_itself(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') ||
         std::string_view("_@%+=:,./-").find(byte) != std::string_view::npos;
}

// POSIX, Shell Command Language, 2.2.2: within single quotes everything is itself but the quote.
std::string quoted(const std::string& word) {
  if (!word.empty() && std::ranges::all_of(word, means_itself)) return word;
  std::string text = "'";
  for (const char byte : word) text += byte == '\'' ? R"('\'')" : std::string(1, byte);
  return text + "'";
}

// A namespace may be called as a kind is.
std::string word_of(const wire::SandboxName& sandbox) {
  const std::string name = sandbox.space + "/" + sandbox.name;
  return read_words({name}).names[0] == name ? name : "sandbox/" + name;
}

}  // namespace

std::string way_back(const Options& options, const wire::SandboxName& sandbox,
                     const std::string& handle) {
  const Options usual;
  std::string line = options.path.empty() ? options.program : quoted(options.path);
  const auto add = [&](const std::string& word) { line += " " + quoted(word); };
  const auto add_flag = [&](const std::string& name, std::string Options::* field) {
    if (options.*field != usual.*field) add(name + "=" + options.*field);
  };
  add("attach");
  add_flag("--state", &Options::state);
  add_flag("--kubeconfig", &Options::kubeconfig);
  add_flag("--context", &Options::context);
  add_flag("--socket", &Options::socket);
  add_flag("--token-file", &Options::token_file);
  add_flag("--service-account", &Options::service_account);
  add_flag("--escape-char", &Options::escape_char);
  if (options.input) add("--stdin");
  if (handle.starts_with('-')) add("--");
  add(word_of(sandbox));
  add(handle);
  return line;
}

}  // namespace cli
