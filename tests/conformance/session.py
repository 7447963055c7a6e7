"""A session with an executor, through agentd's socket or on the executor's own port: the harness of tests/support, and beside it
uploads, cancelling, stopping, and failures that can be looked at."""

import contextlib

from direct import Direct
from harness import ACK, CANCEL, CREDIT, DATA, END, REPLY, REQUEST, STOP, WINDOW, Closed, Harness, Stream
from outgoing import FIRST_BYTES, Outgoing
from seam import Failure


class Session(Harness):
    """Over a Unix socket of agentd."""

    def __init__(self, path=None, sandbox="default/box"):
        super().__init__(path, sandbox)
        self.outgoing, self.given_up, self.requests = {}, set(), 0
        self.mutating = set()

    # What is asked.

    def ask(self, op, args, mutating=False, down=False, streams=(), upload=None, incoming=(), **header):
        """The request's id. `upload`: its bytes, or an Outgoing that goes on growing. `streams` run to us, `incoming` to the
        executor; `header`: more of what a request may say."""
        self.last_id += 1
        self.requests += 1
        number = self.last_id
        header = {"op": op, "args": args} | {name: value for name, value in header.items() if value is not None}
        if mutating:
            self.last_seq += 1
            header["seq"] = self.last_seq
            self.mutating.add(number)
        if down:
            self.streams[number] = Stream()
            header["down"] = WINDOW
        self.streams.update((stream, Stream()) for stream in streams)
        self.outgoing.update((stream, Outgoing()) for stream in incoming)
        further = [{"id": stream, "limit": WINDOW} for stream in streams] + [{"id": stream} for stream in incoming]
        header |= {"streams": further} if further else {}
        payload, flags = b"", 0
        if upload is not None:
            sending = self.outgoing[number] = upload if isinstance(upload, Outgoing) else Outgoing(upload, ended=True)
            header["up"], sending.limit = True, FIRST_BYTES
            first = sending.next_piece() or (0, b"", False)
            payload, flags = first[1], END if first[2] else 0
        self.waiting[number] = header
        with contextlib.suppress(Closed):  # It is sent again on the next link.
            self.send(REQUEST, number, header, payload, flags)
        return number

    def reply_to(self, number):
        """What came of it. Raises Failure."""
        self._fail_if_given_up(number)
        self.wait(lambda: number in self.replies)
        reply = self.replies[number]
        if "error" in reply:
            raise Failure(reply["error"]["code"], reply["error"]["message"])
        return reply["ok"]

    def call(self, op, args, **how):
        return self.reply_to(self.ask(op, args, **how))

    def body_of(self, number):
        """The whole of its download, once it has ended. Raises Failure where it breaks off."""
        self._fail_if_given_up(number)
        stream = self.streams[number]
        self.wait(lambda: stream.ended)
        if stream.error:
            raise Failure(stream.error["code"], stream.error["message"])
        return bytes(stream.content)

    def cancel(self, number):
        """Of what changes something a reply tells what became of it; of anything else nothing more is heard."""
        if number in self.waiting:
            self.send(CANCEL, number, {})
        if number in self.mutating or number not in self.waiting and (number not in self.streams or self.streams[number].ended):
            return
        self.waiting.pop(number, None)
        self.given_up.add(number)
        if number in self.streams:
            self.stop(number)

    def _fail_if_given_up(self, number):
        if number in self.given_up:
            raise Failure("FS_ABORTED", "it was given up")

    def stop(self, stream):
        """What comes is wanted no more."""
        self.send(STOP, stream, {})
        self.streams.pop(stream, None)

    def send_on(self, number):
        """What there is to send of a stream, as far as there is credit."""
        outgoing = self.outgoing[number]
        while piece := outgoing.next_piece():
            offset, content, last = piece
            self.send(DATA, number, {"offset": offset}, content, END if last else 0)

    # What arrives.

    def _take(self, kind, flags, stream, header, payload):
        if kind == CREDIT and stream in self.outgoing:
            self.outgoing[stream].limit = max(self.outgoing[stream].limit, header["limit"])
            self.send_on(stream)
        elif kind == STOP and stream in self.outgoing:
            self.outgoing[stream].stopped = True
        elif kind == REPLY and "error" in header and stream in self.waiting:
            self._take_failure(stream, header)
        else:
            super()._take(kind, flags, stream, header, payload)

    def _take_failure(self, number, header):
        """It ends all streams of its request."""
        request = self.waiting.pop(number)
        self.replies[number] = header
        for each in (number, *(further["id"] for further in request.get("streams", []))):
            if each in self.streams:
                self.streams[each].ended, self.streams[each].error = True, header["error"]
            if each in self.outgoing:
                self.outgoing[each].stopped = True
        self.send(ACK, 0, {"through": self._answered()})


class DirectSession(Direct, Session):
    """On an executor's own port, by a token that proves itself unseen."""

    def __init__(self, address, token):
        super().__init__()
        self.address = address
        self.prove_by(token)
