"""Commands in a sandbox: handles of what runs."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Any

from . import names
from .asking import Asking, Waits
from .custody import Custody
from .errors import UNKNOWN_CODES, RemoteError
from .pipes import Reader, Writer
from .specs import Foreground, Spec, State, has_stream, input_mode, output_mode, state_of

READ_BYTES = 8 << 20  # Of an output at a time.
PROVE_AGAIN_S = 0.5


class Process:
    """A command in the sandbox, by a handle that this side chose: also one whose spawn nobody heard the answer of can be
    ended."""

    def __init__(self, asking: Asking, custody: Custody, waits: Waits, spec: Spec, handle: str | None = None) -> None:
        self._asking, self._custody, self._waits, self.spec = asking, custody, waits, spec
        self.handle = handle or secrets.token_urlsafe(24)
        self._streams = {
            end: asking.connection.new_stream()
            for end, way in (("stdin", spec.stdin), ("stdout", spec.stdout), ("stderr", spec.stderr))
            if has_stream(way)
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
        if self.spec.detached:
            self._custody.forget(self)  # From now on it is nobody's.

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
            "stdin": input_mode(spec.stdin, streams.get("stdin")),
            "stdout": output_mode(spec.stdout, streams.get("stdout")),
            "stderr": output_mode(spec.stderr, streams.get("stderr")),
            "terminal": spec.terminal and {"rows": spec.terminal[0], "columns": spec.terminal[1]},
            "detached": spec.detached or None,
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
        ok = await self._asking.call("terminal.foreground", handle=self.handle, typed=self._typed)
        return Foreground(ok.get("processGroup"), ok.get("inputWaiting"))

    async def signal_foreground(self, signal: str) -> int:
        """Behind all that was written to `stdin` before; the process group that it was sent to."""
        ok = await self._asking.call("terminal.signal", mutating=True, handle=self.handle, signal=signal, typed=self._typed)
        return int(ok["processGroup"])

    @property
    def _typed(self) -> int | None:
        """Requests overtake what is on its way as data."""
        return self.stdin.written if self.stdin else None

    async def __aenter__(self) -> Process:
        return self

    async def __aexit__(self, *_: object) -> None:
        """What still runs of it is ended to the proof."""
        await self._custody.prove_dead(self)
        with contextlib.suppress(RemoteError):
            if not self._custody.quarantined:
                await self.release()
