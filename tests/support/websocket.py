"""A WebSocket (RFC 6455) as a client's socket: what is sent is one binary message a call, what is received are the payloads of
messages, one after the other."""

import base64
import os
import socket
import struct

BINARY, PING, PONG, CLOSE = 2, 9, 10, 8
FINAL, MASKED = 0x80, 0x80


class WebSocket:
    def __init__(self, address, path, protocol, headers=None):
        self.socket, self.held = socket.create_connection(address), b""
        key = base64.b64encode(os.urandom(16)).decode()
        fields = {"Host": f"{address[0]}:{address[1]}", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key,
                  "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": protocol, **(headers or {})}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        self.socket.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        while b"\r\n\r\n" not in self.held:
            self._hear()
        head, self.held = self.held.split(b"\r\n\r\n", 1)
        if not head.startswith(b"HTTP/1.1 101"):
            raise OSError(f"no WebSocket: {head.decode(errors='replace')}")

    def fileno(self):
        return self.socket.fileno()

    def sendall(self, data):
        self._send(BINARY, data)

    def recv(self, _):
        """What has arrived; at least one message's part, or nothing once it is closed."""
        arrived = b""
        while True:
            frame = self._take_frame()
            if frame is None:
                if arrived:
                    return arrived
                self._hear()
                continue
            opcode, payload = frame
            if opcode == CLOSE:
                return arrived
            if opcode == PING:
                self._send(PONG, payload)
            elif opcode != PONG:
                arrived += payload

    def close(self):
        self.socket.close()

    def _hear(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise OSError("the WebSocket was cut")
        self.held += piece

    def _take_frame(self):
        if len(self.held) < 2:
            return None
        length, at = self.held[1] & 0x7F, 2
        if length >= 126:
            code, size = (">H", 2) if length == 126 else (">Q", 8)
            if len(self.held) < at + size:
                return None
            length, at = struct.unpack_from(code, self.held, at)[0], at + size
        if len(self.held) < at + length:
            return None
        opcode, payload = self.held[0] & 0x0F, self.held[at:at + length]
        self.held = self.held[at + length:]
        return opcode, payload

    def _send(self, opcode, payload):
        size = len(payload)
        head = struct.pack(">BB", FINAL | opcode, MASKED | size) if size < 126 else \
            struct.pack(">BBH", FINAL | opcode, MASKED | 126, size) if size < 1 << 16 else \
            struct.pack(">BBQ", FINAL | opcode, MASKED | 127, size)
        mask = os.urandom(4)
        masked = int.from_bytes(payload, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        self.socket.sendall(head + mask + masked.to_bytes(size, "big"))
