"""Commands in a sandbox: what to run, handles of what runs, and what is known of it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from . import names
from .connection import Connection
from .custody import Custody
from .errors import UNKNOWN_CODES, RemoteError
from .names import Name
from .session import Call
from .streams import Piece

WAITS_AT_ONCE = 64  # So that waiting leaves room for whatever else a session asks.
WAIT_TURN_MS = 1_000  # Of each, while others wait for a turn.
READ_BYTES = 8 << 20  # Of an output at a time.
GRACE_S = 3.0
PROVE_AGAIN_S = 0.5


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
    )


def _input_mode(way: Input, stream: int | None) -> Any:
    if isinstance(way, bytes):
        return "data"
    return "ignore" if stream is None else {"pipe": stream}


def _output_mode(way: Output, stream: int | None) -> Any:
    if not isinstance(way, Collect):
        return "discard" if stream is None else {"pipe": stream}
    spill = None if way.spill_bytes is None else {"maxBytes": way.spill_bytes}
    return {"collect": {"maxBytes": way.max_bytes, "spill": spill, "stream": stream}}


def _has_stream(way: Output | Input) -> bool:
    return way.mirror if isinstance(way, Collect) else way is PIPE


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


class Writer:
    """Standard input of a process, as a pipe."""

    def __init__(self, connection: Connection, stream: int) -> None:
        self._connection, self._stream = connection, stream
        self.begin = 0  # Of the stream, in all that the process gets.

    @property
    def written(self) -> int:
        """How much of what the process gets, in all; it may be on its way."""
        return self.begin + self._connection.sent(self._stream)

    async def write(self, data: bytes) -> None:
        """Once it is taken in; what is not read holds this back. Raises BrokenPipeError where nobody reads any more."""
        if not await self._connection.send(self._stream, data):
            raise BrokenPipeError("nobody reads it any more")

    def close(self) -> None:
        self._connection.end(self._stream)


class Reader:
    """An output as it comes: `async for piece in reader`, each with its offset, once. One that begins further on than the one
    before ended tells of a gap, which only the mirror of a collected output may have."""

    def __init__(self, connection: Connection, stream: int) -> None:
        self._connection, self._stream = connection, stream

    def __aiter__(self) -> AsyncIterator[Piece]:
        return self._connection.pieces(self._stream)

    async def read(self) -> bytes:
        """All of it, to its end."""
        return b"".join([piece.data async for piece in self])

    def close(self) -> None:
        """It is wanted no more; who writes on to a pipe gets SIGPIPE."""
        self._connection.stop(self._stream)


class Process:
    """A command in the sandbox, by a handle that this side chose: also one whose spawn nobody heard the answer of can be
    ended."""

    def __init__(self, asking: Asking, custody: Custody, waits: Waits, spec: Spec, handle: str | None = None) -> None:
        self._asking, self._custody, self._waits, self.spec = asking, custody, waits, spec
        self.handle = handle or secrets.token_urlsafe(24)
        self._streams = {
            end: asking.connection.new_stream()
            for end, way in (("stdin", spec.stdin), ("stdout", spec.stdout), ("stderr", spec.stderr))
            if _has_stream(way)
        }
        self._spawning: asyncio.Task[dict[str, Any]] | None = None
        self._instance: str | None = None  # The executor that was asked.
        self.pid: int | None = None
        self.stdin = Writer(asking.connection, self._streams["stdin"]) if "stdin" in self._streams else None
        self.stdout = Reader(asking.connection, self._streams["stdout"]) if "stdout" in self._streams else None
        self.stderr = Reader(asking.connection, self._streams["stderr"]) if "stderr" in self._streams else None

    def __str__(self) -> str:
        words = " ".join(names.to_text(names.to_bytes(each)) for each in self.spec.argv)
        return f"{words[:80]!r} ({self.handle})"

    @property
    def grace(self) -> float:
        return self.spec.grace

    async def start(self) -> None:
        """Asks for it. Whoever gives up here has begun something all the same: end_to_the_proof() ends it."""
        self._custody.add(self)
        welcome = self._asking.connection.welcome
        self._instance = welcome.instance if welcome else None
        self._spawning = asyncio.get_running_loop().create_task(self._spawn())
        await self._spawned()

    async def _spawned(self) -> None:
        assert self._spawning is not None
        self.pid = (await asyncio.shield(self._spawning))["pid"]

    async def _spawn(self) -> dict[str, Any]:
        spec, streams = self.spec, self._streams
        args = {
            "handle": self.handle,
            "argv": [names.to_wire(each) for each in spec.argv],
            "cwd": None if spec.cwd is None else names.to_wire(spec.cwd),
            "env": None if spec.env is None else [[name, value] for name, value in spec.env.items()],
            "graceMs": spec.grace_ms,
            "stdin": _input_mode(spec.stdin, streams.get("stdin")),
            "stdout": _output_mode(spec.stdout, streams.get("stdout")),
            "stderr": _output_mode(spec.stderr, streams.get("stderr")),
            "terminal": spec.terminal and {"rows": spec.terminal[0], "columns": spec.terminal[1]},
        }
        call = self._asking.request(
            "process.spawn",
            args,
            mutating=True,
            up=isinstance(spec.stdin, bytes),
            to_client=tuple(streams[end] for end in ("stdout", "stderr") if end in streams),
            to_server=tuple(streams[end] for end in ("stdin",) if end in streams),
        )
        try:
            return await self._asking.connection.call(call, spec.stdin if isinstance(spec.stdin, bytes) else b"")
        except RemoteError as error:
            if error.code not in UNKNOWN_CODES:
                self._custody.forget(self)  # Nothing was started.
            if error.code == "SPAWN_FAILED":
                with contextlib.suppress(RemoteError):
                    await self.release()  # Its handle is known until then.
            raise

    async def attach(self, stdout_from: int | None, stderr_from: int | None, adopt: bool) -> State:
        """Takes over the streams of a process that runs already."""
        streams = self._streams

        def output(end: str, start: int | None) -> dict[str, int] | None:
            return {"stream": streams[end], "from": start or 0} if end in streams else None

        args = {
            "handle": self.handle,
            "stdin": streams.get("stdin"),
            "stdout": output("stdout", stdout_from),
            "stderr": output("stderr", stderr_from),
            "adopt": adopt,
        }
        call = self._asking.request(
            "process.attach",
            args,
            mutating=True,
            to_client=tuple(streams[end] for end in ("stdout", "stderr") if end in streams),
            to_server=tuple(streams[end] for end in ("stdin",) if end in streams),
        )
        welcome = self._asking.connection.welcome
        self._instance = welcome.instance if welcome else None
        ok = await self._asking.connection.call(call)
        state = state_of(ok["state"])
        self.pid = state.pid
        if self.stdin:
            self.stdin.begin = ok["stdinAt"]
        if adopt and not state.empty:
            self._custody.add(self)
        return state

    async def state(self) -> State:
        """As it is now."""
        ok = await self._asking.call("process.wait", handle=self.handle, until="exit", timeoutMs=0)
        return state_of(ok["state"])

    async def wait(self, until: str = "exit", timeout: float | None = None) -> State:
        """Until it is so: "exit", the command itself has ended; "settled", its outputs too; "empty", nothing of its tree is
        left. Raises TimeoutError after `timeout` seconds."""
        async with asyncio.timeout(timeout):
            state = await self._waits.until(self.handle, until)
        if state.empty:
            self._custody.forget(self)
        return state

    async def signal(self, signal: str, to: str = "group") -> bool:
        """`to`: leader, group or tree. False: nobody was left."""
        ok = await self._asking.call("process.signal", mutating=True, handle=self.handle, signal=signal, to=to)
        return bool(ok["delivered"])

    async def terminate(self, grace: float | None = None) -> None:
        """Begins to end it: SIGTERM, and after `grace` seconds SIGKILL to whoever is left. wait("empty") tells the end."""
        grace_ms = None if grace is None else max(1, round(grace * 1000))
        await self._asking.call("process.terminate", mutating=True, handle=self.handle, graceMs=grace_ms)

    async def kill(self) -> bool:
        """Ends it to the proof that nothing is left, also of what left its process group. False: that cannot be proven, and
        the sandbox object is quarantined."""
        self._custody.add(self)
        return await self._custody.prove_dead(self)

    async def end_to_the_proof(self) -> None:
        try:
            if self._spawning is not None:
                await self._spawned()
        except RemoteError as error:
            if error.code not in UNKNOWN_CODES:
                return  # Nothing was started.
        while True:
            try:
                await self.terminate()
                await self.wait("empty")
                return
            except RemoteError as error:
                if error.code == "NOT_FOUND" and self._is_same_executor():
                    return  # It forgets what a session has left behind once it has the proof itself.
                # Both may be asked again, for as long as there is time.
                if error.code not in ("TERMINATE_FAILED", "OUTCOME_UNKNOWN") or self._asking.connection.over:
                    raise
            await asyncio.sleep(PROVE_AGAIN_S)

    def _is_same_executor(self) -> bool:
        welcome = self._asking.connection.welcome
        return welcome is not None and welcome.instance == self._instance

    async def read(self, output: str, start: int = 0, max_bytes: int | None = None) -> tuple[int, bytes]:
        """What is kept of a collected output from `start` on: where the bytes begin, and they themselves."""
        began, parts, left = None, [], max_bytes
        while left is None or left > 0:
            ask = READ_BYTES if left is None else min(left, READ_BYTES)
            ok, data = await self._asking.fetch(
                "process.read", handle=self.handle, output=output, **{"from": start}, maxBytes=ask
            )
            began = ok["from"] if began is None else began
            parts.append(data)
            start = ok["next"]
            left = None if left is None else left - len(data)
            if len(data) < ask:
                break
        return began or 0, b"".join(parts)

    async def release(self) -> None:
        """State, tails and spills of one that is empty are gone."""
        await self._asking.call("process.release", mutating=True, handle=self.handle)

    async def resize(self, rows: int, columns: int) -> None:
        """Of its terminal."""
        await self._asking.call("terminal.resize", mutating=True, handle=self.handle, rows=rows, columns=columns)

    async def foreground(self) -> Foreground:
        """Whoever waits does so after all that was written to `stdin` before."""
        typed = self.stdin.written if self.stdin else None
        ok = await self._asking.call("terminal.foreground", handle=self.handle, typed=typed)
        return Foreground(ok.get("processGroup"), ok.get("inputWaiting"))

    async def signal_foreground(self, signal: str) -> int:
        """The process group that it was sent to."""
        ok = await self._asking.call("terminal.signal", mutating=True, handle=self.handle, signal=signal)
        return int(ok["processGroup"])

    async def __aenter__(self) -> Process:
        return self

    async def __aexit__(self, *_: object) -> None:
        """What still runs of it is ended to the proof."""
        await self._custody.prove_dead(self)
        with contextlib.suppress(RemoteError):
            if not self._custody.quarantined:
                await self.release()
