"""A world for tests and the demo: real programs of ours as child processes, waited for by their
ready files and ended by pid, and ways to look at what the machine still holds of them."""

import base64
import contextlib
import ctypes
import functools
import http.client
import json
import os
import pathlib
import resource
import secrets
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import urllib.parse

REPO = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77  # What ctest takes for "skipped" (SKIP_RETURN_CODE).
OUTPUT_BYTES_MAX = 64 * 1024
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
ENDINGS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def programs_folder():
    return pathlib.Path(os.environ.get("SANDFLEET_BIN", REPO / "build/dev/bin"))


@functools.cache
def where(piece):
    """What scripts/bootstrap has installed of that name."""
    found = subprocess.run([REPO / "scripts/bootstrap", "where", piece], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr + "run scripts/bootstrap test first"
    return pathlib.Path(found.stdout.strip())


class NotInTime(AssertionError):
    pass


def wait_until(what, check, deadline_s=30.0, every_s=0.02):
    """The first truthy value of check(); NotInTime with `what`, and the last value, otherwise."""
    end = time.monotonic() + deadline_s
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise NotInTime(f"not within {deadline_s:g} s: {what() if callable(what) else what}")
        time.sleep(every_s)


@contextlib.contextmanager
def temporary_folder(name):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"sandfleet-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _endings_held():
    """Signals that unwind wait until the block is over; yields the mask of before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _before_exec(dies_by, descriptors, mask):
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if dies_by is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, dies_by)
    if descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, descriptors)


class OrdinaryUser:
    """Somebody who is not root, with copies of our programs where he can reach them: ourselves, or for
    root one to whom nothing belongs but `folder`. A cgroup, if there is one, is made his, and he starts
    programs in it for as long as it is set."""

    UID = 62345

    def __init__(self, folder, *programs, cgroup=None):
        self.programs = pathlib.Path(folder) / "bin"
        self.programs.mkdir()
        for program in programs:
            shutil.copy(programs_folder() / program, self.programs)
        self.uid, self.cgroup = os.geteuid() or self.UID, cgroup
        self.own(folder)
        for name in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control") if cgroup else ():
            self.own(cgroup / name)

    def own(self, path):
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.uid)

    def command(self, program):
        """What to start, as whoever we are, for the program to run as this user."""
        start = []
        if self.cgroup:
            start += ["sh", "-c", f'echo $$ > {self.cgroup}/cgroup.procs && exec "$@"', "sh"]
        if os.geteuid() == 0:
            start += ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--pdeathsig=TERM"]
        return [*start, self.programs / program]


class Program:
    """One child process with its output in a file. Whoever starts it ends it: use `with`, or stop().
    Should its parent be killed, it gets the signal `dies_by`, unless it is to outlive it. `descriptors`
    is (soft limit, hard limit) of what it may have open; `told` comes on its stdin."""

    def __init__(self, name, *arguments, log, ready_file=None, env=None, deadline_s=30.0, outlives_us=False,
                 descriptors=None, folder=None, dies_by=signal.SIGTERM, user=None, told=None):
        self.name, self.log, self.ready_file = name, pathlib.Path(log), ready_file
        if ready_file is not None:
            pathlib.Path(ready_file).unlink(missing_ok=True)
        self.process = None
        try:
            with open(self.log, "ab") as output, _endings_held() as mask:
                program = user.command(name) if user else [(folder or programs_folder()) / name]
                self.process = subprocess.Popen(
                    [*map(str, program), *map(str, arguments)],
                    stdin=subprocess.DEVNULL if told is None else subprocess.PIPE, stdout=output, stderr=output,
                    env={**os.environ, **(env or {})}, start_new_session=True,
                    preexec_fn=lambda: _before_exec(None if outlives_us else dies_by, descriptors, mask))
            self.pid = self.process.pid
            if told is not None:
                self.process.stdin.write(told.encode())
                self.process.stdin.close()
            if ready_file is not None:
                wait_until(lambda: f"{name} ready\n{self.output()}", self._ready, deadline_s)
        except BaseException:  # Ctrl-C too: nobody else knows of this process yet.
            if self.process is not None:
                self.kill()
            raise

    def _ready(self):
        if self.process.poll() is not None:
            raise AssertionError(
                f"{self.name} ended with {self.process.returncode} before it was ready:\n{self.output()}")
        return pathlib.Path(self.ready_file).exists()

    def output(self):
        """The newest part of what it printed."""
        with open(self.log, "rb") as log:
            log.seek(max(0, os.path.getsize(self.log) - OUTPUT_BYTES_MAX))
            return log.read().decode(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        """As a crash: SIGKILL, and nothing of ours gets a say."""
        if self.alive():
            self.process.kill()
        self.process.wait()

    def stop(self, deadline_s=30.0):
        """SIGTERM; the exit code. A program that does not end in time is an error, and killed."""
        if self.alive():
            self.process.terminate()
        try:
            code = self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end {deadline_s:g} s after SIGTERM:\n{self.output()}")
        report = next((line for line in self.output().splitlines()
                       if "Sanitizer" in line or "runtime error:" in line), None)
        assert report is None, f"{self.name}: {report}\n{self.output()}"
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.kill() if kind else self.stop()


class Provider:
    """sandfleet-local-e2b on free ports of 127.0.0.1, with its state in one folder. SIGTERM ends its
    sandboxes too, unless kill_on_exit is off when it starts."""

    def __init__(self, folder, *arguments, outlives_us=False, descriptors=None, user=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state = self.folder / "state"
        self.key_file = self.folder / "api-key"
        if not self.key_file.exists():
            self.key_file.touch(0o600)
            self.key_file.write_text("e2b_" + secrets.token_hex(20) + "\n")
        self.key = self.key_file.read_text().strip()
        self.arguments, self.ports, self.outlives_us = arguments, (0, 0), outlives_us
        self.program, self.kill_on_exit = None, True
        self.descriptors, self.user = descriptors, user
        if user:
            user.own(self.folder)
            user.own(self.key_file)
        try:
            self.start()
        except BaseException:  # Ctrl-C too: nobody else knows of this provider yet.
            if self.program is not None:
                self.program.kill()
            raise

    def start(self):
        """Also after a crash: on the same ports, as its clients know it."""
        ready = self.folder / "ready"
        self.program = Program(
            "sandfleet-local-e2b", "--state", self.state, "--api-port", self.ports[0],
            "--data-port", self.ports[1], "--api-key-file", self.key_file, "--ready-file", ready,
            *self.arguments, *(["--kill-on-exit"] if self.kill_on_exit else []),
            log=self.folder / "provider.log", ready_file=ready, outlives_us=self.outlives_us,
            descriptors=self.descriptors, user=self.user)
        self.api_url, self.data_url = _urls(ready.read_text())
        self.ports = tuple(urllib.parse.urlsplit(url).port for url in (self.api_url, self.data_url))

    def ask(self, method, path, body=None, key=None):
        """(status, JSON or None) of one control-plane call."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=100)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"X-API-Key": key or self.key, "Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None

    def asked_inside(self, sandbox_id):
        """What the data plane carried into one sandbox, in the order in which it was done."""
        status, log = self.ask("GET", "/_local/requests")
        assert status == 200, log
        return [f"{each['method']} {each['path']}" for each in log["data_requests"]
                if each.get("sandbox_id") == sandbox_id]

    def cannot(self):
        """{operation: reason} of what it says it cannot do on this machine."""
        status, told = self.ask("GET", "/health")
        assert status in (200, 204), told
        return {each["operation"]: each["reason"] for each in (told or {}).get("cannot", [])}

    def sandboxes(self):
        """Every page of the list, running and paused, by id. Asks again when a fault takes the answer."""
        for _ in range(20):
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                return self._list()
        raise AssertionError("20 lists in a row were not answered")

    def _list(self):
        found, token = {}, ""
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=30)
            with contextlib.closing(connection):
                connection.request("GET", "/v2/sandboxes?state=running,paused&limit=100"
                                   + (f"&nextToken={token}" if token else ""), None, {"X-API-Key": self.key})
                answer = connection.getresponse()
                page = json.loads(answer.read())
                assert answer.status == 200, page
            found.update({item["sandboxID"]: item for item in page})
            token = urllib.parse.quote(answer.getheader("X-Next-Token") or "")
            if not token:
                return found

    def sdk_env(self):
        return {"E2B_API_URL": self.api_url, "E2B_SANDBOX_URL": self.data_url, "E2B_API_KEY": self.key}

    def close(self):
        """Ends it and every sandbox of it, listed or half-made, so that a failed test leaves nothing."""
        if not (self.program.alive() and self.kill_on_exit):
            self.program.kill()
            self.kill_on_exit = True
            self.start()
        self.program.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def series_in(page):
    """{series as it is spelled: value} of a page of metrics."""
    lines = [line for line in page.splitlines() if line and line[0] != "#"]
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}


def sum_of(all_series, metric, /, **labels):
    """The series of that metric that have these labels, together."""
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(value for series, value in all_series.items()
               if series.split("{")[0] == metric and all(each in series for each in wanted))


def _urls(ready):
    told = json.loads(ready)
    return told["api_url"], told["data_url"]


def run_inside(provider, sandbox_id, command, background=False):
    """A shell command through envd's Process.Start, as the default user: (exit code, stdout); the pid
    when in the background."""
    status, detail = provider.ask("GET", f"/sandboxes/{sandbox_id}")
    assert status == 200, detail
    asked = json.dumps({"process": {"cmd": "/bin/sh", "args": ["-c", command]}, "stdin": False}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", provider.ports[1], timeout=30)
    with contextlib.closing(connection):
        connection.request("POST", "/process.Process/Start", b"\0" + struct.pack(">I", len(asked)) + asked, {
            "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1",
            "E2b-Sandbox-Id": sandbox_id, "E2b-Sandbox-Port": "49983",
            "X-Access-Token": detail.get("envdAccessToken") or ""})
        answer, output = connection.getresponse(), b""
        assert answer.status == 200, (answer.status, answer.read())
        while True:
            flags, length = struct.unpack(">BI", answer.read(5))
            message = json.loads(answer.read(length))
            assert not flags & 2, f"ended before its process: {message}"
            event = message["event"]
            if background and "start" in event:
                return event["start"]["pid"]
            output += base64.b64decode(event.get("data", {}).get("stdout", ""))
            if "end" in event:
                return event["end"].get("exitCode", 0), output.decode()


class Controller:
    """sandfleet-controller on a folder of manifests, and the CLI beside it."""

    def __init__(self, folder, *arguments, outlives_us=False, programs=None):
        self.folder, self.programs = pathlib.Path(folder), programs
        self.manifests, self.state = self.folder / "manifests", self.folder / "state"
        self.manifests.mkdir(parents=True, exist_ok=True)
        self.arguments, self.program, self.outlives_us = arguments, None, outlives_us

    def start(self):
        ready = self.folder / "ready"
        self.program = Program(
            "sandfleet-controller", "--manifests", self.manifests, "--state", self.state,
            "--metrics-port", "0", "--ready-file", ready, "--log-level", "debug", *self.arguments,
            log=self.folder / "controller.log", ready_file=ready, outlives_us=self.outlives_us,
            folder=self.programs)
        return self

    def declare(self, name, text):
        """Writes a manifest as an editor would: whole, by rename."""
        staged = self.manifests / f".{name}.staged"
        staged.write_text(text)
        staged.rename(self.manifests / f"{name}.yaml")

    def remove(self, name):
        (self.manifests / f"{name}.yaml").unlink()

    def ask(self, path):
        """(status, text) of one of its own pages."""
        address = urllib.parse.urlsplit(json.loads((self.folder / "ready").read_text())["url"])
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def cli(self, *arguments, errors=False):
        """What it prints; with `errors`, what it says on stderr."""
        done = subprocess.run([programs_folder() / "sandfleet", *map(str, arguments)],
                              env={**os.environ, "SANDFLEET_STATE": str(self.state)},
                              capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, f"sandfleet {arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stderr if errors else done.stdout

    def sandboxes(self):
        """{name: object} as the state folder has them; works with and without a controller."""
        found = {}
        for path in (self.state / "sandboxes").rglob("*.json"):
            if path.name.startswith("."):
                continue
            with contextlib.suppress(FileNotFoundError):  # Deleted between the list and the look.
                item = json.loads(path.read_text()).get("object")
                if item:
                    found[item["metadata"]["name"]] = item
        return found

    def condition(self, name, kind="Ready"):
        conditions = self.sandboxes().get(name, {}).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), {})

    def story(self):
        """For a failed test: every status, and the end of the log."""
        statuses = {name: each.get("status") for name, each in self.sandboxes().items()}
        return f"{json.dumps(statuses, indent=1)}\n{self.program.output()}"

    def is_ready(self, name):
        return self.condition(name).get("status") == "True"

    def wait_ready(self, *names, deadline_s=30.0):
        wait_until(lambda: f"{', '.join(names)} Ready; {self.story()}", lambda: all(self.is_ready(name) for name in names), deadline_s, 0.05)
        return {name: self.sandboxes()[name]["status"]["sandboxID"] for name in names}

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        self.program.kill() if kind else self.program.stop()


PROVIDER = """\
apiVersion: sandfleet.dev/v1alpha1
kind: SandboxProvider
metadata: {{name: default}}
spec:
  api: {{url: "{provider.api_url}"}}
  data: {{url: "{provider.data_url}", routing: Header}}
  credentialsSecretRef: {{name: e2b-key}}
  settleSeconds: {settle}
---
apiVersion: v1
kind: Secret
metadata: {{name: e2b-key}}
stringData: {{apiKey: "{key}"}}
"""

SANDBOX = """\
apiVersion: sandfleet.dev/v1alpha1
kind: Sandbox
metadata: {{name: {name}}}
spec:
  template: {{id: {template}}}
  desiredState: {desired}
"""


def provider_manifest(provider, key=None, settle=5):
    return PROVIDER.format(provider=provider, key=key or provider.key, settle=settle)


def sandbox_manifest(name, desired="Running", template="base-executor"):
    return SANDBOX.format(name=name, desired=desired, template=template)


def mounts_under(folder):
    """Mount points of this process's namespace beneath `folder`."""
    with open("/proc/self/mountinfo") as table:
        points = [line.split()[4] for line in table]
    return [point for point in points if point == str(folder) or point.startswith(f"{folder}/")]


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def descriptors_of(pid):
    """What each of them is, as the kernel names it."""
    found = []
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(entry.path))
    return sorted(found)


def processes_of(folder):
    """{pid: command line} of processes that speak of `folder` or live in a root beneath it."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            mounts = (entry / "mountinfo").read_text()
            own_namespace = os.readlink(entry / "ns/mnt") != os.readlink("/proc/self/ns/mnt")
            if str(folder) in command or (own_namespace and str(folder) in mounts):
                found[int(entry.name)] = command
    return found


class Marker:
    """What a command has in its environment, and nobody else on this machine."""

    NAME = "SANDFLEET_MARKED"

    def __init__(self):
        self.value = secrets.token_hex(16)
        self.env = {self.NAME: self.value}

    def processes(self):
        """Command lines of the living whose environment has it, by pid; the machine sees into its sandboxes."""
        found, wanted = {}, f"{self.NAME}={self.value}".encode()
        for entry in os.scandir("/proc"):
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and wanted in pathlib.Path(entry.path, "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = pathlib.Path(entry.path, "cmdline").read_bytes()
        return found


def cgroup2():
    """Where a cgroup2 hierarchy is mounted, or None."""
    with open("/proc/self/mountinfo") as table:
        for line in table:
            left, right = line.split(" - ")
            if right.split()[0] == "cgroup2":
                return pathlib.Path(left.split()[4])
    return None


def cgroups_named(part):
    """Control groups whose own name contains `part`."""
    root = cgroup2()
    if root is None:
        return []
    return [path for path, folders, _ in os.walk(root) if part in os.path.basename(path)]


def need_root():
    """These tests pause sandboxes, and expect more than one user in them: that takes root."""
    if os.geteuid() != 0:
        print("skipped: sandboxes with users of their own take root, and this user is not root")
        raise SystemExit(SKIPPED)


def run_test_named_by(arguments, functions):
    """Runs the function test_NAME, or prints all names where none is given."""
    tests = {name[len("test_"):]: run for name, run in functions.items() if name.startswith("test_")}
    if not arguments:
        return print("\n".join(tests))
    end_on_signals()
    tests[arguments[0]]()


def end_on_signals():
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that `with` blocks end what they started."""
    def unwind(number, _):
        raise KeyboardInterrupt(signal.Signals(number).name)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, unwind)


def ignore_signals():
    """For a clean-up that must not be cut short."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
