"""What to run in a sandbox, and what that says of what runs; in words of this language, and on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from . import names
from .names import Name

GRACE_S = 3.0


class _Way:
    """How a standard stream is connected."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


PIPE: Final = _Way("PIPE")
DISCARD: Final = _Way("DISCARD")


@dataclass(frozen=True, slots=True)
class Collect:
    """Exactly the last `max_bytes` are kept in the sandbox, and the command is never held back. With `spill_bytes`, all of an
    output that is longer, up to so many bytes, is also written to a file there. `mirror`: it can be read as it comes, too, and
    a reader that is behind finds gaps."""

    max_bytes: int = 1 << 20
    spill_bytes: int | None = None
    mirror: bool = False


Output: TypeAlias = _Way | Collect
Input: TypeAlias = "_Way | bytes"  # Bytes: that, and then the end.


@dataclass(frozen=True, slots=True)
class Spec:
    argv: Sequence[Name]
    cwd: Name | None = None
    env: Mapping[str, str | None] | None = None  # None removes a variable.
    stdin: Input = DISCARD
    stdout: Output = DISCARD
    stderr: Output = DISCARD
    grace: float = GRACE_S  # Between SIGTERM and SIGKILL, where it is terminated.
    terminal: tuple[int, int] | None = None  # Rows and columns.
    detached: bool = False  # It ends with no session.

    @property
    def grace_ms(self) -> int:
        return max(1, round(self.grace * 1000))


@dataclass(frozen=True, slots=True)
class OutputState:
    bytes: int  # Of the whole stream.
    ended: bool
    lossy: bool
    spill_path: str | None


@dataclass(frozen=True, slots=True)
class State:
    """What the sandbox says of a process; `exit_code` and `signal` are the kernel's words."""

    pid: int
    exited: bool
    exit_code: int | None
    signal: str | None
    settled: bool
    empty: bool
    stdout: OutputState | None
    stderr: OutputState | None
    age: float | None = None  # In seconds, since it was begun; None: the sandbox does not tell.
    detached: bool = False  # It ends with no session.


@dataclass(frozen=True, slots=True)
class Listed:
    handle: str
    argv: tuple[str, ...]
    mine: bool  # Its life is the lease of this session.
    state: State


@dataclass(frozen=True, slots=True)
class Foreground:
    """Of a terminal: which process group has it, and whether it is proven that that waits for input (None: not known)."""

    process_group: int | None
    input_waiting: bool | None


def _output_state(raw: Mapping[str, Any] | None) -> OutputState | None:
    if raw is None:
        return None
    spill = raw.get("spillPath")
    return OutputState(raw["bytes"], raw["ended"], raw["lossy"], None if spill is None else names.from_wire(spill))


def state_of(raw: Mapping[str, Any]) -> State:
    return State(
        raw["pid"],
        raw["exited"],
        raw.get("exitCode"),
        raw.get("signal"),
        raw["settled"],
        raw["empty"],
        _output_state(raw.get("stdout")),
        _output_state(raw.get("stderr")),
        None if raw.get("ageMs") is None else raw["ageMs"] / 1000,
        raw.get("detached", False),
    )


def input_mode(way: Input, stream: int | None) -> Any:
    if isinstance(way, bytes):
        return "data"
    return "ignore" if stream is None else {"pipe": stream}


def output_mode(way: Output, stream: int | None) -> Any:
    if not isinstance(way, Collect):
        return "discard" if stream is None else {"pipe": stream}
    spill = None if way.spill_bytes is None else {"maxBytes": way.spill_bytes}
    return {"collect": {"maxBytes": way.max_bytes, "spill": spill, "stream": stream}}


def has_stream(way: Output | Input) -> bool:
    return way.mirror if isinstance(way, Collect) else way is PIPE
