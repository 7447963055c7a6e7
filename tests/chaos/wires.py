"""Both hops of a session as wires that can be cut at a frame: a Unix socket that leads to agentd's, and a TCP port that leads to
a provider's router. They run on a loop of their own, in a thread, so that whoever tests may block."""

import asyncio
import contextlib
import dataclasses
import json
import struct
import threading

UP, DOWN = "up", "down"  # From the harness, and to it.
HARNESS, EXECUTOR = "harness-agentd", "agentd-executor"
BEFORE, WITHIN, AFTER = "before", "within", "after"
PLACES = (BEFORE, WITHIN, AFTER)
PIECE_BYTES = 1 << 16
HEAD_BYTES_MAX = 1 << 16


@dataclasses.dataclass(frozen=True, order=True)
class Cut:
    """Of a link: at its frame `frame` from 0 in that direction, and nothing of either direction behind it. On the hop to the
    executor the WebSocket's heads count as frames."""

    hop: str
    direction: str
    frame: int
    place: str
    by_reset: bool = False

    def __str__(self):
        return f"{self.hop} {self.direction} {self.place} frame {self.frame}" + (" by a reset" if self.by_reset else "")


class SocketFrames:
    """Where frames end that follow each other on a Unix socket."""

    def __init__(self):
        self.ends_within, self._length = 0, b""

    def split(self, data):
        """Pieces of `data` in order, each with whether it ends a frame."""
        while data:
            if not self.ends_within:
                taken = 4 - len(self._length)
                self._length, piece, data = self._length + data[:taken], data[:taken], data[taken:]
                if len(self._length) == 4:
                    self.ends_within, self._length = struct.unpack(">I", self._length)[0], b""
                yield piece, False
                continue
            piece, data = data[:self.ends_within], data[self.ends_within:]
            self.ends_within -= len(piece)
            yield piece, not self.ends_within


class WebSocketFrames:
    """The same behind the head of an HTTP upgrade (RFC 6455). The first whole message is kept for whoever asks whose it is."""

    def __init__(self):
        self._head, self._header, self._left, self._mask, self._in_head = b"", b"", 0, b"", True
        self._kept, self.first = b"", None

    def split(self, data):
        while data:
            if self._in_head:
                before = len(self._head)
                self._head += data
                end = self._head.find(b"\r\n\r\n")
                assert end >= 0 or len(self._head) <= HEAD_BYTES_MAX, "a head without end"
                count = len(data) if end < 0 else end + 4 - before
                piece, data = data[:count], data[count:]
                self._in_head = end < 0
                yield piece, end >= 0
                continue
            if not self._left:
                piece, data = data[:1], data[1:]
                self._header += piece
                yield piece, self._begin_message()
                continue
            piece, data = data[:self._left], data[self._left:]
            self._left -= len(piece)
            if self.first is None:
                self._kept += piece
                if not self._left:
                    self.first = unmasked(self._kept, self._mask)
            yield piece, not self._left

    def _begin_message(self):
        """Once its header is whole; True where that is all of it."""
        if len(self._header) < 2:
            return False
        code, masked = self._header[1] & 0x7F, self._header[1] & 0x80
        more = {126: 2, 127: 8}.get(code, 0)
        size = 2 + more + (4 if masked else 0)
        if len(self._header) < size:
            return False
        self._left = int.from_bytes(self._header[2:2 + more], "big") if more else code
        self._mask = self._header[size - 4:size] if masked else b""
        self._header = b""
        return not self._left


def unmasked(data, mask):
    return bytes(each ^ mask[at % 4] for at, each in enumerate(data)) if mask else data


def header_of(frame):
    """What a frame of docs/protocol.md has as its header."""
    size = struct.unpack_from(">I", frame, 10)[0]
    return json.loads(frame[14:14 + size] or b"{}")


class Link:
    """One connection, carried both ways, frame by frame."""

    def __init__(self, hop, frames, name, plan):
        self.hop, self.sides, self.name, self._plan = hop, {}, name, plan
        self.frames = {UP: frames(), DOWN: frames()}
        self.count, self.is_cut = {UP: 0, DOWN: 0}, False
        self._cut = plan.take(self)

    async def carry(self, direction, reader, writer, data=b""):
        """`data`: what was read already."""
        with contextlib.suppress(OSError):
            while not self.is_cut and not writer.is_closing() and (data := data or await reader.read(PIECE_BYTES)):
                if self.is_cut:
                    return
                passes, ends_here = self._let_pass(direction, data)
                writer.write(passes)
                if ends_here:
                    return self.cut(self._cut.by_reset)
                data = b""
                await writer.drain()
        if not self.is_cut:
            writer.close()

    def _let_pass(self, direction, data):
        """What of it goes on, and whether the link is cut there."""
        passes = bytearray()
        for piece, ends in self.frames[direction].split(data):
            self._know_whose()
            cut = self._cut
            here = cut and (cut.direction, cut.frame) == (direction, self.count[direction])
            if here and cut.place == BEFORE:
                return passes, True
            if here and cut.place == WITHIN and len(piece) > 1:
                return passes + piece[:len(piece) // 2], True
            passes += piece
            self.count[direction] += ends
            self._plan.frames += ends
            if here and ends:
                return passes, True
        return passes, False

    def _know_whose(self):
        """On the way to the executor a link is known by the first message."""
        first = getattr(self.frames[UP], "first", None)
        if self.name is None and first:
            self.name = header_of(first).get("client", "")
            self._cut = self._cut or self._plan.take(self)

    def cut(self, by_reset):
        self.is_cut = True
        self._plan.happened += 1
        for writer in self.sides.values():
            writer.transport.abort() if by_reset else writer.close()


class Unseen:
    """What is carried as it is."""

    sides = None

    async def carry(self, _, reader, writer, data=b""):
        with contextlib.suppress(OSError):
            while not writer.is_closing() and (data := data or await reader.read(PIECE_BYTES)):
                writer.write(data)
                data = b""
                await writer.drain()
        writer.close()


class Plan:
    """Which link of whom is cut where, and what came of it. Nobody's: the next one to an executor, of which only the heads are seen
    before it is known whose it is."""

    def __init__(self):
        self._cuts, self.links = {}, {}
        self.happened = self.frames = 0  # Cuts, and all frames that passed.

    def add(self, name, cut):
        """The next link of that hop that has none yet."""
        self._cuts.setdefault((cut.hop, name), []).append(cut)

    def drop(self, name):
        for hop in (HARNESS, EXECUTOR):
            self._cuts.pop((hop, name), None)
            self.links.pop((hop, name), None)

    def take(self, link):
        self.links.setdefault((link.hop, link.name), []).append(link)
        cuts = self._cuts.get((link.hop, link.name))
        return cuts.pop(0) if cuts else None


class Wires:
    """`harness(name)` is the path of a socket of one session; `open_port` gives what stands in the place of the router's port.
    With `session_port`, sessions go there instead."""

    def __init__(self, folder):
        self.folder = folder
        self.agentd_socket = self.router_port = self.session_port = None
        self.plan = Plan()
        self._loop = asyncio.new_event_loop()
        self._servers, self._tasks = {}, set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def open_port(self, router_port):
        self.router_port = router_port
        server = self._do(self._begin(asyncio.start_server(self._to_executor, "127.0.0.1", 0), "port"))
        return server.sockets[0].getsockname()[1]

    def harness(self, name):
        path = str(self.folder / f"{name}.sock")

        async def accept(reader, writer):
            await self._carry(Link(HARNESS, SocketFrames, name, self.plan), reader, writer,
                              asyncio.open_unix_connection(self.agentd_socket))
        self._do(self._begin(asyncio.start_unix_server(accept, path), name))
        return path

    async def _begin(self, starting, name):
        self._servers[name] = await starting
        return self._servers[name]

    def forget(self, name):
        self._loop.call_soon_threadsafe(self._servers.pop(name).close)
        self.plan.drop(name)

    async def _to_executor(self, reader, writer):
        """A WebSocket is a session; all else is the controller's, and passes as it is."""
        head = await reader.read(PIECE_BYTES)
        if b"\r\nupgrade: websocket\r\n" in head.lower():
            link, port = Link(EXECUTOR, WebSocketFrames, None, self.plan), self.session_port or self.router_port
        else:
            link, port = Unseen(), self.router_port
        await self._carry(link, reader, writer, asyncio.open_connection("127.0.0.1", port), head)

    async def _carry(self, link, reader, writer, dialling, head=b""):
        self._tasks.add(asyncio.current_task())
        try:
            far_reader, far = await dialling
        except OSError:
            writer.transport.abort()
            return
        finally:
            self._tasks.discard(asyncio.current_task())
        link.sides = {UP: writer, DOWN: far}
        carrying = asyncio.gather(link.carry(UP, reader, far, head), link.carry(DOWN, far_reader, writer))
        self._tasks.add(carrying)
        try:
            await carrying
        finally:
            self._tasks.discard(carrying)
            for each in (writer, far):
                each.close()

    def cut_all(self, hop, by_reset=True):
        async def cut():
            links = [link for (where, _), links in self.plan.links.items() if where == hop for link in links
                     if not link.is_cut and link.sides and not link.sides[UP].is_closing()]
            for link in links:
                link.cut(by_reset)
        self._do(cut())

    def close(self):
        async def close():
            for server in self._servers.values():
                server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._do(close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
