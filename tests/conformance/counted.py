"""How many requests a harness makes: a socket between it and agentd that counts them."""

import os
import socket
import struct
import threading

from harness import REQUEST


class Counted:
    """A Unix socket that leads to another, and counts the requests that go through."""

    def __init__(self, path, to):
        self.path, self.to, self.requests = path, to, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        near, _ = self.listener.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(self.to)
        threading.Thread(target=self._carry, args=(near, far, self._count), daemon=True).start()
        self._carry(far, near, lambda held: b"")

    def _carry(self, source, sink, look):
        held = b""
        while piece := source.recv(1 << 16):
            sink.sendall(piece)
            held = look(held + piece)
        sink.close()

    def _count(self, held):
        while len(held) >= 5:
            length, kind = struct.unpack_from(">IB", held)
            if len(held) < 4 + length:
                break
            self.requests += kind == REQUEST
            held = held[4 + length:]
        return held

    def close(self):
        self.listener.close()
        os.unlink(self.path)
