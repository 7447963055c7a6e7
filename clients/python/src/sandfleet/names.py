"""Paths and arguments are bytes. In Python they are text, with bytes that are no UTF-8 as `os.fsdecode` has them on a system
whose encoding is UTF-8 (surrogateescape); on the wire such a name is {"b64": …}."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any, TypeAlias

from .errors import ProtocolError

Name: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"
NAME_BYTES_MAX = 4096


def to_bytes(name: Name) -> bytes:
    plain = os.fspath(name)
    return plain if isinstance(plain, bytes) else plain.encode("utf-8", "surrogateescape")


def to_text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def to_wire(name: Name) -> str | dict[str, str]:
    raw = to_bytes(name)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(raw).decode()}


def _bytes_from_wire(value: Any, what: str) -> bytes:
    try:
        return value.encode() if isinstance(value, str) else base64.b64decode(value["b64"], validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError, TypeError, KeyError) as why:
        raise ProtocolError(f'it must be {what}: a string or {{"b64"}}') from why


def text_from_wire(value: Any) -> str:
    """Of any bytes, as a name has them."""
    return to_text(_bytes_from_wire(value, "a text"))


def from_wire(value: Any, bytes_max: int = NAME_BYTES_MAX) -> str:
    raw = _bytes_from_wire(value, "a name")
    if not 1 <= len(raw) <= bytes_max or b"\0" in raw:
        raise ProtocolError(f"it must be a name of 1 to {bytes_max} bytes without NUL")
    return to_text(raw)
