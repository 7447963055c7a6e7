"""What is asked through a session that is kept going: requests, each with its answer, and their streams. All of it runs on one
event loop; what happens between two `await`s is atomic."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

from .calls import Call
from .errors import Failure, RemoteError
from .events import Answered, Closed, Event, Failed, Moved, Notice, Noticed, Opened, Renewed, Welcome, Welcomed
from .link import LOG, Link, TokenSource, backoff_s
from .session import Session, Settings
from .streams import Piece

LINE_MOST = 4_096  # Requests that wait to be asked.
BUSY_TRIES = 8  # About three seconds in all.

_Asked: TypeAlias = "tuple[int, asyncio.Future[dict[str, Any]], memoryview]"
"""A request's id, its answer, and what of its upload is not on its way."""
_Queued: TypeAlias = "tuple[Call, memoryview, asyncio.Future[_Asked]]"


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
        self._on_notice = on_notice
        self._session = Session(settings)
        self._link = Link(path, settings.lease_seconds, token, self._session, self.pump, self._fail_all)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._queue: deque[_Queued] = deque()  # Until the session has room.
        self._bells: dict[int, _Bell] = {}  # Of streams that somebody waits for.
        self._pumping = self._pump_again = False
        self._opened = asyncio.get_running_loop().create_future()
        self.welcome: Welcome | None = None

    async def open(self) -> Welcome:
        """The first link. Fails at once where nobody listens, and when it is refused."""
        self._link.begin()
        await self._opened
        assert self.welcome is not None
        return self.welcome

    async def close(self) -> None:
        """Ends the session, and with it what it has begun in the sandbox."""
        self._session.finish()
        self.give_up("this session has ended")
        await self._link.hung_up.wait()

    def give_up(self, why: str) -> None:
        """For good: all that waits fails, and so does what is asked from now on."""
        self._link.give_up(why)

    def _fail_all(self, why: str) -> None:
        failed = RemoteError(Failure("UNAVAILABLE", why))
        self._session.abandon(why)
        while self._queue:
            *_, turn = self._queue.popleft()
            if not turn.done():
                turn.set_exception(failed)
        if not self._opened.done():
            self._opened.set_exception(failed)
            self._opened.exception()  # Whoever waits hears of it; nobody must.

    @property
    def over(self) -> str | None:
        """Why nothing is asked any more."""
        return self._link.over

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
        if self.over is not None:
            raise RemoteError(Failure("UNAVAILABLE", self.over))
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

    def sent(self, stream: int) -> int:
        """How much of it was taken in so far, where it is still wanted."""
        return self._session.appended(stream)

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
                self._link.send()
        finally:
            self._pumping = False

    def _tell(self, event: Event) -> None:
        match event:
            case Answered(number, ok):
                self._settle(number, lambda answer: answer.set_result(ok))
            case Failed(number, failure):
                self._settle(number, lambda answer: answer.set_exception(RemoteError(failure)))
            case Moved(stream):
                self._ring(stream)
            case Welcomed(welcome):
                self.welcome = welcome
                self._link.welcomed(welcome.expires_ms)
            case Opened():
                self._link.opened()
                if not self._opened.done():
                    self._opened.set_result(None)
            case Noticed(notice):
                LOG.info("%s: %s", notice.kind, notice.message)
                if self._on_notice:
                    asyncio.get_running_loop().call_soon(self._on_notice, notice)  # What that raises is not ours.
            case Renewed(expires_ms):
                self._link.renew_in(expires_ms)
            case Closed():
                self._link.closed(event)

    def _settle(self, number: int, then: Callable[[asyncio.Future[dict[str, Any]]], None]) -> None:
        answer = self._answers.pop(number, None)
        if answer and not answer.done():
            then(answer)
