"""Bytes and fields, by the vectors that docs/protocol.md comes with."""

import json
import os
import pathlib

import pytest

from sandfleet import frames, messages, names, search
from sandfleet.errors import ProtocolError
from sandfleet.frames import Frame, FrameReader, Kind

REPO = pathlib.Path(__file__).resolve().parents[3]
VECTORS = json.loads(pathlib.Path(os.environ.get("SANDFLEET_VECTORS", REPO / "docs/protocol-vectors.json")).read_text())


def named(part):
    assert VECTORS[part], f"no {part}"
    return [pytest.param(each, id=each["name"]) for each in VECTORS[part]]


@pytest.mark.parametrize("vector", named("frames"))
def test_a_frame_is_written_and_read_as_it_stands_in_the_vectors(vector):
    means, data = vector["means"], bytes.fromhex(vector["bytes"])
    frame = frames.decode(data)
    assert frame.kind.name.lower() == means["type"]
    assert (frame.stream, frame.end, frame.dropped) == (
        means.get("stream", 0),
        means.get("end", False),
        means.get("dropped", False),
    )
    assert frame.payload.hex() == means.get("payload", "")
    assert messages.to_json(means["header"]) == (frame.header or b"{}")
    assert frames.encode(frame) == data
    fields = messages.read(frame).fields
    assert means["header"].keys() <= fields.keys(), "a field is not read"


@pytest.mark.parametrize("vector", named("skipped"))
def test_a_type_of_a_later_version_is_skipped(vector):
    data = bytes.fromhex(vector["bytes"])
    assert frames.decode(data) is None
    ping = frames.encode(Frame(Kind.PING))
    assert [frame.kind for frame in FrameReader().feed(data + ping)] == [Kind.PING]


@pytest.mark.parametrize("vector", named("refused"))
def test_what_is_refused_is_refused_where_the_vectors_say(vector):
    data = bytes.fromhex(vector["bytes"])
    with pytest.raises(ProtocolError):
        frame = frames.decode(data)
        # A header is looked into with the message's fields.
        assert vector["by"] == "frame" or frame is not None
        messages.read(frame)


@pytest.mark.parametrize("vector", named("names"))
def test_a_name_is_text_where_it_is_utf8_and_bytes_where_it_is_not(vector):
    raw = bytes.fromhex(vector["bytes"])
    assert names.to_bytes(names.from_wire(vector["json"])) == raw
    assert names.to_wire(raw) == vector["json"]
    assert names.to_wire(names.to_text(raw)) == vector["json"]


@pytest.mark.parametrize(
    "value", ["", "a\0b", "x" * 4097, "\ud800", {"b64": "?"}, {"b64": ""}, {"b64": "AA=="}, {"b64": 1}, {}, 1, None]
)
def test_what_is_no_name_is_refused(value):
    with pytest.raises(ProtocolError):
        names.from_wire(value)


def test_frames_follow_each_other_however_they_are_cut():
    data = b"".join(bytes.fromhex(each["bytes"]) for each in VECTORS["frames"])
    whole = list(FrameReader().feed(data))
    assert len(whole) == len(VECTORS["frames"])
    for size in (1, 3, 7, 1000):
        reader = FrameReader()
        assert [frame for at in range(0, len(data), size) for frame in reader.feed(data[at : at + size])] == whole


def test_takes_the_largest_header_and_payload_and_no_more():
    largest = Frame(Kind.DATA, 1, b" " * frames.HEADER_BYTES_MAX, b"x" * frames.PAYLOAD_BYTES_MAX)
    assert frames.decode(frames.encode(largest)) == largest
    with pytest.raises(ValueError):
        frames.encode(Frame(Kind.DATA, 1, b"", b"x" * (frames.PAYLOAD_BYTES_MAX + 1)))
    too_long = bytearray(frames.encode(largest) + b"x")
    too_long[:4] = (len(too_long) - 4).to_bytes(4, "big")
    with pytest.raises(ProtocolError):
        frames.decode(bytes(too_long))


@pytest.mark.parametrize(
    ("header", "fits"),
    [
        (b'{"a":' + b"[" * 15 + b"]" * 15 + b"}", True),
        (b'{"a":' + b"[" * 16 + b"]" * 16 + b"}", False),
        (b'{"a":"' + b"[" * 100 + b'\\""}', True),
        (b'{"a":[' + b"0," * 65_000 + b"0]}", True),
        (b'{"a":[' + b"0," * 65_540 + b"0]}", False),
        (b'{"a":"' + b"," * 70_000 + b'"}', True),
        (b'{"a":NaN}', False),
        (b'{"a":' + b"9" * 5000 + b"}", False),
        (b'{"a":1', False),
    ],
)
def test_a_header_is_looked_at_before_it_is_parsed(header, fits):
    frame = Frame(Kind.PING, header=header)
    if fits:
        messages.read(frame)
    else:
        with pytest.raises(ProtocolError):
            messages.read(frame)


@pytest.mark.parametrize(
    ("text", "spans", "found"),
    [
        ("plain", [[0, 2], [5, 5]], ["pl", ""]),
        ("café au lait", [[0, 5], [6, 8]], ["café", "au"]),
        ("\udce9t\u00e9", [[0, 1], [2, 4]], ["\udce9", "\u00e9"]),
        ("\u20ac5", [[1, 2], [0, 4], [3, 3]], ["\u20ac", "\u20ac5", ""]),
    ],
)
def test_what_was_found_in_a_line_is_told_in_its_characters(text, spans, found):
    line = search._line({"path": "f", "text": names.to_wire(text), "spans": spans})
    assert line.text == text and [text[start:end] for start, end in line.spans] == found
