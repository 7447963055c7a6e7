"""A session across links, pure: frames and times in, events and frames out. It knows what was asked and how far that came, so
that after a cut each request is asked again that may be, and each stream goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .calls import Call, Requests, Waiting
from .errors import Failure, ProtocolError, RemoteError
from .events import Answered, Closed, Event, Failed, Moved, Notice, Noticed, Opened, Renewed, Welcomed, welcome_of
from .frames import HEADER_BYTES_MAX, Frame, Kind
from .messages import LIMITS, Message, read, to_json, write
from .streams import Incoming, Outgoing, Piece, Streams
from .window import Window

OPEN_WITHIN_S = 15.0  # From dialling to the server's resume.
PING_AFTER_S = 20.0
DEAD_AFTER_S = 45.0
LASTING_STREAMS_MOST = 320  # So that what is short always finds room.
ARGS_BYTES_MAX = HEADER_BYTES_MAX - (64 << 10)


@dataclass(frozen=True, slots=True)
class Settings:
    client: str  # For the server's log.
    features: Sequence[str] = ()
    namespace: str = "default"
    name: str = ""
    lease_seconds: int = 300


class Session:
    """One link at a time: dial, receive and next, then cut."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._streams = Streams()
        self._requests = Requests()
        self._window = Window()
        self._lasting: set[int] = set()  # Streams that may outlive their request's reply for long.
        self._events: list[Event] = []
        self._last_id = 0
        # The session.
        self._session: str | None = None
        self._uid: str | None = None  # A name may pass to another sandbox.
        self._instance: str | None = None  # The executor that has it.
        self._limits = LIMITS
        # The link.
        self._phase = "down"  # Then dialled, welcomed, open.
        self._link = ""
        self._dialled_at = self._heard_at = self._asked_at = 0.0
        self._first: Frame | None = None  # A hello, or a renewal.
        self._last: Frame | None = None  # A close.
        self._resume_due = self._ping_due = self._pong_due = False

    @property
    def over(self) -> bool:
        """Once next() has nothing more, hang up."""
        return self._phase == "down"

    @property
    def open(self) -> bool:
        return self._phase == "open"

    def has_room_for(self, call: Call) -> bool:
        """Whether it can be asked now; else when something else has ended."""
        # The server may count the uploads of what it has not answered for longer.
        streams = self._streams.size + len(self._requests) + call.streams + 1
        return len(self._requests) < LIMITS.requests and streams <= LIMITS.streams

    # Links.

    def dial(self, token: str | None, now: float) -> None:
        self.cut()
        self._phase, self._last = "dialled", None
        self._dialled_at = self._heard_at = self._asked_at = now
        settings = self._settings
        header = {
            "protocol": {"min": 1, "max": 1},
            "client": settings.client,
            "features": list(settings.features),
            "sandbox": {"namespace": settings.namespace, "name": settings.name},
            "uid": self._uid,
            "session": self._session,
            "leaseSeconds": settings.lease_seconds,
            "token": token,
        }
        self._first = write(Kind.HELLO, header)

    def renew(self, token: str) -> None:
        if self.open:
            self._first = write(Kind.RENEW, {"token": token})

    def cut(self) -> None:
        """The link was lost."""
        self._phase = "down"
        self._begin_link()

    def finish(self) -> None:
        """The session ends, and with it what it has begun."""
        linked = not self.over
        self.cut()
        if linked:
            self._last = write(Kind.CLOSE, {"reason": "end", "message": ""})

    def abandon(self, why: str) -> None:
        """The server is not reached any more: nothing goes on, and the next link begins anew."""
        self._session = None
        lost = Failure("UNAVAILABLE", why)
        self._begin_session(lambda mutating: Failure("OUTCOME_UNKNOWN", why) if mutating else lost, lost)
        for number, _ in self._requests:
            self._fail(number, lost)

    def tick(self, now: float) -> None:
        if self.over:
            return
        self._window.due = True
        if now - self._heard_at >= DEAD_AFTER_S or (not self.open and now - self._dialled_at >= OPEN_WITHIN_S):
            self._close("silent", "nothing was heard of the server")
        elif self.open and now - self._asked_at >= PING_AFTER_S:
            self._asked_at, self._ping_due = now, True

    def receive(self, frame: Frame, now: float) -> None:
        if self.over:
            return
        self._heard_at = self._asked_at = now
        try:
            self._receive(read(frame))
        except ProtocolError as error:
            self._close("protocol", str(error))

    def refuse(self, why: ProtocolError) -> None:
        """What came is no frame at all."""
        if not self.over:
            self._close("protocol", str(why))

    def next(self) -> Frame | None:
        due, self._last = self._last, None
        return due if due or self.over else self._next()

    def take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    # Requests.

    def new_stream(self) -> int:
        self._last_id += 1
        return self._last_id

    def ask(self, call: Call) -> int:
        """Raises RemoteError: there is no room for it, or it is too long for a frame."""
        if not self.has_room_for(call):
            raise RemoteError(Failure("BUSY", "too many requests wait for their replies"))
        if self._lasting_streams() + len(call.to_client) + len(call.to_server) > LASTING_STREAMS_MOST:
            raise RemoteError(Failure("BUSY", f"more than {LASTING_STREAMS_MOST} streams of processes would be open"))
        if len(to_json(call.args)) > ARGS_BYTES_MAX:
            raise RemoteError(Failure("INVALID", "the request is longer than a frame"))
        number = self.new_stream()
        if call.up:
            self._streams.outgoing[number] = Outgoing(LIMITS.first_bytes)
        if call.down:
            self._streams.incoming[number] = Incoming()
        self._streams.outgoing.update((stream, Outgoing(0)) for stream in call.to_server)
        self._streams.incoming.update((stream, Incoming()) for stream in call.to_client)
        self._lasting.update(call.to_server, call.to_client)
        self._requests.add(number, call)
        return number

    def cancel(self, number: int) -> None:
        waiting = self._requests.get(number)
        if waiting is None:
            return
        self._requests.cancel(number)
        if waiting.seq is not None:
            waiting.cancelled = True  # Its reply tells what became of it.
            return
        self._streams.stop(number)  # Should it have been answered meanwhile.
        self._fail(number, Failure("CANCELLED", "it was cancelled"))

    def _lasting_streams(self) -> int:
        self._lasting &= self._streams.outgoing.keys() | self._streams.incoming.keys()
        return len(self._lasting)

    # Streams, a request's own by its id.

    def room(self, stream: int) -> int:
        return self._streams.room(stream)

    def wanted(self, stream: int) -> bool:
        """Whether what is sent there has a receiver that has not seen its end."""
        return stream in self._streams.outgoing

    def append(self, stream: int, data: bytes) -> None:
        if outgoing := self._streams.outgoing.get(stream):
            outgoing.append(data)

    def appended(self, stream: int) -> int:
        """How much so far, where it is still wanted."""
        outgoing = self._streams.outgoing.get(stream)
        return outgoing.tail if outgoing else 0

    def end(self, stream: int) -> None:
        if outgoing := self._streams.outgoing.get(stream):
            outgoing.end()

    def take(self, stream: int) -> Piece | None:
        return self._streams.take(stream)

    def receives(self, stream: int) -> bool:
        return stream in self._streams.incoming

    def stop(self, stream: int) -> None:
        self._streams.stop(stream)

    # What begins anew.

    def _begin_link(self) -> None:
        self._streams.cut()
        self._first = None
        self._resume_due = self._ping_due = self._pong_due = False
        self._requests.begin_link()
        self._window.begin_link()

    def _begin_session(self, judge: Callable[[bool], Failure], lost: Failure) -> None:
        """The old one is gone, and what comes knows nothing of it. `judge` says what those become that cannot be asked again,
        by whether they mutate."""
        self._window.begin_session()
        incoming, outgoing = self._streams.incoming, self._streams.outgoing
        for number, waiting in self._requests:
            waiting.sent = False
            begun = (number in incoming and not incoming[number].untouched) or (
                number in outgoing and not outgoing[number].untouched
            )
            if waiting.seq is not None or begun:
                self._fail(number, judge(waiting.seq is not None))
        first = self._first_credit()
        for stream, sending in list(outgoing.items()):
            if stream in first:
                sending.restart(first[stream])
            else:
                self._forget_outgoing(stream)
        for stream, receiving in incoming.items():
            if stream in first:
                incoming[stream] = Incoming()
            elif not receiving.ended:
                receiving.break_off(lost)
                self._events.append(Moved(stream))

    def _first_credit(self) -> dict[int, int]:
        """Of the streams of all that waits for a reply: what may be sent of each before the server says so."""
        first = {}
        for number, waiting in self._requests:
            first[number] = self._first_bytes
            first.update(dict.fromkeys((*waiting.call.to_server, *waiting.call.to_client), 0))
        return first

    @property
    def _first_bytes(self) -> int:
        return min(self._limits.first_bytes, LIMITS.first_bytes)

    def _close(self, reason: str, message: str) -> None:
        self.cut()
        self._last = write(Kind.CLOSE, {"reason": reason, "message": message[:256]})
        self._events.append(Closed(reason, message))

    # What arrives.

    def _receive(self, message: Message) -> None:
        match message.kind:
            case Kind.CLOSE:
                self.cut()
                self._events.append(Closed(message["reason"], message["message"], message["retryAfterMs"]))
            case Kind.WELCOME:
                if self._phase != "dialled":
                    self._begin_link()  # Whoever is between has dialled anew.
                self._receive_welcome(message)
            case Kind.PING:
                self._pong_due = True
            case Kind.PONG:
                pass
            case Kind.RESUME:
                self._receive_resume(message)
            case _ if not self.open:
                raise ProtocolError("it did not begin with resume")
            case _:
                self._receive_in_session(message)

    def _receive_in_session(self, message: Message) -> None:
        match message.kind:
            case Kind.REPLY:
                self._receive_reply(message)
            case Kind.DATA:
                if self._streams.receive_data(message):
                    self._events.append(Moved(message.stream))
            case Kind.CREDIT:
                if self._streams.receive_credit(message):
                    self._events.append(Moved(message.stream))
            case Kind.STOP:
                if message.stream in self._streams.outgoing:
                    self._forget_outgoing(message.stream)
            case Kind.NOTICE:
                if self._window.hear_notice(message["number"]):
                    self._events.append(Noticed(Notice(**message.fields)))
            case Kind.RENEWED:
                self._events.append(Renewed(message["expiresMs"]))
            case kind:
                raise ProtocolError(f"a {kind.name.lower()} is not for a client")

    def _receive_welcome(self, message: Message) -> None:
        welcome = welcome_of(message)
        if welcome.resumed and (self._session, self._instance) != (welcome.session, welcome.instance):
            raise ProtocolError("it goes on with a session that is not this one")
        anew = self._session is not None and not welcome.resumed
        self._session, self._uid, self._instance = welcome.session, welcome.uid, welcome.instance
        self._link, self._limits = message["link"], welcome.limits
        self._phase, self._resume_due = "welcomed", True
        self._events.append(Welcomed(welcome))
        if anew:
            lost = Failure("LOST", "its session was lost")
            unknown = Failure("OUTCOME_UNKNOWN", "its session was lost before the reply came")
            self._begin_session(lambda mutating: unknown if mutating else lost, lost)

    def _receive_resume(self, resume: Message) -> None:
        if self._phase != "welcomed":
            raise ProtocolError("it resumed without a welcome, or twice")
        self._phase = "open"
        self._events.append(Opened())
        named: dict[int, tuple[int, int, bool]] = {row[0]: row[1:] for row in resume["receiving"]}
        first = self._first_credit()
        for stream, outgoing in list(self._streams.outgoing.items()):
            if stream in named:
                outgoing.go_on(*named[stream])
                if outgoing.done:
                    self._forget_outgoing(stream)
                else:
                    self._events.append(Moved(stream))  # What was received meanwhile is held no more.
            elif stream not in first:
                self._forget_outgoing(stream)
            elif outgoing.untouched:
                outgoing.restart(first[stream])
            # Else the reply is on its way, and nobody needs the rest.

    def _forget_outgoing(self, stream: int) -> None:
        del self._streams.outgoing[stream]
        self._events.append(Moved(stream))

    def _receive_reply(self, reply: Message) -> None:
        number = reply.stream
        waiting = self._requests.get(number)
        if waiting is None:
            return  # Again, or given up.
        if reply["error"] is not None:
            self._fail(number, reply["error"])
            # Numbers are sent in order, unless one was refused that the server's own limits allow.
            if waiting.seq is not None and reply["error"].code == "OUT_OF_SEQUENCE":
                raise ProtocolError("it did not count a request as this side does")
        else:
            self._requests.remove(number)
            if self._streams.outgoing.pop(number, None):
                self._events.append(Moved(number))
            self._events.append(Answered(number, reply["ok"]))
            self._receive_download(reply)
        if waiting.seq is not None:
            self._window.answered(waiting.seq)

    def _receive_download(self, reply: Message) -> None:
        download = self._streams.incoming.get(reply.stream)
        if download is None:
            return
        if reply.end or reply.payload:
            download.receive(0, reply.payload, reply.end)
        if reply.end:
            download.end_is_known()  # A whole one needs no credit.
        self._streams.credit_due(reply.stream)
        self._events.append(Moved(reply.stream))

    def _fail(self, number: int, why: Failure) -> None:
        call = self._requests.remove(number)
        for stream in (number, *call.to_server):
            if self._streams.outgoing.pop(stream, None):
                self._events.append(Moved(stream))
        for stream in (number, *call.to_client):
            self._streams.forget_incoming(stream)
            self._events.append(Moved(stream))
        self._events.append(Failed(number, why))

    # What goes out: answers and acknowledgements before requests, requests before data. What is given up makes room for what is
    # asked.

    def _next(self) -> Frame | None:
        if self._first:
            first, self._first = self._first, None
            return first
        if self._resume_due:
            self._resume_due = False
            return self._resume()
        if not self.open:
            return None
        if self._pong_due:
            self._pong_due = False
            return write(Kind.PONG)
        if self._ping_due:
            self._ping_due = False
            return write(Kind.PING)
        return (
            self._next_ack()
            or self._next_cancel()
            or self._streams.next_stop()
            or self._next_request()
            or self._streams.next(lambda stream: not self._requests.has_unsent(stream))
        )

    def _resume(self) -> Frame:
        receiving = [list(row if row[3] else row[:3]) for row in self._streams.state()]
        return write(Kind.RESUME, {"link": self._link, "requests": self._requests.sent, "receiving": receiving})

    def _next_ack(self) -> Frame | None:
        header = self._window.acknowledgement()
        return write(Kind.ACK, header) if header else None

    def _next_cancel(self) -> Frame | None:
        number = self._requests.next_cancel()
        return None if number is None else write(Kind.CANCEL, stream=number)

    def _next_request(self) -> Frame | None:
        for number in self._requests.unsent:
            waiting = self._requests.get(number)
            assert waiting is not None
            if self._fits_the_window(waiting):
                del self._requests.unsent[number]
                return self._request(number, waiting)
            self._window.due = True  # What there is to be acknowledged makes room.
        return None

    def _fits_the_window(self, waiting: Waiting) -> bool:
        if self._requests.under_way >= self._limits.requests:
            return False
        return not waiting.call.mutating or waiting.seq is not None or self._window.has_room(self._limits.replies)

    def _request(self, number: int, waiting: Waiting) -> Frame:
        call, header = waiting.call, waiting.call.header()
        if call.mutating:
            if waiting.seq is None:
                waiting.seq = self._window.next_number()
            header["seq"], header["kept"] = waiting.seq, self._window.kept()
        header["down"] = self._streams.limit_of(number) if call.down else None
        further = [{"id": stream, "limit": self._streams.limit_of(stream)} for stream in call.to_client]
        further += [{"id": stream} for stream in call.to_server]
        header["streams"] = further or None
        payload, end = b"", False
        upload = self._streams.outgoing.get(number)
        if not waiting.sent and upload:
            upload.restart(self._first_bytes)
            if upload.may_begin:
                _, payload, end = upload.next(self._streams.next_chunk())
        waiting.sent = True
        if waiting.cancelled:
            self._requests.cancel(number)
        for stream in (*call.to_client, *((number,) if call.down else ())):
            self._streams.stop_if_gone(stream)  # It was given up before it was asked for.
        return write(Kind.REQUEST, header, number, payload, end)
