#include "cli/reference.h"

#include "cli/options.h"

namespace cli {

std::string reference() {
  std::string text =
      "# sandfleet\n\n"
      "What people type. `kubectl sandfleet` is the same program.\n\n"
      "The state folder comes from `--state`, else from `SANDFLEET_STATE`. A kind may stand before "
      "the\n"
      "names: `sfb`, `sandbox`, `sandboxes` (the default) or `sfp`, `provider`, "
      "`sandboxproviders`.\n"
      "Results go to standard output, progress and warnings to standard error. There `get` and "
      "`describe`\n"
      "also say when no controller is running on the state folder, but not with `-o json` or "
      "`yaml`.\n\n"
      "`pause`, `resume` and `terminate` change one word of the manifest in place, comments kept, "
      "or\n"
      "refuse. `delete` asks the controller; the manifest stays and is passed over until it "
      "changes or\n"
      "is applied again, unless `--remove-manifest` says otherwise.\n\n"
      "| Exit code | Meaning |\n|---|---|\n"
      "| 0 | done |\n| 1 | failed |\n| 2 | not understood |\n| 3 | not found |\n"
      "| 4 | refused, or changed meanwhile |\n| 5 | not so within `--timeout` |\n";
  Options options;
  base::Flags flags("sandfleet", kAbout);
  const auto commands = declare(flags, options, [](const Verb&) { return kDone; });
  const auto section = [&](const std::string& title, const base::Flags& command) {
    text += "\n## " + title + "\n\n```text\n" + command.help() + "```\n";
  };
  section("Commands", flags);
  for (std::size_t i = 0; i < commands.size(); ++i)
    section("sandfleet " + verbs()[i].name, *commands[i]);
  return text;
}

}  // namespace cli
