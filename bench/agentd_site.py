"""Where bench/agentd measures: a sandbox that is Ready, agentd, and those that it compares, as processes that take turns."""

import contextlib
import http.client
import os
import pathlib
import subprocess

from measure import REPO
import world  # Found by measure.
from whole import agentd_before_a_box
from world import Program

CONTENDERS = REPO / "bench/contenders"
ECHO_PORT = 24999  # Inside; below those that connections leave from.


class Contender:
    """A process that obeys bench/contenders/commands.h."""

    def __init__(self, *argv, env=None):
        self.process = subprocess.Popen([*map(str, argv)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})

    def ask(self, word, times, *numbers):
        """Nanoseconds, for each time."""
        print(word, times, *numbers, file=self.process.stdin, flush=True)
        took = [int(each) for each in self.process.stdout.readline().split()]
        assert len(took) == times, f"{self.process.args} answered {len(took)} of {times} times: {word} {numbers}"
        return took

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()


def descends(pid, ancestor):
    while pid > 1 and pid != ancestor:
        pid = world.parent_of(pid)
    return pid == ancestor


def descendants(ancestor, program, verb):
    """Pids of those that run `program verb …` beneath `ancestor`."""
    found = set()
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):  # No process, or one that has just ended.
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(program) and words[1] == verb and descends(int(folder.name), ancestor):
                found.add(int(folder.name))
    return found


def executor_of(provider):
    """The pid of the one that serves, in the only sandbox that has one: the child of its parent."""
    found = descendants(provider.program.pid, b"sandfleet-executor", b"run")
    serving = [pid for pid in found if world.parent_of(pid) in found]
    assert len(serving) == 1, found
    return serving[0]


@contextlib.contextmanager
def on_one_cpu(pids):
    """All threads of these processes."""
    def hold(cpus):
        for pid in pids:
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError):  # A thread that has just ended.
                    os.sched_setaffinity(int(task), cpus)
    all_cpus = os.sched_getaffinity(0)
    hold({min(all_cpus)})
    try:
        yield
    finally:
        hold(all_cpus)


class Site:
    def __init__(self, provider, controller, agentd, folder):
        self.provider, self.controller, self.agentd, self.folder = provider, controller, agentd, folder
        self.box = controller.sandboxes()["box"]["status"]["sandboxID"]
        self.executor = executor_of(provider)

    def cli(self, verb, *words):
        """A command line about this sandbox."""
        return [str(world.programs_folder() / "sandfleet"), verb, "--socket", str(self.agentd.socket), *map(str, words)]

    def inside(self, command):
        code, output = world.run_inside(self.provider, self.box, command)
        assert code == 0, (command, code, output)
        return output

    def on_the_way(self, contenders):
        """Pids of all whom a message passes, through agentd or as an echo."""
        ours = [contender.process.pid for name, contender in contenders.items() if not name.startswith("E2B")]
        echoes = descendants(self.provider.program.pid, b"bench_echo", b"serve-web") | descendants(os.getpid(), b"bench_echo", b"serve-unix")
        return {self.agentd.program.pid, self.executor, self.provider.program.pid, *ours, *echoes}

    @contextlib.contextmanager
    def contenders(self):
        """{name: Contender}, our own first."""
        program = str(world.programs_folder() / "bench_echo")
        socket, inside = self.folder / "echo.sock", self._echo_inside(program)
        js = {"E2B_SDK": f"{world.where('js-2.51')}/node_modules/e2b/dist/index.mjs"}
        with contextlib.ExitStack() as stack:
            stack.enter_context(Program("bench_echo", "serve-unix", socket, log=self.folder / "echo.log", ready_file=socket))

            def begin(*argv, env=None):
                return stack.enter_context(Contender(*argv, env=env))
            yield {
                "agentd": begin(world.programs_folder() / "bench_carried", self.agentd.socket, "default", "box"),
                "echo, socket": begin(program, "ask-unix", socket),
                "echo, router": begin(program, "ask-web", *inside),
                "E2B JS": begin(world.where("node"), CONTENDERS / "sdk.mjs", env={**self.provider.sdk_env(), **js}),
                "E2B Python": begin(f"{world.where('python')}/bin/python", CONTENDERS / "sdk.py", env=self.provider.sdk_env()),
            }

    def _echo_inside(self, program):
        """Starts an echo beside the executor; how the router is asked for it."""
        subprocess.run(self.cli("cp", program, "box:bench_echo"), check=True, timeout=60)
        world.run_inside(self.provider, self.box, f"exec $HOME/bench_echo serve-web {ECHO_PORT}", background=True)
        status, detail = self.provider.ask("GET", f"/sandboxes/{self.box}")
        assert status == 200, detail
        headers = {"E2b-Sandbox-Id": self.box, "E2b-Sandbox-Port": str(ECHO_PORT)}
        token = detail.get("trafficAccessToken")

        def listens():
            connection = http.client.HTTPConnection("127.0.0.1", self.provider.ports[1], timeout=10)
            with contextlib.closing(connection):
                connection.request("GET", "/", None, {**headers, **({"E2b-Traffic-Access-Token": token} if token else {})})
                return connection.getresponse().status == 426  # It speaks WebSocket.
        world.wait_until("an echo inside", listens)
        return ["127.0.0.1", self.provider.ports[1], self.box, ECHO_PORT, *([token] if token else [])]


@contextlib.contextmanager
def site():
    with agentd_before_a_box() as (provider, controller, agentd), world.temporary_folder("bench") as folder:
        yield Site(provider, controller, agentd, folder)
