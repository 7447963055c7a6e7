"""A session that is kept going over agentd's Unix socket: dials, dials again, renews its token, and asks. All of it runs on one
event loop; what happens between two `await`s is atomic."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias, cast

from .errors import Failure, ProtocolError, RemoteError
from .frames import FrameReader, encode
from .session import (
    Answered,
    Call,
    Closed,
    Event,
    Failed,
    Moved,
    Notice,
    Noticed,
    Opened,
    Renewed,
    Session,
    Settings,
    Welcome,
    Welcomed,
)
from .streams import Piece

LOG = logging.getLogger("sandfleet")
TICK_S = 1.0
FIRST_BACKOFF_S, MOST_BACKOFF_S = 0.05, 3.0
PAUSED_S = 1.0  # After quiesce: until dialling again.
LINE_MOST = 4_096  # Requests that wait to be asked.
BUSY_TRIES = 8  # About three seconds in all.
RENEW_AT = 0.8  # Of a credential's time.
WRITE_AHEAD = 1 << 20  # Bytes that the socket's buffer takes before it asks to pause.
WRITE_BYTES = 256 << 10  # At a time.

GIVES_UP = frozenset({"version", "protocol", "impostor", "replaced", "end"})
"""Reasons to close after which nothing is dialled again; `denied` is one when a new credential was denied too."""

TokenSource = Callable[[], str | None]


def backoff_s(tries: int) -> float:
    """Before try `tries`, from 0; jittered by half, so that many clients do not come at once."""
    return min(MOST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(tries, 16)) * random.uniform(0.5, 1.0)


class _Bell:
    """Wakes all who wait at the moment at which it rings."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.waiting = 0

    def ring(self) -> None:
        self._event.set()
        self._event.clear()

    async def wait(self) -> None:
        self.waiting += 1
        try:
            await self._event.wait()
        finally:
            self.waiting -= 1


class _Line(asyncio.Protocol):
    """One dialled socket."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reader = FrameReader()
        self.transport: asyncio.Transport | None = None
        self.writable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_AHEAD)

    def data_received(self, data: bytes) -> None:
        self._connection.arrived(self, self._reader, data)

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._connection.pump()

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.line_lost(self, str(error) if error else "it hung up")


_Asked: TypeAlias = "tuple[int, asyncio.Future[dict[str, Any]], memoryview]"
"""A request's id, its answer, and what of its upload is not on its way."""
_Queued: TypeAlias = "tuple[Call, memoryview, asyncio.Future[_Asked]]"


class Connection:
    """Requests wait while there is no link, for as long as the session's lease: then the server has ended it too, and all that
    is asked fails."""

    def __init__(
        self,
        path: str,
        settings: Settings,
        token: TokenSource | None = None,
        on_notice: Callable[[Notice], None] | None = None,
    ) -> None:
        self._path = path
        self._settings = settings
        self._token = token
        self._on_notice = on_notice
        self._session = Session(settings)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._queue: deque[_Queued] = deque()  # Until the session has room.
        self._bells: dict[int, _Bell] = {}  # Of streams that somebody waits for.
        self._line: _Line | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tries = self._denials = 0
        self._reached = False  # There was a welcome once.
        self._pumping = self._pump_again = False
        self._over: str | None = None  # Why nothing is asked any more.
        self._opened = asyncio.get_running_loop().create_future()
        self._hung_up = asyncio.Event()
        self._trouble = "it was not reached yet"
        self.welcome: Welcome | None = None

    async def open(self) -> Welcome:
        """The first link. Fails at once where nobody listens, and when it is refused."""
        self._tick()
        self._await_link()
        self._dial()
        await self._opened
        assert self.welcome is not None
        return self.welcome

    async def close(self) -> None:
        """Ends the session, and with it what it has begun in the sandbox."""
        self._session.finish()
        self.give_up("this session has ended")
        await self._hung_up.wait()

    @property
    def over(self) -> str | None:
        return self._over

    # Requests.

    async def call(self, call: Call, upload: bytes = b"") -> dict[str, Any]:
        """The reply. BUSY says that nothing was done and that the same may be asked again; that is done here."""
        async with self.asked(call, upload) as (_, ok):
            return ok

    @contextlib.asynccontextmanager
    async def asked(self, call: Call, upload: bytes = b"") -> AsyncIterator[tuple[int, dict[str, Any]]]:
        """Its id and its reply; what is not taken of its download by the end is not wanted."""
        number, ok = await self._ask_until_not_busy(call, upload)
        try:
            yield number, ok
        finally:
            if call.down:
                self.stop(number)

    async def _ask_until_not_busy(self, call: Call, upload: bytes) -> tuple[int, dict[str, Any]]:
        for tries in range(BUSY_TRIES):
            try:
                return await self._ask(call, upload)
            except RemoteError as error:
                # Streams of its own are asked for once.
                if error.code != "BUSY" or tries + 1 == BUSY_TRIES or call.to_client or call.to_server:
                    raise
                await asyncio.sleep(backoff_s(tries) if error.retry_after_ms is None else error.retry_after_ms / 1000)
        raise AssertionError("not reached")

    async def _ask(self, call: Call, upload: bytes) -> tuple[int, dict[str, Any]]:
        number, answer, rest = await self._turn(call, memoryview(upload))
        sending = asyncio.create_task(self._send_rest(number, rest)) if rest else None
        try:
            return number, await answer
        except asyncio.CancelledError:
            self._answers.pop(number, None)
            self._session.cancel(number)
            self.stop(number)
            raise
        finally:
            if sending:
                sending.cancel()

    async def _turn(self, call: Call, upload: memoryview) -> _Asked:
        if self._over is not None:
            raise RemoteError(Failure("UNAVAILABLE", self._over))
        if len(self._queue) >= LINE_MOST:
            raise RemoteError(Failure("BUSY", "too many requests wait to be asked"))
        turn: asyncio.Future[_Asked] = asyncio.get_running_loop().create_future()
        self._queue.append((call, upload, turn))
        self.pump()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._session.cancel(turn.result()[0])  # It was asked in the same moment.
            raise

    def _ask_of_the_queue(self) -> None:
        while self._queue and self._session.has_room_for(self._queue[0][0]):
            call, upload, turn = self._queue.popleft()
            if turn.done():
                continue  # Given up.
            try:
                number = self._session.ask(call)
            except RemoteError as error:
                turn.set_exception(error)
                continue
            self._answers[number] = answer = asyncio.get_running_loop().create_future()
            turn.set_result((number, answer, self._begin_upload(number, upload) if call.up else upload))

    def _begin_upload(self, number: int, data: memoryview) -> memoryview:
        """What of it did not find room yet."""
        count = min(self._session.room(number), len(data))
        self._session.append(number, bytes(data[:count]))
        if count == len(data):
            self._session.end(number)
        return data[count:]

    async def _send_rest(self, number: int, data: memoryview) -> None:
        if await self.send(number, data):
            self.end(number)

    # Streams.

    def new_stream(self) -> int:
        return self._session.new_stream()

    async def pieces(self, stream: int) -> AsyncIterator[Piece]:
        """What comes of it, to its end. Raises RemoteError where it breaks off."""
        while True:
            piece = self._session.take(stream)
            if piece is None:
                if not self._session.receives(stream):
                    raise RemoteError(Failure("LOST", "the stream ended with its request"))
                self.pump()  # What was let go needs credit.
                await self._moved(stream)
                continue
            asyncio.get_running_loop().call_soon(self.pump)  # The credit for it.
            if piece.data:
                yield piece
            if piece.error:
                raise RemoteError(piece.error)
            if piece.end:
                return

    async def send(self, stream: int, data: bytes | memoryview) -> bool:
        """Once all of it is taken in. False: nobody wants it."""
        view = memoryview(data)
        while view:
            if not self._session.wanted(stream):
                return False
            view = view[self._append(stream, view) :]
            if view and not await self._more_room(stream):
                return False
        return True

    def _append(self, stream: int, data: memoryview) -> int:
        count = min(self._session.room(stream), len(data))
        self._session.append(stream, bytes(data[:count]))
        self.pump()
        return count

    async def _more_room(self, stream: int) -> bool:
        while self._session.wanted(stream):
            if self._session.room(stream):
                return True
            await self._moved(stream)
        return False

    def end(self, stream: int) -> None:
        self._session.end(stream)
        self.pump()

    def stop(self, stream: int) -> None:
        """What comes is wanted no more."""
        self._session.stop(stream)
        self._ring(stream)
        self.pump()

    async def _moved(self, stream: int) -> None:
        bell = self._bells.setdefault(stream, _Bell())
        try:
            await bell.wait()
        finally:
            if not bell.waiting:
                self._bells.pop(stream, None)

    def _ring(self, stream: int) -> None:
        if bell := self._bells.get(stream):
            bell.ring()

    # Links.

    def _dial(self) -> None:
        self._dialling = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        try:
            token = self._token() if self._token else None
        except OSError as error:
            return self._lost(f"its token cannot be read: {error}")
        line = _Line(self)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: line, self._path)
        except OSError as error:
            if not self._reached:  # Who was never there is not waited for.
                return self.give_up(f"no agentd listens at {self._path}: {error.strerror or error}")
            return self._lost(str(error))
        if self._over is not None:
            assert line.transport is not None
            return line.transport.abort()
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
        if self._over is not None:
            self._hung_up.set()

    def _lost(self, trouble: str) -> None:
        self._session.cut()
        if self._over is None:
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
            seconds = self._settings.lease_seconds
            self._set_timer("lease", seconds, lambda: self.give_up(f"agentd was not reached for {seconds} s: {self._trouble}"))

    def _closed(self, closed: Closed) -> None:
        if self._over is not None:
            return
        self._trouble = closed.message or f"it closed the link ({closed.reason})"
        LOG.info("agentd closed the link (%s): %s", closed.reason, closed.message)
        self._denials += closed.reason == "denied"  # A new token is asked for, once.
        if closed.reason in GIVES_UP or self._denials > 1:
            return self.give_up(f"agentd refuses ({closed.reason}): {self._trouble}")
        self._hang_up()
        paused = closed.reason == "quiesce"
        self._await_link(anew=paused)  # The lease stands still in a pause.
        if closed.retry_after_ms is not None:
            self._dial_again(closed.retry_after_ms / 1000)
        else:
            self._dial_again(PAUSED_S if paused else backoff_s(self._tries))
            self._tries += 1

    def _hang_up(self) -> None:
        self._send()  # A close that is due.
        line, self._line = self._line, None
        if line and line.transport:
            line.transport.close()
            asyncio.get_running_loop().call_later(TICK_S, line.transport.abort)
        elif self._over is not None:
            self._hung_up.set()

    def give_up(self, why: str) -> None:
        """For good: all that waits fails, and so does what is asked from now on."""
        if self._over is not None:
            return
        self._over = why
        for timer in self._timers.values():
            timer.cancel()
        self._hang_up()
        self._session.abandon(why)
        while self._queue:
            *_, turn = self._queue.popleft()
            if not turn.done():
                turn.set_exception(RemoteError(Failure("UNAVAILABLE", why)))
        if not self._opened.done():
            self._opened.set_exception(RemoteError(Failure("UNAVAILABLE", why)))
            self._opened.exception()  # Whoever waits hears of it; nobody must.
        self.pump()

    def _renew_in(self, expires_ms: int) -> None:
        if expires_ms and self._token:
            self._set_timer("renew", expires_ms / 1000 * RENEW_AT, self._renew)

    def _renew(self) -> None:
        try:
            token = self._token() if self._token else None
        except OSError as error:
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

    # What has happened is told, then what is due is sent, until neither is left.

    def pump(self) -> None:
        self._pump_again = True
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._pump_again:
                self._pump_again = False
                for event in self._session.take_events():
                    self._tell(event)
                self._ask_of_the_queue()
                self._send()
        finally:
            self._pumping = False

    def _send(self) -> None:
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

    def _tell(self, event: Event) -> None:
        match event:
            case Answered(number, ok):
                self._settle(number, lambda answer: answer.set_result(ok))
            case Failed(number, failure):
                self._settle(number, lambda answer: answer.set_exception(RemoteError(failure)))
            case Moved(stream):
                self._ring(stream)
            case Welcomed(welcome):
                self.welcome, self._reached = welcome, True
                self._renew_in(welcome.expires_ms)
            case Opened():
                self._stop_timer("lease")
                self._tries = self._denials = 0
                if not self._opened.done():
                    self._opened.set_result(None)
            case Noticed(notice):
                LOG.info("%s: %s", notice.kind, notice.message)
                if self._on_notice:
                    asyncio.get_running_loop().call_soon(self._on_notice, notice)  # What that raises is not ours.
            case Renewed(expires_ms):
                self._renew_in(expires_ms)
            case Closed():
                self._closed(event)

    def _settle(self, number: int, then: Callable[[asyncio.Future[dict[str, Any]]], None]) -> None:
        answer = self._answers.pop(number, None)
        if answer and not answer.done():
            then(answer)
