#include "libs/api/words.h"

#include <cassert>

namespace api {
namespace {

template <typename Enum>
std::string_view word_for(Enum value) {
  for (const auto& known : words_of(Enum{}))
    if (known.value == value) return known.word;
  assert(false && "an enumerator without a word");
  return {};
}

}  // namespace

const std::vector<Word<DesiredState>>& words_of(DesiredState) {
  static const std::vector<Word<DesiredState>> kWords = {{DesiredState::kRunning, "Running"},
                                                         {DesiredState::kPaused, "Paused"},
                                                         {DesiredState::kTerminated, "Terminated"}};
  return kWords;
}

const std::vector<Word<DeletionPolicy>>& words_of(DeletionPolicy) {
  static const std::vector<Word<DeletionPolicy>> kWords = {{DeletionPolicy::kKill, "Kill"},
                                                           {DeletionPolicy::kPause, "Pause"},
                                                           {DeletionPolicy::kLeave, "Leave"}};
  return kWords;
}

const std::vector<Word<OnTimeout>>& words_of(OnTimeout) {
  static const std::vector<Word<OnTimeout>> kWords = {{OnTimeout::kPause, "Pause"},
                                                      {OnTimeout::kKill, "Kill"}};
  return kWords;
}

const std::vector<Word<IdleAction>>& words_of(IdleAction) {
  static const std::vector<Word<IdleAction>> kWords = {{IdleAction::kPause, "Pause"},
                                                       {IdleAction::kTerminate, "Terminate"}};
  return kWords;
}

const std::vector<Word<EndedBy>>& words_of(EndedBy) {
  static const std::vector<Word<EndedBy>> kWords = {{EndedBy::kNobody, ""},
                                                    {EndedBy::kUser, "User"},
                                                    {EndedBy::kShutdownTime, "ShutdownTime"},
                                                    {EndedBy::kMaxLifetime, "MaxLifetime"},
                                                    {EndedBy::kIdle, "Idle"}};
  return kWords;
}

const std::vector<Word<PausedBy>>& words_of(PausedBy) {
  static const std::vector<Word<PausedBy>> kWords = {
      {PausedBy::kNobody, ""}, {PausedBy::kUser, "User"}, {PausedBy::kIdle, "Idle"}};
  return kWords;
}

const std::vector<Word<Routing>>& words_of(Routing) {
  static const std::vector<Word<Routing>> kWords = {{Routing::kSubdomain, "Subdomain"},
                                                    {Routing::kHeader, "Header"},
                                                    {Routing::kPathPrefix, "PathPrefix"}};
  return kWords;
}

std::string_view to_word(DesiredState state) { return word_for(state); }
std::string_view to_word(DeletionPolicy policy) { return word_for(policy); }
std::string_view to_word(OnTimeout action) { return word_for(action); }
std::string_view to_word(IdleAction action) { return word_for(action); }
std::string_view to_word(EndedBy reason) { return word_for(reason); }
std::string_view to_word(PausedBy reason) { return word_for(reason); }
std::string_view to_word(Routing routing) { return word_for(routing); }

}  // namespace api
