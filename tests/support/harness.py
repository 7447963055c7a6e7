"""agentd as a process, and a harness at its socket: as much of docs/protocol.md as tests ask, written by that page alone."""

import contextlib
import http.client
import json
import pathlib
import secrets
import select
import socket
import struct
import threading
import time
import urllib.parse

from world import Program, series_in, wait_until

(HELLO, CHALLENGE, PROVE, WELCOME, RENEW, RENEWED, RESUME, REQUEST, REPLY, DATA, CREDIT, STOP, CANCEL, ACK, NOTICE, PING, PONG,
 CLOSE) = range(1, 19)
END = 1
WINDOW = 256 * 1024
PATIENCE_S = 60


def frame(kind, stream, header, payload=b"", flags=0):
    text = json.dumps(header).encode()
    return struct.pack(">IBBII", 10 + len(text) + len(payload), kind, flags, stream, len(text)) + text + payload


class Agentd:
    """sandfleet-agentd beside a controller on a folder of manifests; without one, its arguments say where it looks."""

    def __init__(self, folder, controller, *arguments, descriptors=None, outlives_us=False):
        self.folder, self.descriptors, self.outlives_us = pathlib.Path(folder), descriptors, outlives_us
        self.program = None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket, self.controller = self.folder / "run" / "agentd.sock", controller
        self.arguments = ["--state", controller.state, *arguments] if controller else arguments

    def start(self):
        ready = self.folder / "ready"
        self.program = Program("sandfleet-agentd", "--socket", self.socket, "--ready-file", ready, "--log-level", "debug",
                               *self.arguments, log=self.folder / "agentd.log", ready_file=ready, descriptors=self.descriptors,
                               outlives_us=self.outlives_us)
        self.url = json.loads(ready.read_text())["url"]
        return self

    def ask(self, path):
        address = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def metrics(self):
        return series_in(self.ask("/metrics")[1])

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        self.program.kill() if kind else self.program.stop()


class Proxy:
    """Carries TCP connections to the first of `ports` that takes them, and cuts those that became WebSockets when asked to: as
    a router that restarts."""

    def __init__(self, *ports):
        self.to, self.sessions, self.lock = ports, [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """How many were cut."""
        with self.lock:
            pairs, self.sessions = self.sessions, []
        for pair in pairs:
            for each in pair:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = self._dial()
            if far is None:
                near.close()
                continue
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, sink, (near, far)), daemon=True).start()

    def _dial(self):
        for port in self.to:
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port))
        return None

    def _carry(self, source, sink, pair):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                if source is pair[0] and b"\r\nUpgrade: websocket\r\n" in piece:
                    with self.lock:
                        self.sessions.append(pair)
                sink.sendall(piece)
        for each in pair:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Closed(Exception):
    """The link ended: with a word, or without one (reason None)."""

    def __init__(self, reason, message="", retry_after_ms=None):
        super().__init__(f"{reason}: {message}")
        self.reason, self.message, self.retry_after_ms = reason, message, retry_after_ms


class Stream:
    """What runs to us: each byte once, by its offset."""

    def __init__(self):
        self.content, self.granted, self.ended, self.error = bytearray(), WINDOW, False, None

    def take(self, header, payload, end):
        skip = len(self.content) - header["offset"]
        assert skip >= 0, f"a gap: {header} after {len(self.content)}"
        self.content += payload[skip:] if skip <= len(payload) else b""
        if end:
            self.ended, self.error = True, header.get("error")


class Harness:
    """One session, and the link that it has now. Single-threaded: it reads while it waits for something."""

    def __init__(self, path, sandbox="default/box", token=None):
        self.path, self.sandbox, self.token = path, sandbox, token
        self.link = self.session = self.uid = self.lease_seconds = None
        self.waiting, self.replies, self.streams, self.welcomes, self.renewals = {}, {}, {}, [], []
        self.last_id = self.last_seq = 0

    def connect(self):
        """A link that is open, by the session that there is; tries again where agentd asks to."""
        wait_until("a link", self._try_to_dial, PATIENCE_S)
        return self

    def _try_to_dial(self):
        try:
            return self.dial()
        except OSError:
            return None
        except Closed as why:
            if why.reason in (None, "busy", "shutdown"):
                return None
            raise

    def dial(self):
        """The same, once."""
        self.close()
        self.link = self._open_link()
        self.held, self.welcomes, self.open = b"", [], False
        hello = {"protocol": {"min": 1, "max": 1}, "client": "test"} | self._credentials()
        hello |= {"session": self.session, "uid": self.uid} if self.session else {}
        hello |= {"leaseSeconds": self.lease_seconds} if self.lease_seconds else {}
        self.send(HELLO, 0, hello)
        self.wait(lambda: self.welcomes and self.open)
        return self

    def _open_link(self):
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.connect(str(self.path))
        return link

    def _credentials(self):
        """What a hello says of who asks for what."""
        space, name = self.sandbox.split("/")
        return {"sandbox": {"namespace": space, "name": name}} | ({"token": self.token} if self.token else {})

    def close(self):
        if self.link:
            self.link.close()
        self.link = None

    def end(self):
        self.send(CLOSE, 0, {"reason": "end"})
        self.close()

    def send(self, kind, stream, header, payload=b"", flags=0):
        try:
            self.link.sendall(frame(kind, stream, header, payload, flags))
        except OSError as why:
            raise Closed(None, str(why)) from why

    def renew(self, token):
        """What the answer to its next token says; Closed when that is not taken."""
        self.token, already = token, len(self.renewals)
        self.send(RENEW, 0, {"token": token})
        self.wait(lambda: len(self.renewals) > already)
        return self.renewals[-1]

    def ask(self, op, args, mutating=False, up=False, down=False, streams=()):
        """The request's id; call() to wait for its reply."""
        self.last_id += 1
        number = self.last_id
        header = {"op": op, "args": args}
        if mutating:
            self.last_seq += 1
            header["seq"] = self.last_seq
        if up:
            header["up"] = True
        if down:
            self.streams[number] = Stream()
            header["down"] = WINDOW
        for stream in streams:
            self.streams[stream] = Stream()
        if streams:
            header["streams"] = [{"id": stream, "limit": WINDOW} for stream in streams]
        self.waiting[number] = header
        with contextlib.suppress(Closed):  # It is sent again on the next link.
            self.send(REQUEST, number, header)
        return number

    def call(self, op, args, **how):
        number = self.ask(op, args, **how)
        self.wait(lambda: number in self.replies)
        reply = self.replies[number]
        assert "ok" in reply, f"{op}: {reply}"
        return reply["ok"]

    def new_stream(self):
        self.last_id += 1
        return self.last_id

    def wait(self, check, deadline_s=PATIENCE_S):
        end = time.monotonic() + deadline_s
        while not check():
            assert time.monotonic() < end, f"not within {deadline_s} s; waiting for {self.waiting}"
            arrival = select.poll()
            arrival.register(self.link, select.POLLIN)
            if arrival.poll(200):
                self._read()

    def _read(self):
        try:
            piece = self.link.recv(1 << 16)
        except OSError:
            piece = b""
        if not piece:
            raise Closed(None, "cut")
        self.held += piece
        while len(self.held) >= 4:
            length = struct.unpack_from(">I", self.held)[0]
            if len(self.held) < 4 + length:
                return
            body, self.held = self.held[4:4 + length], self.held[4 + length:]
            kind, flags, stream, size = struct.unpack_from(">BBII", body)
            self._take(kind, flags, stream, json.loads(body[10:10 + size] or b"{}"), body[10 + size:])

    def _take(self, kind, flags, stream, header, payload):
        if kind == CLOSE:
            raise Closed(header["reason"], header.get("message", ""), header.get("retryAfterMs"))
        if kind == PING:
            self.send(PONG, 0, {})
        elif kind == WELCOME:
            self._begin(header)
        elif kind == RENEWED:
            self.renewals.append(header)
        elif kind == RESUME:
            self.open = True
            for number, request in sorted(self.waiting.items()):
                self.send(REQUEST, number, request)
        elif kind == REPLY and stream in self.waiting:
            self.waiting.pop(stream)
            self.replies[stream] = header
            if stream in self.streams:
                self.streams[stream].take({"offset": 0}, payload, flags & END)
            self.send(ACK, 0, {"through": self._answered()})
        elif kind == DATA and stream in self.streams:
            self.streams[stream].take(header, payload, flags & END)
            self._grant(stream)

    def _begin(self, welcome):
        assert welcome["resumed"] == (self.session == welcome["session"]), welcome
        if self.session and not welcome["resumed"]:
            raise Closed("lost", f"its session is gone: {welcome.get('why')}")
        self.session, self.uid, self.open = welcome["session"], welcome["uid"], False
        self.welcomes.append(welcome)
        receiving = [[number, len(each.content), each.granted] for number, each in self.streams.items() if not each.ended]
        self.send(RESUME, 0, {"link": welcome["link"], "requests": sorted(self.waiting), "receiving": receiving})

    def _answered(self):
        unanswered = [each["seq"] for each in self.waiting.values() if "seq" in each]
        return min(unanswered) - 1 if unanswered else self.last_seq

    def _grant(self, number):
        stream = self.streams[number]
        if stream.ended or len(stream.content) + WINDOW // 2 > stream.granted:
            stream.granted = len(stream.content) + WINDOW
            credit = {"received": len(stream.content), "limit": stream.granted}
            self.send(CREDIT, number, credit | ({"ended": True} if stream.ended else {}))

    def end_of_link(self, deadline_s=PATIENCE_S):
        """Why it was closed."""
        try:
            self.wait(lambda: False, deadline_s)
        except Closed as closed:
            return closed

    def __enter__(self):
        return self.connect()

    def __exit__(self, *_):
        self.close()


def new_handle():
    return secrets.token_hex(16)


