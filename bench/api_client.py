"""One user of an API server, as the benchmark of clusters needs him."""

import contextlib
import http.client
import json
import ssl
import threading
import time

MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
IDLE_S = 20  # The server closes connections that nobody has used for long.
PAGE = 500
WATCH_SILENCE_S = 1800


class Client:
    """One user of the API server, with one connection for each thread that asks."""

    def __init__(self, cluster, user="admin", groups=("system:masters",)):
        self.address, self.port, self.own = cluster.address, cluster.port, threading.local()
        self.trust = ssl.create_default_context(cafile=cluster.authority.path("ca.crt"))
        self.trust.load_cert_chain(*cluster.authority.client(user, groups))

    def ask(self, method, path, body=None, content_type="application/json"):
        if time.monotonic() - getattr(self.own, "used", 0) > IDLE_S:
            self.own.connection = http.client.HTTPSConnection(self.address, self.port, timeout=60, context=self.trust)
        connection, self.own.used = self.own.connection, time.monotonic()
        connection.request(method, path, None if body is None else json.dumps(body).encode(), {"Content-Type": content_type})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), (method, path, answer.status, text[:2000])
        return json.loads(text)

    def pages(self, path):
        """What a collection holds, page by page as (items, resourceVersion): whole, thousands take long to read at once."""
        token = ""
        while True:
            page = self.ask("GET", f"{path}?limit={PAGE}&continue={token}")
            yield page["items"], page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue", "")
            if not token:
                return

    def lines(self, path):
        """Of a watch, as they come."""
        connection = http.client.HTTPSConnection(self.address, self.port, timeout=WATCH_SILENCE_S, context=self.trust)
        with contextlib.closing(connection):
            connection.request("GET", path)
            yield from connection.getresponse()
