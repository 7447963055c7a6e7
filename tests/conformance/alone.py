"""sandfleet-executor by itself, told by us what its controller would tell it."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "integration")]
import world  # noqa: E402
from ways import sealed  # noqa: E402

UID, EPOCH, RUN = "uid-alone", 1, 1
TOKEN_S = 24 * 3600
SERVING = re.compile(r" serving .*\bport=(\d+).*\bpid=(\d+)")


class AloneExecutor:
    """As an ordinary user, so that modes of files mean something. What its commands see is below its home."""

    def __init__(self, folder, program="sandfleet-executor", env=None, cgroup=None):
        self.folder = folder
        self.user = world.OrdinaryUser(folder, program, cgroup=cgroup)
        self.home, self.runtime = folder / "home", folder / "runtime"
        for each in (self.home, self.runtime):
            each.mkdir(0o700)
            self.user.own(each)
        self.name, self.env = program, env or {}
        self.attach_key, self.admin_key = secrets.token_bytes(32), secrets.token_bytes(32)

    def start(self):
        secrets_line = {"uid": UID, "epoch": EPOCH, "attachKey": self.attach_key.hex(), "adminKey": self.admin_key.hex()}
        self.program = world.Program(
            self.name, "run", "--port", "0", "--listen", "127.0.0.1", "--runtime-dir", self.runtime, user=self.user,
            log=self.folder / "executor.log", env={"HOME": str(self.home), **self.env}, told=json.dumps(secrets_line) + "\n")
        self._await_life(1)
        return self

    def crash(self):
        """Kills the process that serves. Its parent starts the next one."""
        os.kill(self.pid, signal.SIGKILL)
        self._await_life(self.lives + 1)

    def _await_life(self, lives):
        def lines():
            assert self.program.alive(), self.program.output()
            found = SERVING.findall(self.program.output())
            return found if len(found) >= lives else None
        port, pid = world.wait_until(lambda: f"the executor serves\n{self.program.output()}", lines)[-1]
        self.lives, self.address, self.pid = lives, ["127.0.0.1", int(port)], int(pid)
        self._tell_resumed()

    def _tell_resumed(self):
        identity = {"uid": UID, "epoch": EPOCH, "incarnation": 1, "run": RUN}
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/resumed", json.dumps({"identity": identity, "nowMs": int(time.time() * 1000)}),
                               {"Authorization": f"Bearer {self.token('admin', self.admin_key)}"})
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read())

    def token(self, kind="attach", key=None):
        now = int(time.time() * 1000)
        claims = {"kind": kind, "uid": UID, "epoch": EPOCH, "run": RUN, "ceiling": "DangerFullAccess", "subject": "conformance",
                  "issued": now, "expires": now + TOKEN_S * 1000}
        return sealed(key or self.attach_key, claims)

    def told(self):
        """What a driver must know of it."""
        how = {"program": self.name, "env": self.env}
        return {"address": self.address, "token": self.token(), "root": "", "home": str(self.home), "how": how}

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        self.program.kill() if kind else self.program.stop()


@contextlib.contextmanager
def own_cgroup(wanted):
    """A new one, or none; in the end its processes are dead and it is gone."""
    if not wanted:
        yield None
        return
    assert world.cgroup2(), "there is no cgroup2 hierarchy here"
    group = pathlib.Path(tempfile.mkdtemp(prefix="sandfleet-conformance-", dir=world.cgroup2()))
    try:
        yield group
    finally:
        (group / "cgroup.kill").write_text("1")
        for inner in sorted(group.rglob("*"), reverse=True):
            if inner.is_dir():
                inner.rmdir()
        world.wait_until(f"{group} to be empty", lambda: "populated 0" in (group / "cgroup.events").read_text())
        group.rmdir()


@contextlib.contextmanager
def alone_executor(program="sandfleet-executor", env=None, grouped=False):
    """In a folder that is not below a temporary one: anybody may write to those. Nothing of it is left. `grouped`: in a cgroup that
    is its own to divide."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sandfleet-conformance-", dir="/var/lib"))
    try:
        folder.chmod(0o711)
        with own_cgroup(grouped) as cgroup, AloneExecutor(folder, program, env, cgroup) as executor:
            yield executor
        left = world.processes_of(folder)
        assert not left, f"processes left: {left}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
