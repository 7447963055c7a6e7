"""An executor's double: it speaks the wire and proves that it has the fleet's key, but does only what it is told, one life after
the other. A life is what an executor is at a link: the same as at the link before, or one that was set back, or another."""

import asyncio
import base64
import contextlib
import dataclasses
import hashlib
import hmac
import json
import secrets
import struct

from harness import CHALLENGE, CLOSE, CREDIT, END, HELLO, PROVE, REPLY, REQUEST, RESUME, WELCOME, frame
from ways import claims_of, signed, url_bytes
from wires import unmasked

WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3.
LIMITS = {"requests": 256, "streams": 512, "replies": 256, "replyBytes": 33554432, "firstBytes": 65536, "streamBytes": 1048576}


@dataclasses.dataclass
class Life:
    """`resumed`: whether it goes on with the session that the hello names. `receiving`: what its resume says that it has, by what
    the client asks again. `answer(request, header)`: "ok" or "error" of a reply; `cut` for one that breaks the link, None for none.
    `asked`: all that it was asked for."""

    instance: str
    resumed: bool = False
    receiving: object = lambda requests: []
    answer: object = lambda header: {"ok": {}}
    asked: list = dataclasses.field(default_factory=list)
    closed: object = None  # The word with which its client left.


CUT = {"cut": True}


class Double:
    def __init__(self, fleet_key, *lives):
        self._fleet_key, self.lives, self.links, self._tasks = fleet_key, lives, 0, []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader, writer):
        self._tasks.append(asyncio.create_task(self._take(reader, writer)))

    async def _take(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, OSError), contextlib.closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in head.split("\r\n")[1:]}
            accept = base64.b64encode(hashlib.sha1(fields["sec-websocket-key"].encode() + WEBSOCKET_GUID).digest()).decode()
            writer.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: sandfleet.1\r\n\r\n").encode())
            await self._serve(Wire(reader, writer))

    async def _serve(self, wire):
        hello = await wire.expect(HELLO)
        mine = secrets.token_hex(16)
        claims = claims_of(hello["claims"] + ".")
        whole = signed(self._fleet_key, "attach", claims)
        assert whole.startswith(hello["claims"]), "claims that are spelled another way"
        key = url_bytes(whole.rpartition(".")[2])

        def proof(who):
            return hmac.digest(key, f"sandfleet {who}\n{hello['nonce']}\n{mine}".encode(), hashlib.sha256).hex()
        wire.send(CHALLENGE, 0, {"nonce": mine, "proof": proof("executor")})
        assert (await wire.expect(PROVE))["proof"] == proof("client")
        life = self.lives[min(self.links, len(self.lives) - 1)]
        self.links += 1
        session = hello["session"] if life.resumed else secrets.token_hex(16)
        wire.send(WELCOME, 0, {
            "version": 1, "link": secrets.token_hex(8), "session": session, "resumed": life.resumed, "instance": life.instance,
            "uid": claims["uid"], "epoch": claims["epoch"], "incarnation": 1, "cwd": "/w", "workspaceRoot": "/w",
            "ceiling": "DangerFullAccess", "leaseMs": 300_000, "expiresMs": 60_000, "features": ["files"], "limits": LIMITS})
        await self._talk(wire, life)

    async def _talk(self, wire, life):
        while True:
            kind, stream, header = await wire.receive()
            if kind == CLOSE:
                life.closed = header["reason"]
                return
            if kind == RESUME:
                wire.send(RESUME, 0, {"receiving": life.receiving(header.get("requests", []))})
            if kind != REQUEST:
                continue
            life.asked.append(header)
            answer = life.answer(header)
            if answer is CUT:
                return
            if answer and "credit" in answer:
                wire.send(CREDIT, stream, answer["credit"])
            elif answer:
                wire.send(REPLY, stream, answer, END if header.get("down") else 0)


class Wire:
    """Frames as whole binary messages, which a client masks."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer

    async def receive(self):
        while True:
            code, size = await self._reader.readexactly(2)
            size &= 0x7F
            if size >= 126:
                size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
            mask = await self._reader.readexactly(4)
            body = unmasked(await self._reader.readexactly(size), mask)
            if code & 0x0F != 2:  # A ping or a close of the WebSocket's own.
                continue
            kind, _, stream, length = struct.unpack_from(">BBII", body, 4)
            return kind, stream, json.loads(body[14:14 + length] or b"{}")

    async def expect(self, wanted):
        kind, _, header = await self.receive()
        assert kind == wanted, (kind, header)
        return header

    def send(self, kind, stream, header, flags=0):
        body = frame(kind, stream, header, flags=flags)
        size = bytes([len(body)]) if len(body) < 126 else b"\x7e" + struct.pack(">H", len(body))
        self._writer.write(b"\x82" + size + body)
