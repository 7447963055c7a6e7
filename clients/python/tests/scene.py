"""A session of the client, and a server that says what a test tells it to."""

import dataclasses

from sandfleet import messages
from sandfleet.calls import Call
from sandfleet.frames import Kind
from sandfleet.messages import LIMITS
from sandfleet.session import Session, Settings

LIMIT_NAMES = ("requests", "streams", "replies", "replyBytes", "firstBytes", "streamBytes")


class Scene:
    def __init__(self):
        self.session = Session(Settings("test", ["files"], "default", "box"))
        self.now, self.links = 0.0, 0

    def sent(self):
        found = []
        while (frame := self.session.next()) is not None:
            found.append(messages.read(frame))
        return found

    def only(self, kind):
        return [message for message in self.sent() if message.kind == kind]

    def say(self, kind, header=None, stream=0, payload=b"", end=False, **flags):
        frame = messages.write(kind, header, stream, payload, end)
        self.session.receive(dataclasses.replace(frame, **flags), self.now)

    def events(self, *kinds):
        return [event for event in self.session.take_events() if not kinds or isinstance(event, kinds)]

    def welcome(self, resumed=False, session="a" * 32, instance="i", **limits):
        self.links += 1
        told = dataclasses.asdict(dataclasses.replace(LIMITS, **limits))
        header = {
            "version": 1,
            "link": f"link-{self.links}",
            "session": session,
            "resumed": resumed,
            "instance": instance,
            "uid": "u",
            "epoch": 1,
            "incarnation": 1,
            "cwd": "/w",
            "workspaceRoot": "/w",
            "ceiling": "WorkspaceWrite",
            "leaseMs": 300_000,
            "expiresMs": 0,
            "features": ["files"],
            "limits": dict(zip(LIMIT_NAMES, told.values(), strict=True)),
        }
        self.say(Kind.WELCOME, header)

    def resume(self, receiving=()):
        self.say(Kind.RESUME, {"receiving": [list(row) for row in receiving]})

    def link(self, resumed=False, receiving=(), session="a" * 32, **limits):
        self.session.dial("token", self.now)
        said = self.sent()
        self.welcome(resumed, session, **limits)
        said += self.sent()
        self.resume(receiving)
        return said

    def ask(self, op="fs.stat", **more):
        return self.session.ask(Call(op, **more))

    def reply(self, number, ok=None, **more):
        self.say(Kind.REPLY, {"ok": ok or {}}, number, **more)

    def take(self, stream):
        return self.session.take(stream)
