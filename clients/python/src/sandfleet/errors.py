"""What can go wrong, told apart by what a caller does about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CODES = frozenset(
    """FS_NOT_FOUND FS_NOT_DIRECTORY FS_NOT_TEXT FS_NOT_REGULAR_FILE FS_TOO_LARGE FS_PERMISSION_DENIED FS_SANDBOX_DENIED
    FS_IO_ERROR FS_STALE_VERSION FS_NOT_OBSERVED FS_AMBIGUOUS_EDIT FS_EDIT_NOT_FOUND FS_ABORTED INVALID DENIED NOT_FOUND
    CONFLICT BUSY UNSUPPORTED CANCELLED UNAVAILABLE LOST SPAWN_FAILED EXECUTABLE_NOT_FOUND TERMINATE_FAILED
    CONFINEMENT_UNAVAILABLE TOOL_MISSING REPLIES_FULL OUT_OF_SEQUENCE ALREADY_ANSWERED OUTCOME_UNKNOWN INTERNAL""".split()
)

UNKNOWN_CODES = frozenset({"OUTCOME_UNKNOWN", "UNAVAILABLE", "LOST"})
"""Codes with which the way to a sandbox failed, not what was asked for there."""


class SandfleetError(Exception):
    """The root of all that this package raises by itself."""


class ProtocolError(SandfleetError):
    """The other side sent what is no frame of this protocol, or broke a limit of it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed, as it travels."""

    code: str
    message: str
    retry_after_ms: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


class RemoteError(SandfleetError):
    """A request failed. `code` is one of docs/protocol.md, "Errors"."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.code}: {failure.message}")
        self.code = failure.code
        self.message = failure.message
        self.retry_after_ms = failure.retry_after_ms
        self.detail = failure.detail


class Refused(SandfleetError):
    """This sandbox object takes no work any more; the message says why."""


class Quarantined(Refused):
    """It could not be proven that nothing is left of an earlier command."""


class LifetimeOver(Refused):
    """The sandbox object was used for as long as it was made for."""
