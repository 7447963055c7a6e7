"""run(): a command to its end, with what is known of it. It returns only when the command ended by itself; whatever else
happens, its tree is proven dead before the sandbox object is lent again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Never

from . import names
from .custody import Custody
from .errors import UNKNOWN_CODES, LifetimeOver, RemoteError, SandfleetError
from .pipes import Reader
from .processes import Process
from .specs import Collect, OutputState, State
from .streams import Piece

OnOutput = Callable[[Piece], "Awaitable[None] | None"]


class Outcome(StrEnum):
    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timedOut"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Output:
    """The tail of an output, exactly, and what is known of the whole."""

    data: bytes = b""
    total_bytes: int | None = None  # None: not known.
    truncated: bool = False
    spill_path: str | None = None  # In the sandbox: all of it, for as long as the session lives.

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class RunResult:
    argv: tuple[str, ...]
    handle: str
    pid: int | None
    outcome: Outcome
    exit_code: int | None  # None: a signal ended it, or nobody knows.
    signal: str | None
    stdout: Output
    stderr: Output
    started_at: datetime
    ended_at: datetime
    duration: float  # In seconds, by a clock that nobody sets.
    empty: bool  # It is proven that nothing of its tree was left.

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.EXITED and self.exit_code == 0

    def check(self) -> RunResult:
        if not self.ok:
            raise CommandFailed(self, f"{self.argv[0]!r} ended with {self.signal or self.exit_code}")
        return self


class RunError(SandfleetError):
    """A command that has no result of its own; `result` says what is known of it."""

    def __init__(self, result: RunResult, message: str) -> None:
        super().__init__(message)
        self.result = result


class CommandFailed(RunError):
    """It ended by itself, with another exit code than 0 or by a signal; raised by check()."""


class CommandTimedOut(RunError):
    """Its time was up. `result.empty`: nothing of it is left; else the sandbox object is quarantined."""


class OutcomeUnknown(RunError):
    """The way to the sandbox failed meanwhile, and nobody knows how it ended."""


class Run:
    """One run() at work."""

    def __init__(self, custody: Custody, process: Process) -> None:
        self._custody, self._process = custody, process
        self._started_at = datetime.now(UTC)
        self._began = asyncio.get_running_loop().time()

    async def to_the_end(self, timeout: float | None, on_stdout: OnOutput | None, on_stderr: OnOutput | None) -> RunResult:
        loop = asyncio.get_running_loop()
        ends = [each for each in (self._custody.deadline, None if timeout is None else loop.time() + timeout) if each is not None]
        try:
            async with asyncio.timeout_at(min(ends, default=None)) as limit:
                result = await self._by_itself(on_stdout, on_stderr)
        except TimeoutError:
            if not limit.expired():
                await self._give_up()
                raise
            await self._timed_out(timeout)
        except RemoteError as error:
            if error.code not in UNKNOWN_CODES:
                await self._give_up()
                raise
            await self._unknown(error)
        except BaseException:
            await self._give_up()
            raise
        await self._let_go(result)
        return result

    async def _by_itself(self, on_stdout: OnOutput | None, on_stderr: OnOutput | None) -> RunResult:
        process = self._process
        await process.start()
        settled = asyncio.ensure_future(process.wait("settled"))
        told = [
            asyncio.ensure_future(_follow(reader, tell))
            for reader, tell in ((process.stdout, on_stdout), (process.stderr, on_stderr))
            if reader and tell
        ]
        try:
            await asyncio.gather(settled, *told)
        finally:
            for each in (settled, *told):
                each.cancel()
        state = settled.result()
        outcome = Outcome.SIGNALLED if state.exit_code is None else Outcome.EXITED
        return await self._result(outcome, state, asyncio.get_running_loop().time())

    async def _give_up(self) -> None:
        if await self._custody.prove_dead(self._process):
            with contextlib.suppress(RemoteError):
                await self._process.release()

    async def _timed_out(self, timeout: float | None) -> Never:
        ended = asyncio.get_running_loop().time()
        await self._custody.prove_dead(self._process)
        result = await self._what_is_known(Outcome.TIMED_OUT, ended)
        if isinstance(self._custody.refusal, LifetimeOver):
            raise CommandTimedOut(result, str(self._custody.refusal))
        raise CommandTimedOut(result, f"{self._process} did not end within {timeout:g} s")

    async def _unknown(self, error: RemoteError) -> Never:
        ended = asyncio.get_running_loop().time()
        await self._custody.prove_dead(self._process)
        raise OutcomeUnknown(await self._result(Outcome.UNKNOWN, None, ended), str(error)) from error

    async def _what_is_known(self, outcome: Outcome, ended: float) -> RunResult:
        """Of a command that did not end by itself."""
        if not self._custody.holds(self._process):
            with contextlib.suppress(RemoteError):  # It never began, or the sandbox has forgotten it.
                result = await self._result(outcome, await self._process.state(), ended)
                await self._let_go(result)
                return result
        return await self._result(outcome, None, ended)

    async def _result(self, outcome: Outcome, state: State | None, ended: float) -> RunResult:
        process, duration = self._process, ended - self._began
        return RunResult(
            tuple(names.to_text(names.to_bytes(each)) for each in process.spec.argv),
            process.handle,
            process.pid,
            outcome,
            state.exit_code if state else None,
            state.signal if state else None,
            await self._output("stdout", state.stdout if state else None),
            await self._output("stderr", state.stderr if state else None),
            self._started_at,
            datetime.now(UTC),
            duration,
            state.empty if state else not self._custody.holds(process),
        )

    async def _output(self, which: str, state: OutputState | None) -> Output:
        if state is None:
            return Output()
        began, data = await self._process.read(which)
        return Output(data, state.bytes, began > 0, state.spill_path)

    async def _let_go(self, result: RunResult) -> None:
        """The sandbox keeps what a spill or a tree that goes on needs; all of that ends with the session."""
        if result.empty and not (result.stdout.spill_path or result.stderr.spill_path):
            with contextlib.suppress(RemoteError):  # The end of the session does it, too.
                await self._process.release()


async def _follow(reader: Reader, tell: OnOutput) -> None:
    async for piece in reader:
        waits = tell(piece)
        if waits is not None:
            await waits


def collected(max_bytes: int, spill_bytes: int | None, tell: OnOutput | None) -> Collect:
    return Collect(max_bytes, spill_bytes, mirror=tell is not None)
