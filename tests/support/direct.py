"""A session on an executor's own port, by a token that proves itself unseen."""

import hashlib
import hmac
import secrets
import urllib.parse

from harness import CHALLENGE, PROVE, Closed, Harness
from ways import url_bytes
from websocket import WebSocket


class Direct:
    """For a Harness, before it in the list of bases: its links lead to `address`, and `token` opens them."""

    address, prefix, headers = None, "", {}

    def prove_by(self, token):
        self.claims, signature = token.rsplit(".", 1)
        self.key = url_bytes(signature)

    def _open_link(self):
        return WebSocket(self.address, f"{self.prefix}/v1/session", "sandfleet.1", self.headers)

    def _credentials(self):
        self.nonce = secrets.token_hex(16)
        return {"claims": self.claims, "nonce": self.nonce}

    def _take(self, kind, flags, stream, header, payload):
        if kind != CHALLENGE:
            return super()._take(kind, flags, stream, header, payload)
        if not hmac.compare_digest(header["proof"], self._proof("executor", header["nonce"])):
            raise AssertionError("whoever answers does not know the key")
        self.send(PROVE, 0, {"proof": self._proof("client", header["nonce"])})

    def _proof(self, whose, nonce):
        text = f"sandfleet {whose}\n{self.nonce}\n{nonce}".encode()
        return hmac.new(self.key, text, hashlib.sha256).hexdigest()


class DirectHarness(Direct, Harness):
    """Where a way leads to, as the attach service tells it."""

    def __init__(self, way):
        super().__init__(None)
        url = urllib.parse.urlsplit(way["endpoint"]["url"])
        self.address, self.prefix, self.headers = (url.hostname, url.port), url.path, way["endpoint"]["headers"]
        self.prove_by(way["token"])


def refusal_of(way):
    """Why no session begins by it; None: one did, and was ended."""
    harness = DirectHarness(way)
    try:
        harness.dial().end()
    except Closed as closed:
        return closed.message
    finally:
        harness.close()
