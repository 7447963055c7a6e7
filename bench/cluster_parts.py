"""The parts of a run of the benchmark of clusters, each with what it found; bench/cluster has their order."""

import concurrent.futures
import re
import threading
import time

from measure import cpu_seconds, resident_bytes, say, when
from audit import object_writes, of_objects, per
from cluster_world import USER, world  # Found by measure.
from onlooker import PATIENCE_S

BARE_MAX = 1000  # More bare writes tell no more.


def steps(before, after, count):
    """How often the reconciler took which step for each."""
    return {f"{action} {outcome}": round((value - before.get(series, 0)) / count, 3) for series, value in after.items()
            for action, outcome in re.findall(r'^sandfleet_actions_total\{action="(\w+)",outcome="(\w+)"', series)
            if value > before.get(series, 0)}


def warm_up(run):
    """Caches are warm and connections open, as in a controller that has run for a while."""
    run.create("first")
    run.onlooker.wait_ready("the first", ["first"])
    like = run.onlooker.last
    run.write_barely("first", like)
    return like


def serial(run, count):
    names = [f"serial-{number}" for number in range(count)]
    for name in names:
        run.create(name)
        run.onlooker.wait_ready(name, [name])
    return run.latencies(names)


def in_flight(run, at_once, count):
    """So many at once: the next is created when one is Ready."""
    names = [f"flight-{number}" for number in range(count)]

    def work(name):
        run.create(name)
        run.onlooker.wait_ready(name, [name])
    with concurrent.futures.ThreadPoolExecutor(at_once) as workers:
        list(workers.map(work, names))  # Which raises what one of them raised.
    return run.latencies(names)


def burst(run, count):
    names = [f"burst-{number}" for number in range(count)]
    began = time.time()
    run.paced("asked for", [(run.create, name) for name in names], None)
    submitted = time.time() - began
    run.onlooker.wait_ready("the burst", names)
    return {**run.latencies(names), "submitted_seconds": submitted,
            "seconds": max(run.onlooker.ready[name] for name in names) - began}


def paced(run, replica, like, count, per_second):
    """The measured ones, and beside them bare writes of the same kind."""
    names = [f"box-{number}" for number in range(count)]
    every = max(1, count // BARE_MAX)
    bare = [f"bare-{number}" for number in range(0, count, every)]
    deeds = []
    for number, name in enumerate(names):
        deeds.append((run.create, name))
        if number % every == 0:
            deeds.append((run.write_barely, f"bare-{number}", like))
    mark, used, memory = run.audit.mark(), run.use(replica), resident_bytes(replica.program.pid)
    before = replica.series()
    run.paced("asked for, bare writes included", deeds, per_second * len(deeds) / count)
    run.onlooker.wait_ready("Ready", names)
    done, after = run.use(replica), replica.series()
    writes = run.audit.counts_since(mark, USER)
    result = {**run.latencies(names, bare), "asked_per_second": per_second,
              "api_writes_each": per(writes, count), "object_writes_each": object_writes(writes) / count,
              "reconciles_each": (run.reconciles(after) - run.reconciles(before)) / count,
              "steps_each": steps(before, after, count),
              "cpu_ms_each": {who: 1000 * (done[who] - used[who]) / count for who in done},
              "controller_memory_bytes_each": (resident_bytes(replica.program.pid) - memory) // count}
    return names, result


def steady(run, replica, seconds):
    """What it costs that nothing happens."""
    before, used, mark = replica.series(), run.use(replica), run.audit.mark()
    began = time.monotonic()
    while (left := seconds - (time.monotonic() - began)) > 0:
        time.sleep(min(left, 5))
        say(f"  steady for {time.monotonic() - began:.0f} s")
    lasted = time.monotonic() - began
    after, done, writes = replica.series(), run.use(replica), run.audit.counts_since(mark, USER)
    beats = {series: value - before.get(series, 0) for series, value in after.items()
             if series.startswith("sandfleet_heartbeat_lateness_seconds")}
    return {"seconds": lasted, "object_writes": object_writes(writes), "api_writes_per_second": per(writes, lasted),
            "reconciles": run.reconciles(after) - run.reconciles(before),
            "cores": {who: (done[who] - used[who]) / lasted for who in done},
            "heartbeats_per_second": beats.get("sandfleet_heartbeat_lateness_seconds_count", 0) / lasted,
            "heartbeat_p99_seconds_at_most": bucket_of(beats, 0.99),
            "heartbeat_margin_seconds": after.get("sandfleet_heartbeat_margin_seconds"),
            "controller_memory_bytes": resident_bytes(replica.program.pid)}


def bucket_of(series, share):
    """The bound of the bucket in which that share of a histogram's observations ends."""
    buckets = sorted((float(bound), count) for name, count in series.items()
                     for bound in re.findall(r'_bucket\{.*le="([^"]+)"', name))
    total = max((count for _, count in buckets), default=0)
    return next((bound for bound, count in buckets if total and count >= share * total), None)


def start_beside(run, name, objects):
    """One more replica, timed until its mirror holds everything."""
    began = time.monotonic()
    replica = run.here.replica(name, *run.arguments, brisk=False).start()
    seconds = time.monotonic() - began
    assert world.sum_of(replica.series(), "sandfleet_sandboxes") == objects, "it mirrors everything"
    world.wait_until("its queue to be empty", lambda: world.sum_of(replica.series(), "workqueue_depth") == 0, 60, 0.05)
    return replica, {"objects": objects, "seconds": seconds, "memory_bytes": resident_bytes(replica.program.pid),
                     "cpu_seconds": cpu_seconds(replica.program.pid)}


def hand_over(run, leader, follower, end, probe, objects):
    """From the end of one to the work of the other, and until that keeps every lease."""
    mark, ended = run.audit.mark(), []
    began = time.time()
    end(leader.program.process)
    waiting = threading.Thread(target=lambda: (leader.program.process.wait(), ended.append(time.time())))
    waiting.start()
    run.create(probe)
    run.onlooker.wait_ready("the other at work", [probe])
    leases = re.findall(r"^(\S+Z) info +we hold the lease lease", (follower.folder / "log").read_text(), re.MULTILINE)
    world.wait_until("every lease kept", lambda: world.sum_of(follower.series(), "sandfleet_heartbeats") > objects, PATIENCE_S, 0.2)
    kept = time.time()
    waiting.join()
    writes = of_objects(run.audit.counts_since(mark, USER))
    return {"lease_held_seconds": when(leases[-1]) - began, "new_sandbox_ready_seconds": run.onlooker.ready[probe] - began,
            "all_kept_seconds": kept - began, "ended_seconds": ended[0] - began, "object_writes": writes,
            "reconciles_each": world.sum_of(follower.series(), "sandfleet_actions_total") / objects}


def delete_all(run, replica, names):
    mark, used, reconciles, began = run.audit.mark(), run.use(replica), run.reconciles(replica.series()), time.time()
    run.paced("deleted", [(run.remove, name) for name in names], None)
    run.onlooker.wait_gone(names)
    seconds, done, writes = time.time() - began, run.use(replica), run.audit.counts_since(mark, USER)
    return {"sandboxes": len(names), "seconds": seconds, "per_second": len(names) / seconds,
            "api_writes_each": per(writes, len(names)), "object_writes_each": object_writes(writes) / len(names),
            "reconciles_each": (run.reconciles(replica.series()) - reconciles) / len(names),
            "cpu_ms_each": {who: 1000 * (done[who] - used[who]) / len(names) for who in done}}
