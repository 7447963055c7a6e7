"""Ways into sandboxes, as the attach service tells them, checked with the fleet key that the test knows."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import urllib.parse


def url_bytes(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def url_text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims_of(token):
    return json.loads(url_bytes(token.split(".")[1]))


def sealed(key, claims):
    """A token that says them, by one executor's key of their kind."""
    text = "sf1." + url_text(json.dumps(claims, separators=(",", ":")).encode())
    return f"{text}.{url_text(hmac.digest(key, text.encode(), hashlib.sha256))}"


def signed(fleet_key, kind, claims, key_of_epoch=None):
    """The same by the fleet's key: by what it makes of their epoch, or of another."""
    epoch = claims["epoch"] if key_of_epoch is None else key_of_epoch
    key = hmac.digest(fleet_key, f"{kind}:{claims['uid']}:{epoch}".encode(), hashlib.sha256)
    return sealed(key, {**claims, "kind": kind})


def executor_says(endpoint, token):
    """(status, JSON) of GET /v1/health, where a way leads to."""
    url = urllib.parse.urlsplit(endpoint["url"])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", f"{url.path}/v1/health", None, {**endpoint["headers"], "Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
