#include "cli/complete.h"

#include <algorithm>

namespace cli {
namespace {

constexpr int kNoFiles = 4, kDefault = 0;  // Cobra's directives.

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// The value of the flag that `name` is.
Completion value_of(const base::FlagShape& flag) {
  if (std::ranges::any_of(flag.names, [](const std::string& name) {
        return is_one_of(name,
                         {"--filename", "--kubeconfig", "--state", "--socket", "--token-file"});
      }))
    return {.files = true};
  return {.choices = flag.choices};
}

// What the words before the last one mean.
struct Line {
  Options options = {};
  const Verb* verb = nullptr;
  const base::FlagShape* open = nullptr;  // A flag whose value is the last word.
};

Completion next(const Line& line, const std::vector<base::FlagShape>& flags,
                const std::string& begun, const FindNames& find_names) {
  if (line.open) return value_of(*line.open);
  Completion next;
  if (begun.starts_with('-')) {
    for (const auto& flag : flags)
      std::ranges::copy_if(flag.names, std::back_inserter(next.choices),
                           [](const std::string& name) { return name.starts_with("--"); });
  } else if (!line.verb) {
    for (const Verb& verb : verbs()) next.choices.push_back(verb.name);
  } else if (line.verb->attaches) {
    if (line.options.words.empty()) next.choices = find_names(line.options, Subject::kSandboxes);
  } else if (line.verb->takes_words) {
    const Words words = read_words(line.options.words);
    next.choices = find_names(line.options, words.subject);
    std::erase_if(next.choices, [&](const std::string& name) {
      return std::ranges::find(words.names, name) != words.names.end();
    });
  }
  return next;
}

}  // namespace

bool completes(const std::string& path) {
  return path.substr(path.rfind('/') + 1).starts_with("kubectl_complete-");
}

Completion complete(const std::vector<std::string>& words, const FindNames& find_names) {
  const std::string begun = words.empty() ? "" : words.back();
  if (split_line(words).line.size() < words.size()) return {};  // Only the sandbox knows its words.
  Line line;
  base::Flags program("sandfleet", kAbout);
  const auto commands = declare(program, line.options, [](const Verb&) { return kDone; });
  const auto* flags = &program.shapes();

  std::vector<const char*> typed = {"sandfleet"};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    typed.push_back(word.c_str());
    if (std::exchange(line.open, nullptr)) continue;
    if (word.starts_with('-')) {
      const auto flag = std::ranges::find_if(*flags, [&](const base::FlagShape& each) {
        return each.takes_value && std::ranges::find(each.names, word) != each.names.end();
      });
      if (flag != flags->end()) line.open = &*flag;
      continue;
    }
    if (line.verb) continue;
    const auto verb = std::ranges::find(verbs(), word, &Verb::name);
    if (verb == verbs().end()) return {};
    line.verb = &*verb;
    flags = &commands[static_cast<std::size_t>(verb - verbs().begin())]->shapes();
  }
  // What cannot be understood so far is for the command itself to tell.
  if (line.verb && !line.open && line.verb->takes_words &&
      program.parse(static_cast<int>(typed.size()), typed.data()) != kDone)
    return {};
  Completion found = next(line, *flags, begun, find_names);
  std::erase_if(found.choices, [&](const std::string& each) { return !each.starts_with(begun); });
  return found;
}

std::string to_text(const Completion& completion) {
  std::string text;
  for (const std::string& each : completion.choices) text += each + "\n";
  return text + ":" + std::to_string(completion.files ? kDefault : kNoFiles) + "\n";
}

std::vector<std::string> names_in(Backend& backend, const Options& options, Subject subject) {
  std::vector<std::string> names;
  const auto keep = [&](const auto& found) {
    if (!found) return;
    for (const auto& each : *found) names.push_back(each.metadata.key.name);
  };
  if (subject == Subject::kProviders)
    keep(backend.providers(""));
  else
    keep(backend.sandboxes({options.space.empty() ? backend.default_space() : options.space}));
  return names;
}

}  // namespace cli
