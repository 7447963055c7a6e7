"""A sandbox that is nobody else's, for a case that harms it."""

import contextlib
import os
import pathlib
import secrets
import signal

import world
from ground import Ground

HOME = "/home/user"


class OwnSandbox:
    def __init__(self, stage):
        self.controller, self.name = world.Controller(stage["controller"]), f"own-{secrets.token_hex(4)}"
        self.title = f"default/{self.name}"
        self.controller.declare(self.name, world.sandbox_manifest(self.name))
        self.box = self.controller.wait_ready(self.name)[self.name]

    def ground(self):
        return Ground(root_of(self.box), HOME)

    def has_open(self, folder):
        """Whether one of its processes has something in there open, as what has no name yet."""
        return any(f"{folder}/" in each for pid in pids_of(self.box) for each in world.descriptors_of(pid))

    def crash_executor(self):
        """Kills the process that serves; its parent starts the next one."""
        executors = {pid: world.parent_of(pid) for pid in pids_of(self.box)
                     if b"--runtime-dir" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()}
        serving, = (pid for pid, parent in executors.items() if parent in executors)
        os.kill(serving, signal.SIGKILL)

    def delete(self):
        (self.controller.manifests / f"{self.name}.yaml").unlink(missing_ok=True)


def pids_of(box):
    """Of all that runs in a sandbox."""
    for group in world.cgroups_named(box):
        for folder, _, _ in os.walk(group):
            yield from map(int, (pathlib.Path(folder) / "cgroup.procs").read_text().split())


def root_of(box):
    """Where the files of a sandbox are for us."""
    pid = next(pids_of(box), None)
    assert pid, f"no process of {box} is there"
    return f"/proc/{pid}/root"


@contextlib.contextmanager
def own_sandbox(stage):
    own = OwnSandbox(stage)
    try:
        yield own
    finally:
        own.delete()
    world.wait_until(f"nothing is left of {own.name}", lambda: own.name not in own.controller.sandboxes(), 60)
