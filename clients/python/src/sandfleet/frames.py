"""Frames in bytes, as docs/protocol.md lays them out. What a header means is messages.py's."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from .errors import ProtocolError

HEADER_BYTES_MAX = 1 << 20
PAYLOAD_BYTES_MAX = 256 << 10
_PREFIX = struct.Struct(">BBII")  # Type, flags, stream, header length.
_LENGTH = struct.Struct(">I")
LENGTH_MAX = _PREFIX.size + HEADER_BYTES_MAX + PAYLOAD_BYTES_MAX
_END, _DROPPED = 1, 2
_FIRST_TYPE_TO_SKIP = 128


class Kind(IntEnum):
    HELLO = 1
    CHALLENGE = 2
    PROVE = 3
    WELCOME = 4
    RENEW = 5
    RENEWED = 6
    RESUME = 7
    REQUEST = 8
    REPLY = 9
    DATA = 10
    CREDIT = 11
    STOP = 12
    CANCEL = 13
    ACK = 14
    NOTICE = 15
    PING = 16
    PONG = 17
    CLOSE = 18


@dataclass(frozen=True, slots=True)
class Frame:
    kind: Kind
    stream: int = 0  # 0: it has none.
    header: bytes = b""  # JSON, not looked into here.
    payload: bytes = b""
    end: bool = False
    dropped: bool = False


def encode(frame: Frame) -> bytes:
    """With its length. A frame beyond the bounds is a bug of whoever made it."""
    if len(frame.header) > HEADER_BYTES_MAX or len(frame.payload) > PAYLOAD_BYTES_MAX:
        raise ValueError(f"a frame of {len(frame.header)} and {len(frame.payload)} bytes")
    flags = (_END if frame.end else 0) | (_DROPPED if frame.dropped else 0)
    prefix = _PREFIX.pack(frame.kind, flags, frame.stream, len(frame.header))
    length = _PREFIX.size + len(frame.header) + len(frame.payload)
    return b"".join((_LENGTH.pack(length), prefix, frame.header, frame.payload))


def decode(data: bytes) -> Frame | None:
    """One whole frame; None: one of a later version, to be skipped."""
    if len(data) < _LENGTH.size:
        raise ProtocolError("a frame has no length")
    if _length_of(data) != len(data):
        raise ProtocolError("a frame is not as long as it says")
    code, flags, stream, header_bytes = _PREFIX.unpack_from(data, _LENGTH.size)
    if code >= _FIRST_TYPE_TO_SKIP:
        return None
    if not Kind.HELLO <= code <= Kind.CLOSE:
        raise ProtocolError(f"a frame of unknown type {code}")
    if flags & ~(_END | _DROPPED):
        raise ProtocolError(f"a frame with unknown flags {flags}")
    header_at = _LENGTH.size + _PREFIX.size
    payload_at = header_at + header_bytes
    if header_bytes > HEADER_BYTES_MAX or not 0 <= len(data) - payload_at <= PAYLOAD_BYTES_MAX:
        raise ProtocolError("a frame whose parts are longer than they may be")
    return Frame(Kind(code), stream, data[header_at:payload_at], data[payload_at:], bool(flags & _END), bool(flags & _DROPPED))


def _length_of(data: bytes | bytearray) -> int:
    """Of the frame that `data` begins with, its length included."""
    length: int = _LENGTH.unpack_from(data)[0]
    if not _PREFIX.size <= length <= LENGTH_MAX:
        raise ProtocolError(f"a frame of {length} bytes")
    return _LENGTH.size + length


class FrameReader:
    """Frames that follow each other on a byte stream. Between calls it holds less than one frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Those that are complete now. After an error the stream has no frames any more."""
        self._held += data
        while len(self._held) >= _LENGTH.size:
            size = _length_of(self._held)
            if len(self._held) < size:
                return
            frame = decode(bytes(self._held[:size]))
            del self._held[:size]
            if frame is not None:
                yield frame
