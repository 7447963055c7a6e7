#include "libs/base/flags.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "libs/base/strings.h"
#include "libs/base/version.h"

namespace base {

struct Flags::State {
  std::unique_ptr<CLI::App> owned;  // The program's own; a command is owned by its parent.
  CLI::App* app = nullptr;
  std::function<int()> run;
  std::vector<std::unique_ptr<Flags>> commands;
  std::vector<FlagShape> shapes;
};

namespace {

void apply(CLI::Option* option, const FlagRule& rule) {
  if (rule.required) option->required();
  if (!rule.environment.empty()) option->envname(rule.environment);
  if (!rule.choices.empty()) option->check(CLI::IsMember(rule.choices));
}

// "-o,--output" as it is declared; one without dashes is positional.
void note(std::vector<FlagShape>& shapes, const std::string& name, bool takes_value,
          const FlagRule& rule = {}) {
  if (name.starts_with('-')) shapes.push_back({split(name, ','), takes_value, rule.choices});
}

}  // namespace

Flags::Flags(std::string program, std::string about) : state_(std::make_unique<State>()) {
  state_->owned = std::make_unique<CLI::App>(std::move(about), std::move(program));
  state_->app = state_->owned.get();
  state_->app->set_version_flag("--version", std::string(kVersion));
}
Flags::Flags(std::unique_ptr<State> state) : state_(std::move(state)) {}
Flags::~Flags() = default;

void Flags::text(const std::string& name, std::string& field, const std::string& help,
                 const FlagRule& rule) {
  auto* option = state_->app->add_option(name, field, help);
  if (!field.empty()) option->capture_default_str();
  apply(option, rule);
  note(state_->shapes, name, true, rule);
}
void Flags::texts(const std::string& name, std::vector<std::string>& field, const std::string& help,
                  const FlagRule& rule) {
  auto* option = state_->app->add_option(name, field, help);
  // Each time it is given it takes one value, and no word that follows.
  if (name.starts_with('-')) option->allow_extra_args(false);
  apply(option, rule);
  note(state_->shapes, name, true, rule);
}
void Flags::number(const std::string& name, std::int64_t& field, const std::string& help,
                   const FlagRule& rule) {
  auto* option = state_->app->add_option(name, field, help)->capture_default_str();
  if (rule.at_least != INT64_MIN || rule.at_most != INT64_MAX)
    option->check(CLI::Range(rule.at_least, rule.at_most));
  apply(option, rule);
  note(state_->shapes, name, true, rule);
}
void Flags::flag(const std::string& name, bool& field, const std::string& help) {
  state_->app->add_flag(name, field, help);
  note(state_->shapes, name, false);
}

Flags& Flags::command(const std::string& name, const std::string& about, std::function<int()> run) {
  auto state = std::make_unique<State>();
  state->app = state_->app->add_subcommand(name, about);
  state->run = std::move(run);
  state_->commands.push_back(std::unique_ptr<Flags>(new Flags(std::move(state))));
  state_->app->require_subcommand(1);
  return *state_->commands.back();
}

std::optional<int> Flags::parse(int argc, const char* const* argv) {
  try {
    state_->app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return state_->app->exit(error);
    return refuse(error.what());
  }
  for (const auto& command : state_->commands)
    if (command->state_->app->parsed() && command->state_->run) return command->state_->run();
  return std::nullopt;
}

const std::vector<FlagShape>& Flags::shapes() const { return state_->shapes; }

int Flags::refuse(const std::string& why) const {
  std::string asked = state_->app->get_name();
  for (const auto* command : state_->app->get_subcommands()) asked += " " + command->get_name();
  std::cerr << state_->app->get_name() << ": " << why << "\nRun '" << asked
            << " --help' for its flags.\n";
  return 2;
}

std::string Flags::help() const {
  const CLI::App* program = state_->app->get_parent();
  return state_->app->help(program ? program->get_name() : "");
}

}  // namespace base
