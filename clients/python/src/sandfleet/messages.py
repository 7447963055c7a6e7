"""What frames mean: the fields of each type, with every limit of docs/protocol.md. A field's reader gives its value or raises
what it must be; one that is absent and one that is null mean the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from .errors import CODES, Failure, ProtocolError
from .frames import Frame, Kind
from .names import from_wire

DEPTH_MAX = 16
VALUES_MAX = 65_536
DETAIL_BYTES_MAX = 16 << 10
COUNT_MAX = 2**53 - 1
ID_MAX = 2**32 - 1
CLOSE_REASONS = frozenset("end quiesce replaced expired denied version busy shutdown lost silent protocol impostor".split())
CEILINGS = ("ReadOnly", "WorkspaceWrite", "DangerFullAccess")


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a session. The defaults are those of docs/protocol.md; welcome says the server's."""

    requests: int = 256
    streams: int = 512
    replies: int = 256
    reply_bytes: int = 32 << 20
    first_bytes: int = 64 << 10
    stream_bytes: int = 1 << 20


LIMITS = Limits()

Reader = Callable[[Any], Any]


def _refuse(what: str) -> NoReturn:
    raise ProtocolError(f"it must be {what}")


def _size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        _refuse("text in Unicode")


def _text(least: int, most: int) -> Reader:
    def read(value: Any) -> str:
        if not isinstance(value, str) or not least <= _size(value) <= most:
            _refuse(f"a text of {least} to {most} bytes")
        return value

    return read


def _number(least: int, most: int = COUNT_MAX) -> Reader:
    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            _refuse(f"a whole number from {least} to {most}")
        return value

    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        _refuse("true or false")
    return value


def _digits(count: int) -> Reader:
    def read(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(rf"[0-9a-f]{{{count}}}", value):
            _refuse(f"{count} lower-case hexadecimal digits")
        return value

    return read


def _opaque(characters: int) -> Reader:
    """Compared, and never read."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or len(value) != characters:
            _refuse(f"a text of {characters} characters")
        return value

    return read


def _one_of(*words: str) -> Reader:
    def read(value: Any) -> str:
        if value not in words:
            _refuse(f"one of {', '.join(words)}")
        return str(value)

    return read


def _word_of(words: frozenset[str], other: str) -> Reader:
    """Of a list that grows: one of a later version counts as `other`."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            _refuse("a word")
        return value if value in words else other

    return read


def _list(most: int, item: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) > most:
            _refuse(f"a list of at most {most}")
        return [item(each) for each in value]

    return read


def _any_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse("an object")
    return value


def _detail(value: Any) -> dict[str, Any]:
    if len(to_json(_any_object(value))) > DETAIL_BYTES_MAX:
        _refuse(f"an object of at most {DETAIL_BYTES_MAX} bytes")
    return dict(value)


def _optional(read: Reader, otherwise: Any = None) -> Reader:
    return lambda value: otherwise if value is None else read(value)


def _object(objection: Callable[[dict[str, Any]], str | None] | None = None, /, **shape: Reader) -> Reader:
    """Known fields; others are skipped. `objection` says what no single field can."""

    def read(value: Any) -> dict[str, Any]:
        fields = {}
        for name, reader in shape.items():
            try:
                fields[name] = reader(_any_object(value).get(name))
            except ProtocolError as why:
                raise ProtocolError(f'"{name}": {why}') from why
        _any_object(value)
        if objection and (why_not := objection(fields)):
            raise ProtocolError(why_not)
        return fields

    return read


_count, _positive, _id = _number(0), _number(1), _number(1, ID_MAX)
_short, _long, _word, _token = _text(0, 256), _text(0, 1024), _text(1, 64), _text(1, 8192)
_ceiling = _one_of(*CEILINGS)
_features = _list(64, _word)


def _failure(value: Any) -> Failure:
    fields = _object(
        code=_word_of(CODES, "INTERNAL"), message=_long, retryAfterMs=_optional(_count), detail=_optional(_detail, {})
    )(value)
    return Failure(fields["code"], fields["message"], fields["retryAfterMs"], fields["detail"])


def _limits(value: Any) -> Limits:
    fields = _object(
        requests=_positive, streams=_positive, replies=_positive, replyBytes=_positive, firstBytes=_count, streamBytes=_positive
    )(value)
    return Limits(*fields.values())


def _receiving_row(value: Any) -> tuple[int, int, int, bool]:
    if not isinstance(value, list) or not 3 <= len(value) <= 4:
        _refuse("[stream, received, limit] with or without true")
    return _id(value[0]), _count(value[1]), _count(value[2]), _flag(value[3]) if len(value) == 4 else False


def _goes_with(one: str, other: str) -> Callable[[dict[str, Any]], str | None]:
    return lambda it: f'"{one}" and "{other}" go together' if (it[one] is None) != (it[other] is None) else None


def _hello_objection(it: dict[str, Any]) -> str | None:
    if it["token"] is not None and it["claims"] is not None:
        return '"token" and "claims" exclude each other'
    return _goes_with("claims", "nonce")(it)


def _renew_objection(it: dict[str, Any]) -> str | None:
    if (it["token"] is None) == (it["claims"] is None):
        return 'it has either "token" or "claims"'
    return _goes_with("claims", "proof")(it)


_nothing_else = _object()
_READERS: Mapping[Kind, Reader] = {
    Kind.HELLO: _object(
        _hello_objection,
        protocol=_object(lambda it: '"min" is above "max"' if it["min"] > it["max"] else None, min=_positive, max=_positive),
        client=_optional(_short, ""),
        features=_optional(_features, ()),
        sandbox=_optional(_object(namespace=_short, name=_short)),
        uid=_optional(_short),
        session=_optional(_opaque(32)),
        leaseSeconds=_optional(_number(1, 3600), 300),
        token=_optional(_token),
        claims=_optional(_token),
        nonce=_optional(_digits(32)),
    ),
    Kind.CHALLENGE: _object(nonce=_digits(32), proof=_opaque(64)),
    Kind.PROVE: _object(proof=_opaque(64)),
    Kind.WELCOME: _object(
        version=_positive,
        link=_word,
        session=_opaque(32),
        resumed=_flag,
        why=_optional(_word_of(frozenset({"unknown", "lost"}), "unknown")),
        instance=_word,
        uid=_short,
        epoch=_count,
        incarnation=_count,
        cwd=from_wire,
        workspaceRoot=from_wire,
        ceiling=_ceiling,
        leaseMs=_count,
        expiresMs=_count,
        features=_features,
        limits=_limits,
    ),
    Kind.RENEW: _object(_renew_objection, token=_optional(_token), claims=_optional(_token), proof=_optional(_opaque(64))),
    Kind.RENEWED: _object(ceiling=_ceiling, expiresMs=_count),
    Kind.RESUME: _object(
        link=_optional(_word),
        requests=_optional(_list(LIMITS.requests, _id), ()),
        receiving=_list(LIMITS.streams, _receiving_row),
    ),
    Kind.REQUEST: _object(
        op=_word,
        args=_any_object,
        seq=_optional(_positive),
        kept=_optional(_count),
        up=_optional(_flag, False),
        down=_optional(_count),
        streams=_optional(_list(8, _object(id=_id, limit=_optional(_count))), ()),
        permissionMode=_optional(_ceiling),
        workspaceRoot=_optional(from_wire),
    ),
    Kind.REPLY: _object(
        lambda it: 'it has either "ok" or "error"' if (it["ok"] is None) == (it["error"] is None) else None,
        ok=_optional(_any_object),
        error=_optional(_failure),
    ),
    Kind.DATA: _object(offset=_count, error=_optional(_failure)),
    Kind.CREDIT: _object(
        lambda it: '"received" is above "limit"' if it["received"] > it["limit"] else None,
        received=_count,
        limit=_count,
        ended=_optional(_flag, False),
    ),
    Kind.STOP: _nothing_else,
    Kind.CANCEL: _nothing_else,
    Kind.ACK: _object(through=_optional(_count), also=_optional(_list(LIMITS.replies, _positive), ()), notices=_optional(_count)),
    Kind.NOTICE: _object(number=_positive, kind=_word, message=_long, detail=_optional(_detail, {})),
    Kind.PING: _nothing_else,
    Kind.PONG: _nothing_else,
    Kind.CLOSE: _object(reason=_word_of(CLOSE_REASONS, "other"), message=_optional(_long, ""), retryAfterMs=_optional(_count)),
}
_WITH_STREAM = frozenset({Kind.REQUEST, Kind.REPLY, Kind.DATA, Kind.CREDIT, Kind.STOP, Kind.CANCEL})
_WITH_PAYLOAD = frozenset({Kind.REQUEST, Kind.REPLY, Kind.DATA})


@dataclass(frozen=True, slots=True)
class Message:
    """A frame whose fields, by their names on the wire, keep to every limit."""

    kind: Kind
    fields: Mapping[str, Any]
    stream: int = 0
    payload: bytes = b""
    end: bool = False
    dropped: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


def read(frame: Frame) -> Message:
    """Raises ProtocolError: the frame is none of this protocol, or breaks a limit."""
    try:
        if why := _objection_to_frame(frame):
            raise ProtocolError(why)
        fields = _READERS[frame.kind](_header(frame.header))
        message = Message(frame.kind, fields, frame.stream, frame.payload, frame.end, frame.dropped)
        if why := _objection_to_message(message):
            raise ProtocolError(why)
        return message
    except ProtocolError as error:
        raise ProtocolError(f"{frame.kind.name.lower()} refused: {error}") from error


def _objection_to_frame(frame: Frame) -> str | None:
    if (frame.kind in _WITH_STREAM) != (frame.stream != 0):
        return "it has a stream" if frame.stream else "it has no stream"
    if (frame.end or frame.payload) and frame.kind not in _WITH_PAYLOAD:
        return "it has an end or a payload that is not its own"
    if frame.dropped and frame.kind != Kind.DATA:
        return "it has a flag that is not its own"
    if frame.kind == Kind.REQUEST and len(frame.payload) > LIMITS.first_bytes:
        return "its first bytes are too many"
    return None


def _objection_to_message(message: Message) -> str | None:
    carries = bool(message.payload) or message.end
    if message.kind == Kind.REQUEST and carries and not message["up"]:
        return 'bytes or an end without "up"'
    if message.kind == Kind.REPLY and carries and message["error"] is not None:
        return 'bytes or an end with "error"'
    if message.kind == Kind.DATA and message["error"] is not None and not message.end:
        return '"error" without an end'
    if message.dropped and carries:
        return "bytes or an end with what was dropped"
    return None


def to_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _header(raw: bytes) -> Any:
    if not raw:
        return {}
    if not _is_modest(raw):
        raise ProtocolError("its header is too deep or holds too many values")
    try:
        return json.loads(raw.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as why:
        raise ProtocolError("its header is not JSON in UTF-8") from why


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


def _is_modest(raw: bytes) -> bool:
    """Looked at before it is parsed: a megabyte of brackets or commas would become many times that."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_MAX and raw.count(b",") < VALUES_MAX - DEPTH_MAX:
        return True
    bare = _STRING.sub(b"", raw)
    if 1 + bare.count(b"[") + bare.count(b"{") + bare.count(b",") > VALUES_MAX:
        return False
    depth = 0
    for bracket in _BRACKET.finditer(bare):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > DEPTH_MAX:
            return False
    return True


def write(kind: Kind, header: Mapping[str, Any] | None = None, stream: int = 0, payload: bytes = b"", end: bool = False) -> Frame:
    """A frame of this side, which keeps to the limits by itself. Fields that are None are left out."""
    present = {name: value for name, value in (header or {}).items() if value is not None}
    return Frame(kind, stream, to_json(present) if present else b"", payload, end)
