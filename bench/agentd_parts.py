"""Those that bench/agentd compares, as processes that take turns, and what agentd and the executor use meanwhile."""

import contextlib
import os
import pathlib
import re
import subprocess

from measure import REPO
import world  # Found by measure.

CONTENDERS = REPO / "bench/contenders"
ECHO_PORT = 24999  # Inside; below those that connections leave from.
COLLECTED_BYTES = 8 << 20  # Of a tail: kCollected in contenders/carried.cc.


class Contender:
    """A process that obeys bench/contenders/commands.h."""

    def __init__(self, *argv, env=None):
        self.process = subprocess.Popen([*map(str, argv)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})

    def ask(self, word, times, *numbers):
        """Nanoseconds, for each time."""
        print(word, times, *numbers, file=self.process.stdin, flush=True)
        took = [int(each) for each in self.process.stdout.readline().split()]
        assert len(took) == times, f"{self.process.args}: {word} {numbers} was answered {len(took)} times"
        return took

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()


def where(piece):
    return subprocess.run([REPO / "scripts/bootstrap", "where", piece], capture_output=True, text=True, check=True).stdout.strip()


def sdks(provider):
    """{name: how to start it} of the official SDKs."""
    env = provider.sdk_env()
    return {
        "E2B JS": ([where("node"), CONTENDERS / "sdk.mjs"], {**env, "E2B_SDK": f"{where('js-2.51')}/node_modules/e2b/dist/index.mjs"}),
        "E2B Python": ([f"{where('python')}/bin/python", CONTENDERS / "sdk.py"], env),
    }


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def executor_of(provider):
    """The pid of the one that serves, in the only sandbox there is: the child of its parent."""
    found = {pid for pid, command in world.processes_of(provider.folder).items() if re.search(r"sandfleet-executor run ", command)}
    served = [pid for pid in found if parent_of(pid) in found]
    assert len(served) == 1, found
    return served[0]


class Used:
    """What a process has used since: CPU, and how often it was put to sleep and woken."""

    def __init__(self, pid):
        self.pid, self.before = pid, self._now(pid)

    @staticmethod
    def _now(pid):
        cpu = sleeps = 0
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                cpu += int((task / "schedstat").read_text().split()[0])
                sleeps += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.MULTILINE)[1])
        return cpu, sleeps

    def each(self, times):
        cpu, sleeps = (now - before for now, before in zip(self._now(self.pid), self.before))
        return {"cpu_us": cpu / times / 1000, "sleeps": sleeps / times}


def peak_bytes(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def reset_peak(pid):
    """The peak is what it holds now (proc(5), clear_refs); that is returned."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_bytes(pid)


def start_echo_inside(provider, controller, agentd, box_id):
    """The address of an echo beside the executor, as the router knows it."""
    controller.cli("cp", "--socket", agentd.socket, world.programs_folder() / "bench_echo", "box:bench_echo")
    world.run_inside(provider, box_id, f"exec $HOME/bench_echo serve-web {ECHO_PORT}", background=True)
    detail = provider.ask("GET", f"/sandboxes/{box_id}")[1]
    token = detail.get("trafficAccessToken")
    return ["127.0.0.1", provider.ports[1], box_id, ECHO_PORT, *([token] if token else [])]
