"""The parts of bench/agentd in which contenders take turns: small operations, and bytes by the megabyte."""

import contextlib
import pathlib
import re

from measure import percentiles
from agentd_site import on_one_cpu

SMALL = ("stat", "read", "write", "edit", "run", "shell")
ECHOED = ("stat", "read")  # What the hops alone are measured for, with frames of the same sizes.
TOGETHER = ("write", "read", "run")
CHUNK_BYTES = 64 << 10  # What one frame of a long stream carries.
FRAME_BYTES = 64        # About what it has besides.
WARM_UP = 20
SDKS_TAKE = 5  # Times as long as the others, and so they are asked that much less.


class Used:
    """What a process has used since: CPU, and how often one of its threads went to sleep."""

    def __init__(self, pid):
        self.pid, self.before = pid, self._now(pid)

    @staticmethod
    def _now(pid):
        cpu_ns = sleeps = 0
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # A thread that has just ended.
                cpu_ns += int((task / "schedstat").read_text().split()[0])
                sleeps += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.MULTILINE)[1])
        return cpu_ns, sleeps

    def since(self):
        return tuple(now - before for now, before in zip(self._now(self.pid), self.before))


def frame_bytes(site, contender):
    """{operation: (bytes of its request, bytes of its reply)}, as agentd counts what it carries."""
    sizes = {}
    for word in ECHOED:
        before = site.agentd.metrics()
        contender.ask(word, WARM_UP)
        after = site.agentd.metrics()
        sizes[word] = [round((after[series] - before[series]) / WARM_UP) for series in
                       ('sandfleet_agentd_bytes_total{direction="to_executor"}', 'sandfleet_agentd_bytes_total{direction="to_harness"}')]
    return sizes


def hops(site, contenders, rounds, each):
    """What agentd and the executor add to the hops alone. All on one CPU: where the scheduler puts five processes that wake each
    other makes three times as much of a difference to each contender, and not the same to all at a time."""
    sizes = frame_bytes(site, contenders["agentd"])
    names = ("agentd", *(name for name in contenders if name.startswith("echo")))
    took = {word: {name: [] for name in names} for word in ECHOED}
    with on_one_cpu(site.on_the_way(contenders)):
        for _ in range(rounds):
            for word, by in took.items():
                for name in names:
                    by[name] += contenders[name].ask(word, each, *([1, sizes[word][0], 1, sizes[word][1]] if name != "agentd" else []))
    return {"frame_bytes": sizes, "hops_us": summary(took)}


def small(site, contenders, rounds, each):
    """Every operation of every contender, `each` times in a row (the SDKs less), as many rounds."""
    took = {word: {} for word in SMALL}
    used = {word: {"agentd": [0, 0], "executor": [0, 0]} for word in SMALL}

    def turn(name, word):
        if word == "shell" and name != "agentd":
            return []  # All that they run is run by a shell.
        return contenders[name].ask(word, each if name == "agentd" else max(1, each // SDKS_TAKE))

    names = [name for name in contenders if not name.startswith("echo")]
    for word in SMALL:  # Everybody is warm, as in a harness that has run for a while.
        for name in names:
            turn(name, word)
    for _ in range(rounds):
        for word in SMALL:
            for name in names:
                watched = {"agentd": Used(site.agentd.program.pid), "executor": Used(site.executor)} if name == "agentd" else {}
                took[word].setdefault(name, []).extend(turn(name, word))
                for who, one in watched.items():
                    used[word][who] = [sum(pair) for pair in zip(used[word][who], one.since())]
    return {"latency_us": summary(took), "together_us": together(took),
            "used": {word: {who: {"cpu_us": cpu / 1000 / (rounds * each), "sleeps": sleeps / (rounds * each)}
                            for who, (cpu, sleeps) in by.items()} for word, by in used.items()}}


def summary(took):
    return {word: {name: percentiles(one / 1000 for one in all_of_it) for name, all_of_it in by.items() if all_of_it}
            for word, by in took.items()}


def together(took):
    """Of the operations that a harness makes one after another all the time."""
    return {name: percentiles(sum(each) / 1000 for each in zip(*(took[word][name] for word in TOGETHER))) for name in took["run"]}


def bulk(contenders, rounds, size):
    """MB/s both ways."""
    chunks = size // CHUNK_BYTES
    long, short = CHUNK_BYTES + FRAME_BYTES, FRAME_BYTES
    echoes = {"upload": [chunks, long, 1, short], "download": [1, short, chunks, long]}
    took = {word: {name: [] for name in contenders} for word in echoes}
    for _ in range(rounds):
        for word, numbers in echoes.items():
            for name, contender in contenders.items():
                took[word][name] += contender.ask(word, 1, *(numbers if name.startswith("echo") else [size]))
    return {word: {name: size * 1e3 / sorted(all_of_it)[len(all_of_it) // 2] for name, all_of_it in by.items()}
            for word, by in took.items()}
