"""What is asked for in a session, and what waits for its reply."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .names import Name
from .names import to_wire as name_to_wire


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked for. Streams of its own: an upload, a download, and further ones by their way, from new_stream()."""

    op: str
    args: Mapping[str, Any] = field(default_factory=dict)
    mutating: bool = False
    up: bool = False
    down: bool = False
    to_client: tuple[int, ...] = ()
    to_server: tuple[int, ...] = ()
    permission_mode: str | None = None
    workspace_root: Name | None = None

    @property
    def streams(self) -> int:
        return self.up + self.down + len(self.to_client) + len(self.to_server)

    def header(self) -> dict[str, Any]:
        """Of its request, but for what depends on when that is sent."""
        header: dict[str, Any] = {"op": self.op, "args": self.args, "permissionMode": self.permission_mode, "up": self.up or None}
        if self.workspace_root is not None:
            header["workspaceRoot"] = name_to_wire(self.workspace_root)
        return header


@dataclass(slots=True)
class Waiting:
    call: Call
    seq: int | None = None  # Of a mutating one, once it was sent.
    sent: bool = False  # In this session.
    cancelled: bool = False


class Requests:
    """Those without a reply, in the order in which they were asked; `unsent` of them were not sent on this link."""

    def __init__(self) -> None:
        self._waiting: dict[int, Waiting] = {}
        self.unsent: dict[int, None] = {}
        self._to_cancel: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[tuple[int, Waiting]]:
        return iter(list(self._waiting.items()))

    def get(self, number: int) -> Waiting | None:
        return self._waiting.get(number)

    def add(self, number: int, call: Call) -> None:
        self._waiting[number] = Waiting(call)
        self.unsent[number] = None

    def remove(self, number: int) -> Call:
        self.unsent.pop(number, None)
        return self._waiting.pop(number).call

    def begin_link(self) -> None:
        """A request that is not named in the resume is cancelled by that."""
        self.unsent = dict.fromkeys(self._waiting)
        self._to_cancel.clear()

    @property
    def under_way(self) -> int:
        return len(self._waiting) - len(self.unsent)

    @property
    def sent(self) -> list[int]:
        """In this session."""
        return [number for number, waiting in self._waiting.items() if waiting.sent]

    def has_unsent(self, stream: int) -> bool:
        """Whether the request that it goes out with is yet to be sent."""
        return stream in self.unsent or any(stream in self._waiting[number].call.to_server for number in self.unsent)

    def cancel(self, number: int) -> None:
        if number not in self.unsent:
            self._to_cancel.append(number)

    def next_cancel(self) -> int | None:
        return self._to_cancel.popleft() if self._to_cancel else None
