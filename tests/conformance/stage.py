"""Where the cases take place, for as long as a run of ctest: an executor alone on this machine, and a sandbox with a controller,
agentd and dsh's providers in front of it. `stage.py start FOLDER DSH_BUILT` sets it up and leaves it standing until `stage.py end
FOLDER`, or until whoever started it (ctest) is gone."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import secrets
import select
import signal
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "integration")]
import world  # noqa: E402
from harness import Agentd  # noqa: E402
from session import signed  # noqa: E402
from whole import delete_all, whole_world  # noqa: E402

UID, EPOCH, RUN = "uid-alone", 1, 1
START_S, END_S = 120, 90
TOKEN_S = 24 * 3600
CANARY = "SANDFLEET_HOST_CANARY"  # In the environment of all that runs on the host, and of nothing in a sandbox.


class AloneExecutor:
    """sandfleet-executor, told by us what its controller would tell; as an ordinary user, so that modes of files mean something."""

    def __init__(self, folder, program="sandfleet-executor", env=None):
        self.folder = pathlib.Path(folder)
        self.folder.chmod(0o711)
        self.user = world.OrdinaryUser(self.folder, program)
        self.home, self.runtime = self.folder / "home", self.folder / "runtime"
        for each in (self.home, self.runtime):
            each.mkdir(0o700)
            self.user.own(each)
        self.name, self.env, self.attach_key, self.admin_key = program, env or {}, secrets.token_bytes(32), secrets.token_bytes(32)
        self.life = 0

    def start(self):
        secrets_line = {"uid": UID, "epoch": EPOCH, "attachKey": self.attach_key.hex(), "adminKey": self.admin_key.hex()}
        self.life += 1
        self.program = world.Program(
            self.name, "run", "--port", "0", "--listen", "127.0.0.1", "--runtime-dir", self.runtime, user=self.user,
            log=self.folder / f"executor-{self.life}.log", env={"HOME": str(self.home), **self.env}, told=json.dumps(secrets_line) + "\n")
        said = world.wait_until(lambda: f"the executor serves\n{self.program.output()}", self._serves)
        self.address, self.pid = ["127.0.0.1", int(said[1])], int(said[2])
        self._tell_resumed()
        return self

    def _serves(self):
        assert self.program.alive(), self.program.output()
        return re.search(r" serving .*?port=(\d+).*?pid=(\d+)", self.program.output()) or \
            (lambda found: found and (None, found[2], found[1]))(re.search(r" serving .*?pid=(\d+).*?port=(\d+)", self.program.output()))

    def _tell_resumed(self):
        identity = {"uid": UID, "epoch": EPOCH, "incarnation": 1, "run": RUN}
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/resumed", json.dumps({"identity": identity, "nowMs": int(time.time() * 1000)}),
                               {"Authorization": f"Bearer {self.token('admin', self.admin_key)}"})
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read())

    def token(self, kind="attach", key=None, ceiling="DangerFullAccess"):
        now = int(time.time() * 1000)
        claims = {"kind": kind, "uid": UID, "epoch": EPOCH, "run": RUN, "ceiling": ceiling, "subject": "conformance",
                  "issued": now, "expires": now + TOKEN_S * 1000}
        return signed(claims, key or self.attach_key)

    def told(self):
        """What a driver must know of it."""
        return {"address": self.address, "token": self.token(), "root": "", "home": str(self.home)}

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        self.program.kill() if kind else self.program.stop()


def where(piece):
    found = subprocess.run([world.REPO / "scripts/bootstrap", "where", piece], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr + "run scripts/bootstrap test first"
    return found.stdout.strip()


def root_of(box):
    """Where the files of a sandbox are for us."""
    for group in world.cgroups_named(box):
        for folder, _, _ in os.walk(group):
            pids = (pathlib.Path(folder) / "cgroup.procs").read_text().split()
            if pids:
                return f"/proc/{pids[0]}/root"
    raise AssertionError(f"no process of {box} is there")


@contextlib.contextmanager
def bridge(folder, dsh_built):
    """The providers of clients/dsh, ready to be told; their process knows what no command in the sandbox may."""
    socket = folder / "bridge.sock"
    program = dsh_built / "newer/build/test/bridge.js"
    with world.Program("node", program, socket, log=folder / "bridge.log", ready_file=socket, folder=pathlib.Path(where("node")).parent):
        yield {"socket": str(socket)}


@contextlib.contextmanager
def stage(dsh_built):
    """What the drivers must know of it."""
    os.environ[CANARY] = "never-inside"
    with whole_world() as (provider, controller), controller, world.temporary_folder("conformance") as folder:
        folder.chmod(0o711)
        controller.declare("provider", world.provider_manifest(provider))
        controller.declare("box", world.sandbox_manifest("box"))
        alone = folder / "alone"
        alone.mkdir()
        with AloneExecutor(alone) as executor:
            box = controller.wait_ready("box")["box"]
            inside = {"root": root_of(box), "home": "/home/user"}
            with Agentd(folder / "agentd", controller) as agentd, bridge(folder, pathlib.Path(dsh_built)) as dsh:
                yield {"executor": executor.told(), "agentd": {"socket": str(agentd.socket), **inside}, "dsh": {**dsh, **inside},
                       "manifests": str(controller.manifests), "state": str(controller.state)}
        delete_all(provider, controller, ["box"])


def hold(folder, dsh_built, ctest):
    """Keeps it standing until SIGTERM comes, or `ctest` has ended; says in the file `outcome` how it went."""
    stop_read, stop_write = os.pipe()
    outcome = "clean"
    try:
        with stage(dsh_built) as told:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda *_: os.write(stop_write, b"."))
            staged = folder / "stage.staged"
            staged.write_text(json.dumps(told | {"pid": os.getpid()}))
            staged.rename(folder / "stage.json")
            select.select([stop_read, os.pidfd_open(ctest)], [], [])
    except BaseException:
        outcome = traceback.format_exc()
    (folder / "outcome").write_text(outcome)


def start(folder, dsh_built):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("stage.json", "outcome"):
        (folder / name).unlink(missing_ok=True)
    with open(folder / "stage.log", "wb") as log:
        held = subprocess.Popen([sys.executable, "-B", __file__, "hold", folder, dsh_built, str(os.getppid())],
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    ended = folder / "outcome"
    world.wait_until(lambda: f"the stage\n{(folder / 'stage.log').read_text()}",
                     lambda: (folder / "stage.json").exists() or ended.exists() or held.poll() is not None, START_S)
    if (folder / "stage.json").exists():
        return 0
    print(ended.read_text() if ended.exists() else (folder / "stage.log").read_text())
    return 1


def end(folder):
    """Fails where anything is left of it."""
    told = json.loads((folder / "stage.json").read_text())
    with contextlib.suppress(ProcessLookupError):
        os.kill(told["pid"], signal.SIGTERM)
    world.wait_until("the end of the stage", (folder / "outcome").exists, END_S)
    outcome = (folder / "outcome").read_text()
    print(outcome)
    return 0 if outcome == "clean" else 1


def main(what, folder, *more):
    folder = pathlib.Path(folder)
    if what == "hold":
        world.end_on_signals()
        return hold(folder, more[0], int(more[1]))
    return start(folder, more[0]) if what == "start" else end(folder)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
