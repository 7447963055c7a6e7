#include "cli/line/options.h"

#include <algorithm>
#include <map>

#include "libs/base/strings.h"

namespace cli {
namespace {

constexpr std::string_view kPlugin = "kubectl-";

std::optional<Subject> subject_of(const std::string& word) {
  static const std::map<std::string, Subject, std::less<>> kWords = {
      {"sfb", Subject::kSandboxes},
      {"sandbox", Subject::kSandboxes},
      {"sandboxes", Subject::kSandboxes},
      {"sandboxes.sandfleet.dev", Subject::kSandboxes},
      {"sfp", Subject::kProviders},
      {"provider", Subject::kProviders},
      {"providers", Subject::kProviders},
      {"sandboxprovider", Subject::kProviders},
      {"sandboxproviders", Subject::kProviders},
      {"sandboxproviders.sandfleet.dev", Subject::kProviders},
  };
  const auto found = kWords.find(base::lower(word));
  if (found == kWords.end()) return std::nullopt;
  return found->second;
}

// Those that may stand before the verb too.
void add_common_flags(base::Flags& flags, Options& options) {
  flags.text("--state", options.state,
             "state folder of a standalone controller; else SANDFLEET_STATE");
  flags.text("--kubeconfig", options.kubeconfig,
             "file that tells the cluster; else KUBECONFIG, ~/.kube/config or the pod's account");
  flags.text("--context", options.context, "context of the kubeconfig; else its current one");
  flags.text("-n,--namespace", options.space,
             "namespace to look in; else the context's, or default");
}

// Of what is begun with or without a terminal.
void add_begin_flags(base::Flags& flags, Options& options) {
  flags.text("-C,--cwd", options.folder, "folder to begin in; else the sandbox's workspace");
  flags.texts("-e,--env", options.variables, "NAME=VALUE to set, or NAME to remove; repeatable");
  flags.number("--grace", options.grace_seconds, "seconds between SIGTERM and SIGKILL",
               {.at_least = 1, .at_most = 86'400});
  flags.text("--permission-mode", options.permission_mode,
             "what it may change; else all that you may",
             {.choices = {"ReadOnly", "WorkspaceWrite", "DangerFullAccess"}});
}

void add_run_flags(base::Flags& flags, Options& options) {
  flags.flag("-i,--stdin", options.input, "pass on standard input; else it reads the end at once");
  add_begin_flags(flags, options);
  flags.number("--timeout", options.limit_seconds, "seconds after which it is ended; 0: never",
               {.at_least = 0, .at_most = 2'000'000});
  flags.flag("-d,--detach", options.detach, "print its handle and leave it running");
  flags.text("-o,--output", options.begun_as, "what to print of it then",
             {.choices = {"handle", "json"}});
}

void add_escape_flag(base::Flags& flags, Options& options) {
  flags.text("--escape-char", options.escape_char,
             "what begins a word to sandfleet itself, as ~? at the beginning of a line; ^X: with "
             "control; none: nothing does");
}

void add_log_flags(base::Flags& flags, Options& options) {
  flags.flag("-f,--follow", options.follow, "go on to the end of the output");
  flags.number("--tail", options.tail_lines, "lines from its end to show; -1: all that is kept",
               {.at_least = -1});
  flags.flag("--stdout", options.stdout_only, "this one only");
  flags.flag("--stderr", options.stderr_only, "this one only");
}

const char* words_of(const Verb& verb) {
  if (verb.copies)
    return "where from and where to: [NAMESPACE/]NAME:PATH in a sandbox, and a path here, or - for "
           "an archive";
  if (verb.names_handle())
    return "the sandbox, [NAMESPACE/]NAME or else SANDFLEET_SANDBOX, and the handle";
  return "the sandbox, [NAMESPACE/]NAME; else SANDFLEET_SANDBOX";
}

void add_flags(base::Flags& flags, const Verb& verb, Options& options) {
  add_common_flags(flags, options);
  if (verb.attaches) {
    flags.texts("words", options.words, words_of(verb));
    flags.text("--socket", options.socket,
               "socket of agentd; else SANDFLEET_SOCKET, or where agentd has it by default");
    flags.text(
        "--token-file", options.token_file,
        "token to attach with, read again for each link; else SANDFLEET_TOKEN_FILE, or none");
    flags.text("--service-account", options.service_account,
               "attach as this account of the sandbox's namespace, with a token that the cluster "
               "gives for it");
  } else if (verb.takes_words) {
    flags.texts("words", options.words, "names, with the kind before them or not: [KIND] NAME...");
  }
  if (verb.prints) {
    flags.flag("-A,--all-namespaces", options.all_spaces, "look in every namespace");
    flags.text("-o,--output", options.output, "how to print",
               {.choices = {"table", "wide", "json", "yaml"}});
    flags.flag("-w,--watch", options.watch, "go on, printing each change");
  }
  if (verb.waits) {
    flags.flag("--wait", options.wait, "return when it is so");
    flags.number("--timeout", options.timeout_seconds, "seconds to wait",
                 {.at_least = 1, .at_most = 86'400});
  }
  if (verb.removes) {
    flags.text("--policy", options.policy, "deletionPolicy to use instead of the object's",
               {.choices = {"Kill", "Pause", "Leave"}});
    flags.flag("--remove-manifest", options.remove_manifest,
               "also remove its file, which must declare nothing else (not in a cluster)");
  }
  if (verb.applies) {
    flags.text("-f,--filename", options.file, "the manifest, or - for standard input",
               {.required = true});
    flags.flag("--force-conflicts", options.force_conflicts,
               "take over fields that others have set (only in a cluster)");
  }
  if (verb.runs) add_run_flags(flags, options);
  if (verb.opens) add_begin_flags(flags, options);
  if (verb.joins)
    flags.flag("-i,--stdin", options.input, "pass on standard input to what has no terminal");
  if (verb.opens || verb.joins) add_escape_flag(flags, options);
  if (verb.reads) add_log_flags(flags, options);
  if (verb.copies)
    flags.texts("--exclude", options.excludes,
                "name, at any depth, to leave out with all below it; repeatable");
  if (verb.lists) {
    flags.text("-o,--output", options.output, "how to print", {.choices = {"table", "json"}});
  }
  if (verb.kills) {
    flags.text("-s,--signal", options.signal, "send only this, as SIGHUP, and wait for nothing");
    flags.flag("--tree", options.tree, "with --signal: also to what has left its process group");
    flags.number("--grace", options.grace_seconds, "seconds between SIGTERM and SIGKILL",
                 {.at_least = 1, .at_most = 86'400});
    flags.number("--timeout", options.timeout_seconds,
                 "seconds to wait until nothing of it is left", {.at_least = 1, .at_most = 86'400});
  }
}

// The word that a command line's next argument is the value of, if it is a flag that has one.
bool takes_next(const std::vector<base::FlagShape>& flags, const std::string& typed) {
  return std::ranges::any_of(flags, [&](const base::FlagShape& flag) {
    return flag.takes_value && std::ranges::find(flag.names, typed) != flag.names.end();
  });
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs = {
      {.name = "get", .about = "List sandboxes (sfb) or providers (sfp).", .prints = true},
      {.name = "describe", .about = "Show everything about a sandbox, its events included."},
      {.name = "events", .about = "List what happened, oldest first.", .prints = true},
      {.name = "apply",
       .about = "Check a manifest and declare it, in the watched folder or in the cluster.",
       .takes_words = false,
       .waits = true,
       .applies = true},
      {.name = "pause", .about = "Ask for Paused: memory is kept, nothing runs.", .waits = true},
      {.name = "resume", .about = "Ask for Running; also wakes what idles.", .waits = true},
      {.name = "terminate",
       .about = "Ask for Terminated: the sandbox is killed for good, the object stays.",
       .waits = true},
      {.name = "reconcile",
       .about = "Ask the controller to look now, also at what it has given up or waits with."},
      {.name = "delete",
       .about = "Delete the object; its sandbox follows its deletionPolicy.",
       .waits = true,
       .removes = true},
      {.name = "exec",
       .about =
           "Run a command in a sandbox: exec [SANDBOX] -- COMMAND..., or exec SANDBOX COMMAND...",
       .attaches = true,
       .runs = true},
      {.name = "shell",
       .about = "Open a terminal in a sandbox, with the login shell or a command: shell [SANDBOX] "
                "[-- COMMAND...].",
       .attaches = true,
       .opens = true},
      {.name = "attach",
       .about = "Come back to a terminal, or to a command that was detached.",
       .attaches = true,
       .joins = true},
      {.name = "logs",
       .about = "Show what is kept of the output of what was started in a sandbox.",
       .attaches = true,
       .reads = true},
      {.name = "ps",
       .about = "List what was started in a sandbox.",
       .attaches = true,
       .lists = true},
      {.name = "kill",
       .about = "End what was started in a sandbox, and wait until nothing of it is left.",
       .attaches = true,
       .kills = true},
      {.name = "cp",
       .about = "Copy a file or a folder into a sandbox, or out of it: cp FROM TO.",
       .attaches = true,
       .copies = true},
  };
  return kVerbs;
}

std::string program_named(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(kPlugin)) return "sandfleet";
  return "kubectl " + name.substr(kPlugin.size());
}

std::string path_called(const std::string& called) {
  const auto slash = called.rfind('/');
  const bool by_kubectl = called.substr(slash + 1).starts_with(kPlugin);
  return slash == std::string::npos || by_kubectl ? "" : called;
}

bool could_begin(const std::string& word) {
  return word.starts_with('-') ||
         std::ranges::any_of(verbs(), [&](const Verb& verb) { return verb.name == word; });
}

std::vector<base::Flags*> declare(base::Flags& flags, Options& options,
                                  const std::function<int(const Verb&)>& run) {
  add_common_flags(flags, options);
  std::vector<base::Flags*> commands;
  for (const Verb& verb : verbs()) {
    commands.push_back(&flags.command(verb.name, verb.about, [run, &verb] { return run(verb); }));
    add_flags(*commands.back(), verb, options);
  }
  return commands;
}

SplitLine split_line(const std::vector<std::string>& typed) {
  Options unused;
  base::Flags program("sandfleet", kAbout);
  const auto commands = declare(program, unused, [](const Verb&) { return kDone; });
  const auto* flags = &program.shapes();
  const Verb* verb = nullptr;
  int words = 0;
  for (auto at = typed.begin(); at != typed.end(); ++at) {
    const bool marked = *at == "--";
    if (verb && (marked || (!at->starts_with('-') && ++words == 2)))
      return {{typed.begin(), at}, {marked ? at + 1 : at, typed.end()}};
    if (at->starts_with('-')) {
      if (takes_next(*flags, *at) && at + 1 != typed.end()) ++at;
    } else if (!verb) {
      const auto found = std::ranges::find(verbs(), *at, &Verb::name);
      if (found == verbs().end() || !found->has_command()) break;
      verb = &*found;
      flags = &commands[static_cast<std::size_t>(found - verbs().begin())]->shapes();
    }
  }
  return {typed};
}

Words read_words(const std::vector<std::string>& words) {
  Words read;
  for (const auto& word : words) {
    const bool first = &word == &words.front();
    const auto slash = word.find('/');
    if (slash != std::string::npos && subject_of(word.substr(0, slash))) {
      read.subject = *subject_of(word.substr(0, slash));
      read.names.push_back(word.substr(slash + 1));
    } else if (first && subject_of(word)) {
      read.subject = *subject_of(word);
    } else {
      read.names.push_back(word);
    }
  }
  return read;
}

}  // namespace cli
