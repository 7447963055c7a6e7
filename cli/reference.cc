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
      "Results go to standard output, progress and warnings to standard error.\n\n"
      "`pause`, `resume` and `terminate` change one word of the manifest in place, comments kept, "
      "or\n"
      "refuse. `delete` asks the controller; the manifest stays and is passed over until it "
      "changes or\n"
      "is applied again, unless `--remove-manifest` says otherwise.\n\n"
      "| Exit code | Meaning |\n|---|---|\n"
      "| 0 | done |\n| 1 | failed |\n| 2 | not understood |\n| 3 | not found |\n"
      "| 4 | refused, or changed meanwhile |\n| 5 | not so within `--timeout` |\n";
  for (const auto& verb : verbs()) {
    Options options;
    base::Flags flags("sandfleet " + verb.name, verb.about);
    add_flags(flags, verb, options);
    text += "\n## sandfleet " + verb.name + "\n\n```text\n" + flags.help() + "```\n";
  }
  return text;
}

}  // namespace cli
