"""The way to agentd's Unix socket for a session that outlives it: dials, dials again within the lease, renews the token, and
does what each reason to close asks for. All of it runs on one event loop; what happens between two `await`s is atomic."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import cast

from .errors import ProtocolError
from .events import Closed
from .frames import FrameReader, encode
from .session import Session

LOG = logging.getLogger("sandfleet")
TICK_S = 1.0
FIRST_BACKOFF_S, MOST_BACKOFF_S = 0.05, 3.0
PAUSED_S = 1.0  # After quiesce: until dialling again.
RENEW_AT, RENEW_LEAST_S = 0.8, 5.0  # Of a credential's time; not at once again where the next is the same, or clocks differ.
WRITE_AHEAD = 1 << 20  # Bytes that the socket's buffer takes before it asks to pause.
WRITE_BYTES = 256 << 10  # At a time.

STEADY_S = 10.0  # A link that held so long was not for nothing.

GIVES_UP = frozenset({"version", "replaced", "end"})
"""Reasons to close after which nothing is dialled again; `denied` is one when a new credential was denied too, and `protocol`
before the first welcome."""

TokenSource = Callable[[], str | None]
"""Raises OSError, or ValueError for what is no token."""


def backoff_s(tries: int) -> float:
    """Before try `tries`, from 0; jittered by half, so that many clients do not come at once."""
    return min(MOST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(tries, 16)) * random.uniform(0.5, 1.0)


def is_final(error: OSError | ValueError, reached: bool) -> bool:
    """Whether no token will come. One that is not there is waited for by who was `reached` once: it may just be replaced."""
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return not reached
    return isinstance(error, (PermissionError, ValueError))


def renew_after(expires_ms: int) -> float:
    """In how many seconds the next credential is brought."""
    return max(expires_ms / 1000 * RENEW_AT, RENEW_LEAST_S)


class _Line(asyncio.Protocol):
    """One dialled socket."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._reader = FrameReader()
        self.transport: asyncio.Transport | None = None
        self.writable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_AHEAD)

    def data_received(self, data: bytes) -> None:
        self._link.arrived(self, self._reader, data)

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._link.pump()

    def connection_lost(self, error: Exception | None) -> None:
        self._link.line_lost(self, str(error) if error else "it hung up")


class Link:
    """`pump` is called when there is something to tell or to send; `on_over`, once, with why nothing is dialled any more."""

    def __init__(
        self,
        path: str,
        lease_seconds: int,
        token: TokenSource | None,
        session: Session,
        pump: Callable[[], None],
        on_over: Callable[[str], None],
    ) -> None:
        self._path, self._lease_seconds, self._token, self._session = path, lease_seconds, token, session
        self.pump, self._on_over = pump, on_over
        self._line: _Line | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tries = self._denials = 0
        self._breaches = 0  # In a row.
        self._opened_at = 0.0  # The last link that was.
        self._reached = False  # There was a welcome once.
        self._trouble = "it was not reached yet"
        self.over: str | None = None
        self.hung_up = asyncio.Event()

    def begin(self) -> None:
        self._tick()
        self._await_link()
        self._dial()

    def _dial(self) -> None:
        self._dialling = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        try:
            token = self._token() if self._token else None
        except (OSError, ValueError) as error:
            why = f"its token cannot be read: {error}"
            return self.give_up(why) if is_final(error, self._reached) else self._lost(why)
        line = _Line(self)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: line, self._path)
        except OSError as error:
            if not self._reached:  # Who was never there is not waited for.
                return self.give_up(f"no agentd listens at {self._path}: {error.strerror or error}")
            return self._lost(str(error))
        assert line.transport is not None
        if self.over is not None:
            return line.transport.abort()
        if line.transport.is_closing():  # It hung up before anybody looked.
            return self._lost("it hung up")
        self._line = line
        self._session.dial(token, self._now())
        self.pump()

    def arrived(self, line: _Line, reader: FrameReader, data: bytes) -> None:
        if line is not self._line:
            return
        try:
            for frame in reader.feed(data):
                self._session.receive(frame, self._now())
        except ProtocolError as error:
            self._session.refuse(error)
        self.pump()

    def line_lost(self, line: _Line, trouble: str) -> None:
        if line is self._line:
            self._line = None
            self._lost(trouble)
        if self.over is not None:
            self.hung_up.set()

    def _lost(self, trouble: str) -> None:
        self._session.cut()
        if self.over is None:
            LOG.info("the link to agentd was lost (%s); dialling again", trouble)
            self._trouble = trouble
            self._await_link()
            self._dial_again(backoff_s(self._tries))
            self._tries += 1
        self.pump()

    def _dial_again(self, seconds: float) -> None:
        self._set_timer("dial", seconds, self._dial)

    def _await_link(self, anew: bool = False) -> None:
        """A session ends on the server when its lease has passed without a link."""
        if anew or "lease" not in self._timers:
            seconds = self._lease_seconds
            self._set_timer("lease", seconds, lambda: self.give_up(f"agentd was not reached for {seconds} s: {self._trouble}"))

    def closed(self, closed: Closed) -> None:
        if self.over is not None:
            return
        self._trouble = closed.message or f"it closed the link ({closed.reason})"
        LOG.info("agentd closed the link (%s): %s", closed.reason, closed.message)
        self._denials += closed.reason == "denied"  # A new token is asked for, once.
        broken = closed.reason == "protocol"
        if closed.reason in GIVES_UP or self._denials > 1 or (broken and not self._reached):
            return self.give_up(f"agentd refuses ({closed.reason}): {self._trouble}")
        self._hang_up()
        if broken:
            return self._begin_anew()
        paused = closed.reason == "quiesce"
        self._await_link(anew=paused)  # The lease stands still in a pause.
        if closed.retry_after_ms is not None:
            self._dial_again(closed.retry_after_ms / 1000)
        else:
            self._dial_again(PAUSED_S if paused else backoff_s(self._tries))
            self._tries += 1

    def _begin_anew(self) -> None:
        """Nobody knows what is true of a session in which the protocol was broken: what it had under way fails, and may be
        what it broke by."""
        if self._now() - self._opened_at > STEADY_S:
            self._breaches = 0
        self._session.abandon(f"the protocol was broken, and the session with it: {self._trouble}")
        self.pump()
        self._await_link()
        self._dial_again(backoff_s(self._breaches))
        self._breaches += 1

    def _hang_up(self) -> None:
        self.send()  # A close that is due.
        line, self._line = self._line, None
        if line and line.transport:
            line.transport.close()
            asyncio.get_running_loop().call_later(TICK_S, line.transport.abort)
        elif self.over is not None:
            self.hung_up.set()

    def give_up(self, why: str) -> None:
        """For good: all that waits fails, and so does what is asked from now on."""
        if self.over is not None:
            return
        self.over = why
        for timer in self._timers.values():
            timer.cancel()
        self._hang_up()
        self._on_over(why)
        self.pump()

    def welcomed(self, expires_ms: int) -> None:
        self._reached = True
        self.renew_in(expires_ms)

    def opened(self) -> None:
        self._stop_timer("lease")
        self._opened_at = self._now()
        self._tries = self._denials = 0

    def renew_in(self, expires_ms: int) -> None:
        if expires_ms and self._token:
            self._set_timer("renew", renew_after(expires_ms), self._renew)

    def _renew(self) -> None:
        try:
            token = self._token() if self._token else None
        except (OSError, ValueError) as error:
            # The link will be closed as expired, and dialling tells what is wrong.
            return LOG.warning("the token cannot be read: %s", error)
        if token is not None:
            self._session.renew(token)
            self.pump()

    def _set_timer(self, name: str, seconds: float, then: Callable[[], None]) -> None:
        def fire() -> None:
            self._timers.pop(name, None)
            then()

        self._stop_timer(name)
        self._timers[name] = asyncio.get_running_loop().call_later(seconds, fire)

    def _stop_timer(self, name: str) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()

    def _tick(self) -> None:
        self._set_timer("tick", TICK_S, self._tick)
        self._session.tick(self._now())
        self.pump()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def send(self) -> None:
        line, frames, size = self._line, [], 0
        while line and line.transport and line.writable and not line.transport.is_closing():
            frame = self._session.next()
            if frame is not None:
                frames.append(encode(frame))
                size += len(frames[-1])
            if frames and (frame is None or size >= WRITE_BYTES):
                line.transport.write(b"".join(frames))
                frames, size = [], 0
            if frame is None:
                break
