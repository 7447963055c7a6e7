"""What a session tells of: what became of requests and streams, and what the server said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .errors import Failure
from .messages import Limits, Message


@dataclass(frozen=True, slots=True)
class Welcome:
    """What the server says of itself and of the sandbox, on each link anew."""

    session: str
    resumed: bool
    why: str | None
    instance: str
    uid: str
    epoch: int
    incarnation: int
    cwd: str
    workspace_root: str
    ceiling: str
    lease_ms: int
    expires_ms: int
    features: frozenset[str]
    limits: Limits


def welcome_of(message: Message) -> Welcome:
    return Welcome(
        session=message["session"],
        resumed=message["resumed"],
        why=message["why"],
        instance=message["instance"],
        uid=message["uid"],
        epoch=message["epoch"],
        incarnation=message["incarnation"],
        cwd=message["cwd"],
        workspace_root=message["workspaceRoot"],
        ceiling=message["ceiling"],
        lease_ms=message["leaseMs"],
        expires_ms=message["expiresMs"],
        features=frozenset(message["features"]),
        limits=message["limits"],
    )


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened to the sandbox: `kind` is restored, rolledBack, recreated, lost or another word."""

    number: int
    kind: str
    message: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Welcomed:
    welcome: Welcome


@dataclass(frozen=True, slots=True)
class Opened:
    """Both sides have resumed; what was asked goes out."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Its download, if any, may go on."""

    id: int
    ok: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """Its streams have ended."""

    id: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Moved:
    """Whoever reads or writes this stream may go on: there is something to take, room, or no use for more."""

    stream: int


@dataclass(frozen=True, slots=True)
class Noticed:
    notice: Notice


@dataclass(frozen=True, slots=True)
class Renewed:
    expires_ms: int


@dataclass(frozen=True, slots=True)
class Closed:
    """By the server, or by this side because of what the server did."""

    reason: str
    message: str
    retry_after_ms: int | None = None


Event: TypeAlias = Welcomed | Opened | Answered | Failed | Moved | Noticed | Renewed | Closed
