"""Where the cases take place, for as long as a run of ctest: an executor alone on this machine, and a sandbox with a controller,
agentd and dsh's providers in front of it. `stage.py start FOLDER DSH_BUILT` sets it up and leaves it standing until `stage.py end
FOLDER`, or until whoever started it (ctest) is gone."""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import traceback

from alone import alone_executor
import world
from harness import Agentd
from own import HOME, root_of
from whole import delete_all, whole_world

START_S, END_S = 120, 90
CANARY = "SANDFLEET_HOST_CANARY"  # In the environment of all that runs on the host, and of nothing in a sandbox.


@contextlib.contextmanager
def bridge(folder, dsh_built):
    """The providers of clients/dsh, ready to be told; their process knows what no command in the sandbox may."""
    socket = folder / "bridge.sock"
    program = dsh_built / "newer/build/test/bridge.js"
    with world.Program("node", program, socket, log=folder / "bridge.log", ready_file=socket, folder=world.where("node").parent):
        yield {"socket": str(socket)}


@contextlib.contextmanager
def stage(dsh_built):
    """What the drivers must know of it."""
    os.environ[CANARY] = "never-inside"
    with whole_world() as (provider, controller), controller, world.temporary_folder("conformance") as folder:
        controller.declare("provider", world.provider_manifest(provider))
        controller.declare("box", world.sandbox_manifest("box"))
        with alone_executor() as executor:
            box = controller.wait_ready("box")["box"]
            inside = {"root": root_of(box), "home": HOME}
            with Agentd(folder / "agentd", controller) as agentd, bridge(folder, pathlib.Path(dsh_built)) as dsh:
                yield {"executor": executor.told(), "agentd": {"socket": str(agentd.socket), **inside}, "dsh": {**dsh, **inside},
                       "controller": str(controller.folder)}
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
    world.need_root()
    if what == "hold":
        world.end_on_signals()
        return hold(folder, more[0], int(more[1]))
    return start(folder, more[0]) if what == "start" else end(folder)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
