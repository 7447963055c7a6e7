"""Requests of one sandbox object, with what all of them have in common; and waits that leave room for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from .calls import Call
from .connection import Connection
from .names import Name
from .specs import State, state_of

WAITS_AT_ONCE = 64  # So that waiting leaves room for whatever else a session asks.
WAIT_TURN_MS = 1_000  # Of each, while others wait for a turn.


@dataclass(frozen=True, slots=True)
class Asking:
    """What each request of one sandbox object has in common."""

    connection: Connection
    permission_mode: str | None = None
    workspace_root: Name | None = None

    def request(self, op: str, args: Mapping[str, Any], **more: Any) -> Call:
        present = {name: value for name, value in args.items() if value is not None}
        return Call(op, present, permission_mode=self.permission_mode, workspace_root=self.workspace_root, **more)

    async def call(self, op: str, upload: bytes | None = None, /, mutating: bool = False, **args: Any) -> dict[str, Any]:
        return await self.connection.call(self.request(op, args, mutating=mutating, up=upload is not None), upload or b"")

    async def download(self, call: Call) -> AsyncIterator[bytes]:
        async with self.connection.asked(call) as (stream, _):
            async for piece in self.connection.pieces(stream):
                yield piece.data

    async def fetch(self, op: str, /, **args: Any) -> tuple[dict[str, Any], bytes]:
        """With its whole download."""
        async with self.connection.asked(self.request(op, args, down=True)) as (stream, ok):
            return ok, b"".join([piece.data async for piece in self.connection.pieces(stream)])


class Waits:
    """Waits for processes, of which a session may have more than it may have unanswered requests."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._turns = asyncio.Semaphore(WAITS_AT_ONCE)
        self._in_line = 0

    async def until(self, handle: str, until: str) -> State:
        while True:
            self._in_line += 1
            try:
                await self._turns.acquire()
            finally:
                self._in_line -= 1
            try:
                turn_ms = WAIT_TURN_MS if self._in_line else None
                ok = await self._asking.call("process.wait", handle=handle, until=until, timeoutMs=turn_ms)
            finally:
                self._turns.release()
            if ok["reached"]:
                return state_of(ok["state"])
