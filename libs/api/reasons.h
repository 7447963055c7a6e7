#pragma once

#include <string_view>

// The one catalogue of condition types and reasons; docs/conditions.md prints it. A reason is never
// spelled anywhere else.
namespace api {

// Condition types of a Sandbox, and of a SandboxProvider where they say so.
namespace condition {
inline constexpr std::string_view kReady = "Ready";  // Serves as the spec asks; provider: usable.
inline constexpr std::string_view kReconciling = "Reconciling";  // True while work is under way.
inline constexpr std::string_view kStalled = "Stalled";    // True when only a change can help.
inline constexpr std::string_view kBound = "Bound";        // An E2B sandbox of ours is on record.
inline constexpr std::string_view kPrepared = "Prepared";  // Our executor answers inside it.
inline constexpr std::string_view kPaused = "Paused";      // Its processes stand still.
inline constexpr std::string_view kCapacityAvailable =
    "CapacityAvailable";                                   // The provider takes one more.
inline constexpr std::string_view kDeleting = "Deleting";  // True from the request to the proof.
inline constexpr std::string_view kCredentialsValid =
    "CredentialsValid";  // Provider: its API key is accepted.
}  // namespace condition

namespace reason {
// The sandbox does what its spec asks.
inline constexpr std::string_view kReady = "Ready";      // It can be used.
inline constexpr std::string_view kRunning = "Running";  // It runs.
inline constexpr std::string_view kPaused = "Paused";    // It is paused, as asked.
inline constexpr std::string_view kIdle =
    "Idle";  // It idled, and is paused until somebody wants something of it.
inline constexpr std::string_view kTerminated = "Terminated";  // It was ended for good.
inline constexpr std::string_view kBound = "Bound";            // The id is on record.
inline constexpr std::string_view kPrepared = "Prepared";      // The executor answers.

// Work is under way.
inline constexpr std::string_view kPending = "Pending";    // Not looked at yet.
inline constexpr std::string_view kCreating = "Creating";  // A create is on record or on its way.
inline constexpr std::string_view kResolvingCreate =
    "ResolvingCreate";  // A create was not answered: looking for what it made.
inline constexpr std::string_view kPreparing = "Preparing";      // The executor is being started.
inline constexpr std::string_view kPausing = "Pausing";          // A pause is under way.
inline constexpr std::string_view kResuming = "Resuming";        // A resume is under way.
inline constexpr std::string_view kTerminating = "Terminating";  // A final kill is under way.
inline constexpr std::string_view kDeleting = "Deleting";  // The object goes once that is proven.
inline constexpr std::string_view kReleasing =
    "Releasing";  // Its sandbox is being let go, as the deletion policy says.

// Something is in the way, and may pass.
inline constexpr std::string_view kProviderNotFound = "ProviderNotFound";  // No such provider.
inline constexpr std::string_view kProviderUnavailable =
    "ProviderUnavailable";  // It does not answer.
inline constexpr std::string_view kProviderQuotaExceeded =
    "ProviderQuotaExceeded";                                           // It has no place left.
inline constexpr std::string_view kRateLimited = "RateLimited";        // It asked us to slow down.
inline constexpr std::string_view kSecretNotFound = "SecretNotFound";  // A Secret is missing.
inline constexpr std::string_view kSecretForbidden =
    "SecretForbidden";  // The controller may not read a Secret: bind a Role to its account.
inline constexpr std::string_view kExecutorNotAnswering =
    "ExecutorNotAnswering";  // It was started, and is silent.
inline constexpr std::string_view kExecutorNotOurs =
    "ExecutorNotOurs";  // What answers on its port refuses us or proves nothing: it is replaced.
inline constexpr std::string_view kExecutorGone =
    "ExecutorGone";  // It no longer ran inside, and is being started anew.
inline constexpr std::string_view kNoEffect =
    "NoEffect";  // The provider said that it had paused or resumed it, and a look shows otherwise.
inline constexpr std::string_view kIdlenessUnknown =
    "IdlenessUnknown";  // Its executor does not say whether it idles, so it is not put to rest.
inline constexpr std::string_view kIdleActionFailed =
    "IdleActionFailed";  // It idles, and could not be paused or ended; tried again, less often.
inline constexpr std::string_view kLost = "Lost";        // The provider says it no longer exists.
inline constexpr std::string_view kUnknown = "Unknown";  // We could not learn how it stands.

// Only a change of the resource, the provider or a credential can help.
inline constexpr std::string_view kRejectedByProvider =
    "RejectedByProvider";  // It refused for good.
inline constexpr std::string_view kTemplateNotFound =
    "TemplateNotFound";  // No such template, said more than once; asked for again now and then.
inline constexpr std::string_view kCredentialsRejected =
    "CredentialsRejected";  // The API key is refused.
inline constexpr std::string_view kCredentialsMissing = "CredentialsMissing";  // There is no key.
inline constexpr std::string_view kCredentialsInvalid =
    "CredentialsInvalid";  // What stands in its place cannot be a key.
inline constexpr std::string_view kNameConflict = "NameConflict";  // The sandbox is another's.
inline constexpr std::string_view kInvalidManifest =
    "InvalidManifest";  // The document is broken: its last good version stays in force.

// Why it ended.
inline constexpr std::string_view kEndedByUser = "EndedByUser";  // desiredState: Terminated.
inline constexpr std::string_view kShutdownTimeReached =
    "ShutdownTimeReached";  // lifecycle.shutdownTime has come.
inline constexpr std::string_view kMaxLifetimeReached =
    "MaxLifetimeReached";  // lifecycle.maxLifetimeSeconds are over.
inline constexpr std::string_view kIdleTimeReached =
    "IdleTimeReached";  // It idled for lifecycle.idleSeconds, and idleAction is Terminate.

// Credentials of a provider.
inline constexpr std::string_view kCredentialsAccepted =
    "CredentialsAccepted";  // The API key works.
}  // namespace reason

}  // namespace api
