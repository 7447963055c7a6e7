"""The streams of a session: bytes in one direction, with absolute offsets from 0, that go on after a cut where they were."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .errors import Failure, ProtocolError
from .frames import Frame, Kind
from .messages import LIMITS, Message, write

HELD_MOST = 16 << 20  # Of all streams together; beyond it one holds no more
HELD_ALWAYS = 64 << 10  # than this.
CHUNK_BYTES = 64 << 10  # Sent before another stream has its turn.
CHUNK_BYTES_AFTER_CUT = 2 << 10  # At first; each is twice the last.

Row = tuple[int, int, int, bool]  # Stream, received, limit, and whether its end was seen.


@dataclass(frozen=True, slots=True)
class Piece:
    """Of a stream, as it is handed on. One that begins further on than the one before ended tells that what lies between was
    let go."""

    offset: int
    data: bytes
    end: bool = False
    error: Failure | None = None


class Outgoing:
    """The sending end: what was not received yet is kept, so that it can go out again after a cut."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()  # From `_base` on.
        self._base = self._sent = self._sent_most = self._acknowledged = 0
        self._end_sent = False
        self._blocked = False  # A link was lost; nothing goes out until the peer has said how far it came.
        self.closed = False  # No more is appended.
        self.done = False  # Received to the end, or not wanted.

    @property
    def held(self) -> int:
        return len(self._kept)

    @property
    def untouched(self) -> bool:
        """Nothing was received yet, so it can begin anew."""
        return self._base == 0

    @property
    def tail(self) -> int:
        """How much was appended so far."""
        return self._base + len(self._kept)

    def room(self, allowance: int) -> int:
        return 0 if self.done or self.closed else max(0, allowance - self.held)

    def append(self, data: bytes) -> None:
        if not (self.done or self.closed):
            self._kept += data

    def end(self) -> None:
        self.closed = True

    def stop(self) -> None:
        self._forget_before(self.tail)
        self.done = True

    def credit(self, received: int, limit: int, ended: bool) -> None:
        if self.done:
            return
        if received > self._sent_most:
            raise ProtocolError("it received more than was sent")
        if ended and not (self.closed and received == self.tail):
            raise ProtocolError("it received an end that was not sent")
        self._acknowledged = max(self._acknowledged, received)
        self._limit = max(self._limit, limit)
        self._forget_before(received)
        if ended:
            self.stop()

    def cut(self) -> None:
        self._blocked = True

    def go_on(self, received: int, limit: int, ended: bool) -> None:
        if received < self._acknowledged:
            raise ProtocolError("it takes back what it had received")
        self.credit(received, limit, ended)
        self._sent, self._end_sent, self._blocked = received, False, False

    def restart(self, limit: int) -> None:
        """The peer never saw it."""
        self._sent = self._sent_most = self._acknowledged = 0
        self._limit, self._end_sent, self._blocked = limit, False, False

    @property
    def ready(self) -> bool:
        if self.done or self._blocked:
            return False
        return self._sent < self._limit if self._sent < self.tail else self.closed and not self._end_sent

    @property
    def may_begin(self) -> bool:
        """Nothing was sent yet, so what comes first may go with the request."""
        return self.ready and self._sent == 0 == self._base

    def next(self, bytes_max: int) -> tuple[int, bytes, bool]:
        """What goes out next, when it is ready: where it begins, the bytes, whether they are the last."""
        offset = self._sent
        until = min(self.tail, max(self._limit, offset), offset + bytes_max)
        payload = bytes(self._kept[offset - self._base : until - self._base])
        self._sent, self._sent_most = until, max(self._sent_most, until)
        self._end_sent = self.closed and until == self.tail
        return offset, payload, self._end_sent

    def _forget_before(self, offset: int) -> None:
        if offset > self._base:
            del self._kept[: offset - self._base]
            self._base = offset


class Incoming:
    """The receiving end: takes each byte once, however often it comes, and says how far the sender may go."""

    def __init__(self) -> None:
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._received = self._taken = self._limit = self._limit_told = 0
        self._end_taken = self._end_told = False
        self._skipped = False  # A dropped mark waits for an answer.
        self._error: Failure | None = None
        self.ended = False  # The end was seen.
        self.held = 0

    @property
    def done(self) -> bool:
        """The end was handed on, and the sender knows."""
        return self._end_taken and self._end_told

    @property
    def untouched(self) -> bool:
        return self._received == 0 and not self.ended

    @property
    def granted(self) -> int:
        """What may come to be held."""
        return self._limit - self._taken

    def receive(self, offset: int, data: bytes, end: bool = False, dropped: bool = False, error: Failure | None = None) -> None:
        until = offset + len(data)
        if self.ended and until > self._received:
            raise ProtocolError("a stream goes on behind its end")
        if dropped:
            self._skipped |= offset > self._received
            self._received = max(self._received, offset)
            return
        if offset > self._received:
            raise ProtocolError("a stream has a gap")
        if until > max(self._received, self._limit):
            raise ProtocolError("a stream goes beyond its credit")
        if end and until < self._received:
            raise ProtocolError("a stream ends before what came of it")
        if until > self._received:
            fresh = data[self._received - offset :]
            self._pieces.append((self._received, fresh))
            self.held += len(fresh)
            self._received = until
        if end and not self.ended:
            self.ended, self._error = True, error

    def take(self) -> Piece | None:
        """None when there is no more for now. After the end nothing comes."""
        if self._end_taken:
            return None
        if not self._pieces and not self.ended:
            self._taken = self._received  # What was let go needs no reader.
            return None
        offset, data = self._pieces.popleft() if self._pieces else (self._received, b"")
        self.held -= len(data)
        last = not self._pieces
        self._taken = self._received if last else offset + len(data)
        self._end_taken = last and self.ended
        return Piece(offset, data, self._end_taken, self._error if self._end_taken else None)

    def break_off(self, why: Failure) -> None:
        """No more will come; what is there may still be taken."""
        if not self.ended:
            self.ended = self._end_told = True  # There is nobody to tell.
            self._error = why

    def end_is_known(self) -> None:
        """The sender knows of the end without a word from here."""
        self._end_told = True

    def credit(self, allowance: int) -> tuple[int, int, bool] | None:
        """What to tell the sender now: received, limit, ended; None when it knows enough. `allowance`: how far it may be
        ahead of the reader."""
        self._grant(allowance)
        half_used = self._limit - self._limit_told >= allowance // 2
        if self._end_told or not (self.ended or half_used or self._skipped):
            return None
        return self.state(allowance)

    def state(self, allowance: int) -> tuple[int, int, bool]:
        """The same in full, for a new link."""
        self._grant(allowance)
        self._limit_told, self._end_told, self._skipped = self._limit, self.ended, False
        return self._received, self._limit, self.ended

    def _grant(self, allowance: int) -> None:
        wanted = 0 if self.ended else self._taken + allowance
        self._limit = max(self._limit, self._received, wanted)


class Streams:
    """All of a session's, and whose turn it is. An id may have one stream each way. A stream that is not known is one that has
    ended: what concerns it is skipped."""

    def __init__(self) -> None:
        self.outgoing: dict[int, Outgoing] = {}
        self.incoming: dict[int, Incoming] = {}
        self._stops: deque[int] = deque()
        self._to_credit: dict[int, None] = {}  # In the order in which they came.
        self._turn: deque[int] = deque()  # Ids whose turn comes before those that had theirs.
        self._chunk = CHUNK_BYTES
        self._carried = False  # Something, on this link.

    @property
    def size(self) -> int:
        return len(self.outgoing) + len(self.incoming)

    @property
    def held(self) -> int:
        return sum(each.held for each in self.incoming.values()) + sum(each.held for each in self.outgoing.values())

    def _grantable(self) -> int:
        return _allowance(sum(each.granted for each in self.incoming.values()))

    def room(self, stream: int) -> int:
        outgoing = self.outgoing.get(stream)
        return outgoing.room(_allowance(self.held)) if outgoing else 0

    def take(self, stream: int) -> Piece | None:
        incoming = self.incoming.get(stream)
        if incoming is None:
            return None
        piece = incoming.take()
        self.credit_due(stream)
        if incoming.done:
            self.forget_incoming(stream)
        return piece

    def stop(self, stream: int) -> None:
        """What comes in is wanted no more."""
        if stream in self.incoming:
            self.forget_incoming(stream)
            self._stops.append(stream)

    def stop_if_gone(self, stream: int) -> None:
        """A peer that opens it only now has not heard of its stop, or not on this link."""
        if stream not in self.incoming and stream not in self._stops:
            self._stops.append(stream)

    def forget_incoming(self, stream: int) -> None:
        self.incoming.pop(stream, None)
        self._to_credit.pop(stream, None)

    def receive_data(self, data: Message) -> bool:
        """True: there is news for whoever uses the stream."""
        incoming = self.incoming.get(data.stream)
        if incoming is None:
            return False
        incoming.receive(data["offset"], data.payload, data.end, data.dropped, data["error"])
        self.credit_due(data.stream)
        self._carried = True
        return True

    def receive_credit(self, credit: Message) -> bool:
        outgoing = self.outgoing.get(credit.stream)
        if outgoing is None:
            return False
        outgoing.credit(credit["received"], credit["limit"], credit["ended"])
        if outgoing.done:
            del self.outgoing[credit.stream]
        return True

    def credit_due(self, stream: int) -> None:
        self._to_credit[stream] = None

    def cut(self) -> None:
        """The link was lost. The peer learns of stops by what is not named on the next one."""
        for outgoing in self.outgoing.values():
            outgoing.cut()
        self._stops.clear()
        self._to_credit.clear()
        if self._carried:
            self._chunk = CHUNK_BYTES_AFTER_CUT
        self._carried = False

    def next_chunk(self) -> int:
        """How much goes into the next frame. Frames are small again once a link was lost that had carried some: the next may not
        last for a large one, and what is cut within a frame is sent again."""
        size, self._carried = self._chunk, True
        self._chunk = min(2 * size, CHUNK_BYTES)
        return size

    def limit_of(self, stream: int) -> int:
        incoming = self.incoming.get(stream)
        return incoming.state(self._grantable())[1] if incoming else 0

    def state(self) -> list[Row]:
        """For the peer on a new link."""
        rows = []
        for stream, incoming in list(self.incoming.items()):
            if incoming.ended:
                incoming.end_is_known()
            else:
                rows.append((stream, *incoming.state(self._grantable())))
            if incoming.done:
                self.forget_incoming(stream)
        return rows

    def next(self, may_send: Callable[[int], bool]) -> Frame | None:
        """The next frame about streams that is due. `may_send`: whether what goes out by that id may begin yet."""
        return self.next_stop() or self._next_credit() or self._next_data(may_send)

    def next_stop(self) -> Frame | None:
        return write(Kind.STOP, stream=self._stops.popleft()) if self._stops else None

    def _next_credit(self) -> Frame | None:
        while self._to_credit:
            stream = next(iter(self._to_credit))
            del self._to_credit[stream]
            incoming = self.incoming.get(stream)
            told = incoming.credit(self._grantable()) if incoming else None
            if incoming is None or told is None:
                continue
            if incoming.done:
                self.forget_incoming(stream)
            received, limit, ended = told
            return write(Kind.CREDIT, {"received": received, "limit": limit, "ended": ended or None}, stream)
        return None

    def _next_data(self, may_send: Callable[[int], bool]) -> Frame | None:
        for _ in range(2):
            while self._turn:
                stream = self._turn.popleft()
                outgoing = self.outgoing.get(stream)
                if outgoing and outgoing.ready and may_send(stream):
                    offset, payload, end = outgoing.next(self.next_chunk())
                    return write(Kind.DATA, {"offset": offset}, stream, payload, end)
            self._turn.extend(self.outgoing)
        self._turn.clear()
        return None


def _allowance(held: int) -> int:
    """What one stream may hold while all of a session's hold `held` together."""
    return LIMITS.stream_bytes if held < HELD_MOST else HELD_ALWAYS
