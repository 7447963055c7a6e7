#!/usr/bin/env python3
"""Reads docs/protocol-vectors.json by docs/protocol.md alone, with nothing of ours: each frame's bytes say what stands
beside them, each refused frame is refused, each proof is right. With --write, the bytes follow from what is said."""

import base64
import hashlib
import hmac
import json
import pathlib
import struct
import sys

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "protocol-vectors.json"
HEADER_MAX, PAYLOAD_MAX = 1 << 20, 256 << 10
END, DROPPED = 1, 2
TYPES = ["hello", "challenge", "prove", "welcome", "renew", "renewed", "resume", "request", "reply", "data", "credit",
         "stop", "cancel", "ack", "notice", "ping", "pong", "close"]
WITH_STREAM = {"request", "reply", "data", "credit", "stop", "cancel"}
WITH_PAYLOAD = {"request", "reply", "data"}


class Refused(Exception):
    pass


def refuse_unless(fits, why):
    if not fits:
        raise Refused(why)


def header_bytes(header):
    return json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() if header else b""


def encode(means):
    header = header_bytes(means["header"])
    flags = (END if means.get("end") else 0) | (DROPPED if means.get("dropped") else 0)
    payload = bytes.fromhex(means.get("payload", ""))
    body = struct.pack(">BBII", TYPES.index(means["type"]) + 1, flags, means.get("stream", 0), len(header)) + header + payload
    return struct.pack(">I", len(body)) + body


def decode(data):
    refuse_unless(len(data) >= 4, "no length")
    length = struct.unpack_from(">I", data)[0]
    refuse_unless(10 <= length <= 10 + HEADER_MAX + PAYLOAD_MAX, "length")
    refuse_unless(length == len(data) - 4, "another length than the message's")
    kind, flags, stream, size = struct.unpack_from(">BBII", data, 4)
    if kind >= 128:
        return None
    refuse_unless(1 <= kind <= len(TYPES), "unknown type")
    refuse_unless(flags & ~(END | DROPPED) == 0, "unknown flag")
    refuse_unless(size <= HEADER_MAX and size <= length - 10 and length - 10 - size <= PAYLOAD_MAX, "sizes")
    name, header, payload = TYPES[kind - 1], data[14:14 + size], data[14 + size:]
    refuse_unless((name in WITH_STREAM) == (stream != 0), "stream")
    refuse_unless(not flags & END or name in WITH_PAYLOAD, "END")
    refuse_unless(not flags & DROPPED or name == "data", "DROPPED")
    refuse_unless(not payload or name in WITH_PAYLOAD, "payload")
    try:
        parsed = json.loads(header.decode()) if header else {}
    except ValueError as error:
        raise Refused("header") from error
    refuse_unless(isinstance(parsed, dict), "header")
    return {"type": name, "stream": stream, "header": parsed, "payload": payload.hex(), "end": bool(flags & END),
            "dropped": bool(flags & DROPPED)}


def filled(means):
    return {"stream": 0, "payload": "", "end": False, "dropped": False} | means


def name_bytes(value):
    """A path or argument: a string, or {"b64"}."""
    return value.encode() if isinstance(value, str) else base64.b64decode(value["b64"], validate=True)


def check(vectors):
    for one in vectors["frames"]:
        if "--write" in sys.argv:
            one["bytes"] = encode(one["means"]).hex()
        data = bytes.fromhex(one["bytes"])
        assert data == encode(one["means"]), one["name"]
        assert decode(data) == filled(one["means"]), one["name"]
    for one in vectors["skipped"]:
        assert decode(bytes.fromhex(one["bytes"])) is None, one["name"]
    for one in vectors["refused"]:
        if one["by"] != "frame":
            continue  # A field's limit, which this short reading does not know.
        try:
            decode(bytes.fromhex(one["bytes"]))
            raise AssertionError(one["name"] + " was not refused")
        except Refused:
            pass
    for one in vectors["names"]:
        assert name_bytes(one["json"]).hex() == one["bytes"], one["name"]
    for one in vectors["trailers"]:
        text = header_bytes(one["report"])
        frame = struct.pack("<II", 0x184D2A5A, len(text)) + text
        if "--write" in sys.argv:
            one["bytes"] = frame.hex()
        assert bytes.fromhex(one["bytes"]) == frame, one["name"]
    hand = vectors["handshake"]
    claims, signature = hand["token"].rsplit(".", 1)
    secret = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    assert claims == hand["claims"]
    assert secret == hmac.new(bytes.fromhex(hand["attachKey"]), claims.encode(), hashlib.sha256).digest()
    for whose in ("executor", "client", "renewal"):
        text = f"sandfleet {whose}\n{hand['clientNonce']}\n{hand['serverNonce']}"
        assert hand["proofs"][whose] == hmac.new(secret, text.encode(), hashlib.sha256).hexdigest(), whose


def main():
    vectors = json.loads(VECTORS.read_text())
    check(vectors)
    counts = {part: len(vectors[part]) for part in ("frames", "skipped", "refused", "names", "trailers")}
    assert all(counts.values()), f"parts are missing: {counts}"
    if "--write" in sys.argv:
        VECTORS.write_text(json.dumps(vectors, indent=1, ensure_ascii=True) + "\n")
    print("held:", counts)


if __name__ == "__main__":
    main()
