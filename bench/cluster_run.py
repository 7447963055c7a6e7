"""One run of the benchmark of clusters: what it can do there, and what it sees of it."""

import collections
import concurrent.futures
import os
import time

from measure import Progress, cpu_seconds, length_of, percentiles, when
from api_client import JSON_PATCH, MERGE, Client
from audit import Audit
from cluster_world import GROUP, TEAM, USER, world  # Found by measure.
from onlooker import Onlooker

BARE, BARE_USER = "bare", "bench-writer"  # A namespace that no controller follows, and who writes there as one would.
CLIENTS = 16


def collection(namespace):
    return f"{GROUP}/namespaces/{namespace}/sandboxes"


def manifest(name):
    return {"apiVersion": "sandfleet.dev/v1alpha1", "kind": "Sandbox", "metadata": {"name": name},
            "spec": {"template": {"id": "base-executor"}}}


class Run:
    def __init__(self, here, options):
        self.here, self.options, self.admin = here, options, Client(here.cluster)
        self.onlooker = Onlooker(self.admin, collection(TEAM))
        self.audit = Audit(here.cluster.audit_log)
        self.writer = None
        self.created = {}  # {name: when its POST was sent}
        self.pool = concurrent.futures.ThreadPoolExecutor(CLIENTS + 1)

    # ---- What is done

    def create(self, name):
        self.created[name] = time.time()
        self.admin.ask("POST", collection(TEAM), manifest(name))

    def remove(self, name):
        self.admin.ask("DELETE", f"{collection(TEAM)}/{name}")

    def write_barely(self, name, like):
        """The writes that a Sandbox needs from create to Ready, by hand."""
        made = self.admin.ask("POST", collection(BARE), manifest(name))
        path, uid = f"{collection(BARE)}/{name}", made["metadata"]["uid"]
        kept = {"annotations": like["metadata"]["annotations"], "finalizers": like["metadata"]["finalizers"], "uid": uid,
                "resourceVersion": made["metadata"]["resourceVersion"]}
        made = self.writer.ask("PATCH", f"{path}?fieldManager=bench", {"metadata": kept}, MERGE)
        bound = {key: value for key, value in like["status"].items() if key != "run"}
        for status in (bound, like["status"]):
            made = self.writer.ask("PATCH", f"{path}/status?fieldManager=bench", [
                {"op": "test", "path": "/metadata/uid", "value": uid},
                {"op": "test", "path": "/metadata/resourceVersion", "value": made["metadata"]["resourceVersion"]},
                {"op": "add", "path": "/status", "value": status}], JSON_PATCH)

    def paced(self, what, deeds, per_second):
        """Open loop: each deed at its own moment, whatever became of those before."""
        began, running, progress = time.time(), [], Progress(what, len(deeds))
        for number, deed in enumerate(deeds):
            if per_second:
                time.sleep(max(0.0, began + number / per_second - time.time()))
            running.append(self.pool.submit(*deed))
            progress.reach(number + 1)
        for number, each in enumerate(running):
            each.result()
            progress.reach(number + 1)

    # ---- What is seen

    def stages(self, names):
        """[(create answered, Ready written, spans of the writes until then)] of each."""
        by_name, found = self.audit.rows_of(TEAM, names), {}
        for name in names:
            begin = next(row.done for row in by_name[name] if row.verb == "create")
            # What a watch shows may be a moment ahead of the answer to who wrote it.
            ours = [row for row in by_name[name] if row.user == USER and row.received <= self.onlooker.ready[name]]
            found[name] = begin, max(row.done for row in ours), [(row.received, row.done) for row in ours]
        return found

    def bare_stages(self, names):
        return {name: [(row.received, row.done) for row in rows if row.user == BARE_USER]
                for name, rows in self.audit.rows_of(BARE, names).items()}

    def provider_spans(self, names):
        """{name: [(from, to)]} in which the provider worked for it, of those that its log still holds whole."""
        _, log = self.here.provider.ask("GET", "/_local/requests")
        names_of = {key: each["metadata"]["sandfleet.name"] for key, each in self.here.provider.sandboxes().items()}
        wanted, found = set(names), collections.defaultdict(list)
        # The log keeps the newest 10,000 of each plane.
        since = max(when(log[plane][0]["at"]) if len(log[plane]) == 10_000 else 0.0 for plane in ("requests", "data_requests"))
        for each in (*log["requests"], *log["data_requests"]):
            name = names_of.get(each.get("sandbox_id"))
            if name in wanted and self.created[name] > since:
                done = when(each["at"])
                found[name].append((done - each["ms"] / 1000, done))
        return found

    def latencies(self, names, bare=()):
        """What create→Ready took, in milliseconds, and what of it was whose."""
        stages, spans = self.stages(names), self.provider_spans(names)
        took = [1000 * (end - begin) for begin, end, _ in stages.values()]
        result = {"sandboxes": len(names), "create_to_ready_ms": percentiles(took),
                  "own_writes_ms": percentiles(1000 * length_of(writes) for _, _, writes in stages.values()),
                  "writes_each": sum(len(writes) for _, _, writes in stages.values()) / len(names),
                  "ready_per_second": len(names) / (max(end for _, end, _ in stages.values()) - min(self.created[name] for name in names))}
        if spans:
            theirs = {name: [(max(begin, stages[name][0]), min(end, stages[name][1])) for begin, end in each]
                      for name, each in spans.items()}
            theirs = {name: [(begin, end) for begin, end in each if begin < end] for name, each in theirs.items()}
            parts = [(1000 * (stages[name][1] - stages[name][0]), 1000 * length_of(each),
                      1000 * length_of(each + stages[name][2])) for name, each in theirs.items()]
            result["provider_ms"] = percentiles(part for _, part, _ in parts)
            result["without_provider_ms"] = percentiles(whole - part for whole, part, _ in parts)
            result["rest_ms"] = percentiles(max(0.0, whole - covered) for whole, _, covered in parts)
            result["provider_sample"] = len(parts)
        if bare:
            writes = self.bare_stages(bare)
            assert all(len(each) == 3 for each in writes.values()), "three bare writes each"
            result["bare_writes_ms"] = percentiles(1000 * length_of(each) for each in writes.values())
            whole = [1000 * (max(end for _, end in each) - min(begin for begin, _ in each)) for each in writes.values()]
            result["bare_one_after_another_ms"] = percentiles(whole)
            for ratio, part in (("ratio", "create_to_ready_ms"), ("ratio_without_provider", "without_provider_ms")):
                if part in result:
                    result[ratio] = {rank: result[part][rank] / result["bare_writes_ms"][rank] for rank in result[part]}
        return result

    def use(self, replica):
        """CPU seconds so far of everybody who takes part."""
        cluster, provider = self.here.cluster, self.here.provider.program.pid
        return {"controller": cpu_seconds(replica.program.pid), "api_server": cpu_seconds(cluster.api_server.pid),
                "etcd": cpu_seconds(cluster.etcd.pid), "provider": cpu_seconds(provider), "bench": cpu_seconds(os.getpid())}

    @staticmethod
    def reconciles(metrics):
        return world.sum_of(metrics, "controller_runtime_reconcile_total")
