"""Who wrote what to an API server, and when: its own audit log."""

import collections
import json
import time

from measure import when
from control_plane import WRITES  # Found by measure.

OBJECTS = ("sandboxes", "sandboxproviders")


class Row(collections.namedtuple("Row", "user verb resource subresource namespace name code received done")):
    def title(self):
        where = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {where}" + ("" if self.code < 300 else f" {self.code}")


class Audit:
    """Every write of the log so far."""

    def __init__(self, path):
        self.path, self.at, self.rows = path, 0, []

    def read(self):
        """Takes in what was written since the last time. The log comes a moment after the answers."""
        for _ in range(50):
            before = self.at
            self._read_on()
            if self.at == before:
                return
            time.sleep(0.1)

    def _read_on(self):
        with open(self.path, "rb") as log:
            log.seek(self.at)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self.at += len(line)
                if b'"verb":"get"' in line or b'"verb":"list"' in line or b'"verb":"watch"' in line:
                    continue
                event = json.loads(line)
                about = event.get("objectRef", {})
                verb = event["verb"]
                if verb not in WRITES:
                    continue
                self.rows.append(Row(event["user"]["username"], verb, about.get("resource", ""), about.get("subresource", ""),
                                     about.get("namespace", ""), about.get("name", ""), event["responseStatus"]["code"],
                                     when(event["requestReceivedTimestamp"]), when(event["stageTimestamp"])))

    def mark(self):
        self.read()
        return len(self.rows)

    def counts_since(self, mark, user):
        """{"verb resource": count} of a user's writes, those that were refused apart."""
        self.read()
        return dict(collections.Counter(row.title() for row in self.rows[mark:] if row.user == user))

    def rows_of(self, namespace, names):
        """{name: rows}, of Sandboxes."""
        self.read()
        found, wanted = collections.defaultdict(list), set(names)
        for row in self.rows:
            if row.namespace == namespace and row.resource == "sandboxes" and row.name in wanted:
                found[row.name].append(row)
        return found


def of_objects(counts):
    return {title: count for title, count in counts.items() if title.split()[1].split("/")[0] in OBJECTS}


def object_writes(counts):
    return sum(of_objects(counts).values())


def per(writes, count):
    return {title: round(each / count, 3) for title, each in sorted(writes.items())}
