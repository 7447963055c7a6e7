"""Who looks on at a cluster while it is measured."""

import contextlib
import http.client
import json
import threading
import time

from measure import Progress

PATIENCE_S = 1800


class Onlooker:
    """Follows the Sandboxes of a collection: when each was first seen Ready, and which are gone."""

    def __init__(self, client, path):
        self.client, self.path, self.changed, self.last = client, path, threading.Condition(), None
        self.known, self.ready, self.gone = set(), {}, set()
        threading.Thread(target=self._follow, daemon=True).start()

    def wait_ready(self, what, names):
        self._wait(what, self.ready, names)

    def wait_gone(self, names):
        self._wait("gone", self.gone, names)

    def _wait(self, what, found, names):
        """Until all names are found, of few at once and of many now and then."""
        left, end, progress = set(names), time.monotonic() + PATIENCE_S, Progress(what, len(names))
        while True:
            with self.changed:
                left = {name for name in left if name not in found}
                if not left:
                    return
                if len(left) < 100:
                    self.changed.wait(1)
            if len(left) >= 100:
                time.sleep(0.2)
            assert time.monotonic() < end, f"not within {PATIENCE_S} s: {what}, {len(left)} of {len(names)} left"
            progress.reach(len(names) - len(left))

    def _follow(self):
        """A watch may end, for one whose reader was stopped for a while, say: then all is listed anew."""
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):  # The API server ends with the run.
                listed = set()
                for items, since in self.client.pages(self.path):
                    for each in items:
                        listed.add(each["metadata"]["name"])
                        self._take({"type": "ADDED", "object": each})
                for name in self.known - listed:
                    self._take({"type": "DELETED", "object": {"metadata": {"name": name}}})
                for line in self.client.lines(f"{self.path}?watch=true&resourceVersion={since}"):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        break
                    self._take(event)
            time.sleep(0.5)

    def _take(self, event):
        seen, now = event["object"], time.time()
        name = seen["metadata"]["name"]
        conditions_seen = seen.get("status", {}).get("conditions", [])
        with self.changed:
            self.known.add(name)
            if event["type"] == "DELETED":
                self.gone.add(name)
            elif any(each["type"] == "Ready" and each["status"] == "True" for each in conditions_seen):
                self.ready.setdefault(name, now)
                self.last = seen
            self.changed.notify_all()
