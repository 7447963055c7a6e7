"""A session with a server in memory, and a link that is cut after so many frames again and again: mutations act once, streams
are exact."""

import pytest
from scene import Scene

from sandfleet import messages
from sandfleet.events import Answered, Closed, Failed
from sandfleet.frames import Kind

WINDOW = 1000
PIECE = 700
CUTS_MOST = 40
CONTENT = bytes(range(256)) * 20


class Server:
    """What docs/protocol.md says of one, for one session. fs.write takes its upload in, fs.readBytes gives CONTENT. It never
    forgets a reply. All that it says comes as the arguments of Scene.say."""

    def __init__(self):
        self.uploads = {}  # Of requests that are at work.
        self.whole = set()
        self.acted = []
        self.replied = set()
        self.sent = {}  # How far downloads are sent, and how far they may be.

    def resume(self):
        return [[number, len(data), len(data) + WINDOW, number in self.whole] for number, data in self.uploads.items()]

    def go_on(self, receiving):
        self.sent = {number: (received, limit) for number, received, limit, _ in receiving}

    def hear(self, message):
        number = message.stream
        match message.kind:
            case Kind.REQUEST if message["op"] == "fs.readBytes":
                self.sent[number] = (0, message["down"])
                yield Kind.REPLY, {"ok": {}}, number
            case Kind.REQUEST if number in self.replied:
                yield Kind.REPLY, {"ok": {}}, number
            case Kind.REQUEST:
                self.uploads.setdefault(number, bytearray())
                yield from self.take(number, 0, message.payload, message.end)
            case Kind.DATA if number in self.uploads:
                yield from self.take(number, message["offset"], message.payload, message.end)
            case Kind.CREDIT if number in self.sent:
                self.sent[number] = (self.sent[number][0], message["limit"])

    def take(self, number, offset, payload, end):
        data = self.uploads[number]
        assert offset <= len(data), "a gap"
        data += payload[len(data) - offset :]
        if end:
            self.whole.add(number)
        if number in self.whole:
            assert bytes(self.uploads.pop(number)) == CONTENT
            self.acted.append(number)
            self.replied.add(number)
            yield Kind.REPLY, {"ok": {}}, number
        else:
            yield Kind.CREDIT, {"received": len(data), "limit": len(data) + WINDOW}, number

    def go_on_sending(self):
        for number, (at, limit) in list(self.sent.items()):
            piece = CONTENT[at : min(at + PIECE, limit)]
            if piece:
                self.sent[number] = (at + len(piece), limit)
                yield Kind.DATA, {"offset": at}, number, piece, at + len(piece) == len(CONTENT)


class Link:
    """Loses the frame with which it breaks, and all that is said on it afterwards."""

    def __init__(self, every):
        self.scene, self.server, self.every = Scene(), Server(), every
        self.frames = self.cuts = 0
        self.answered, self.got, self.ended = set(), {}, set()

    def passes(self):
        self.frames += 1
        if self.frames % self.every or self.cuts == CUTS_MOST:
            return True
        self.cuts += 1
        self.scene.session.cut()
        return False

    def step(self):
        scene = self.scene
        if scene.session.over:
            self.server.go_on(scene.link(scene.links > 0, self.server.resume())[-1]["receiving"])
        frame = scene.session.next()
        if frame and not self.passes():
            return
        for said in self.server.hear(messages.read(frame)) if frame else self.server.go_on_sending():
            if not self.passes():
                return
            scene.say(*said)

    def settle(self):
        for event in self.scene.events():
            assert not isinstance(event, (Closed, Failed)), event
            if isinstance(event, Answered):
                self.answered.add(event.id)
        for number, got in self.got.items():
            while piece := self.scene.take(number):
                assert piece.offset == len(got)
                got += piece.data
                self.ended |= {number} if piece.end else set()

    def until(self, done):
        for _ in range(3000):
            if done():
                return
            self.step()
            self.settle()
        raise AssertionError(f"it did not end: {self.answered} {self.ended}")


@pytest.mark.parametrize("every", range(1, 14))
def test_whatever_frame_a_link_breaks_with_mutations_act_once_and_streams_are_exact(every):
    link = Link(every)
    writes = [link.scene.ask("fs.write", mutating=True, up=True) for _ in range(3)]
    for write in writes:
        link.scene.session.append(write, CONTENT)
        link.scene.session.end(write)
    link.until(lambda: link.answered >= set(writes))
    reads = [link.scene.ask("fs.readBytes", down=True) for _ in range(2)]
    link.got = {read: bytearray() for read in reads}
    link.until(lambda: link.ended == set(reads))
    assert sorted(link.server.acted) == writes, "each acts once"
    assert all(got == CONTENT for got in link.got.values())
    assert link.cuts >= 2
