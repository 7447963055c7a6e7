"""Wall clocks that are wrong, and are set, while harnesses work: of the controller and of agentd (wall_clock.c), and with them the
tokens that an executor sees. Run one test: clocks.py NAME; without a name: their names."""

import contextlib
import datetime
import os
import pathlib
import struct
import subprocess
import sys
import time

from whole import delete_all, whole_world, world
from harness import Agentd, Harness, new_handle
from world import provider_manifest, sandbox_manifest, sum_of, wait_until

HOUR_S = 3600
OFFSETS = (2 * HOUR_S, 0, -2 * HOUR_S, 0)
CLOCK = pathlib.Path(__file__).resolve().with_name("wall_clock.c")


class WallClock:
    """Of the programs that are started with it."""

    def __init__(self, folder, name):
        self.library, self.file = folder / "wall_clock.so", folder / name
        if not self.library.exists():
            subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self.library, CLOCK], check=True)
        self.file.write_bytes(struct.pack("=q", 0))

    def set(self, ahead_s):
        with open(self.file, "r+b") as file:
            file.write(struct.pack("=q", ahead_s))

    @contextlib.contextmanager
    def given(self):
        ours = {"LD_PRELOAD": str(self.library), "WALL_CLOCK": str(self.file), "ASAN_OPTIONS": "verify_asan_link_order=0"}
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({name: value} if value is not None else {})


class Fleet:
    """A sandbox, somebody who has worked in it for long, and what that must not cost."""

    def __init__(self, provider, controller, agentd):
        self.provider, self.controller, self.agentd = provider, controller, agentd
        self.harness = Harness(agentd.socket).connect()
        self.handle = new_handle()
        self.harness.call("process.spawn", {"handle": self.handle, "argv": ["sleep", "600"], "graceMs": 3000, "stdin": "ignore",
                                            "stdout": "discard", "stderr": "discard"}, mutating=True)
        self.before = self._standing()

    def _standing(self):
        status = self.controller.sandboxes()["box"]["status"]
        return {each: status[each] for each in ("sandboxID", "epoch", "incarnation", "run")}

    def looks(self):
        """How often each of those asked that judge by time."""
        agentd = self.agentd.metrics()
        return (sum_of(agentd, "sandfleet_agentd_asks_total"), len(self.provider.asked_inside(self.before["sandboxID"])))

    def expect_nothing_lost(self, what):
        """Once each has looked some times."""
        before = self.looks()
        wait_until(lambda: f"{what}: looks beyond {before}: {self.looks()}\n{self.story()}",
                   lambda: all(now >= then + 4 for now, then in zip(self.looks(), before)))
        waiting = self.harness.call("process.wait", {"handle": self.handle, "until": "exit", "timeoutMs": 0})
        assert not waiting["reached"], (what, waiting, self.story())
        with Harness(self.agentd.socket) as newcomer:
            newcomer.call("fs.stat", {"path": "/"})
            newcomer.end()
        wait_until(lambda: f"{what}: Ready\n{self.story()}", lambda: self.controller.is_ready("box"))
        assert self._standing() == self.before, (what, self.story())
        (box,) = self.provider.sandboxes().values()
        left_s = datetime.datetime.fromisoformat(box["endAt"]).timestamp() - time.time()
        assert box["state"] == "running" and 100 < left_s < 400, (what, box)

    def expect_to_be_ahead(self, program, offset_s):
        """By its log: it is the clock that was set."""
        said = program.output().splitlines()[-1].split(" ")[0]
        ahead_s = datetime.datetime.fromisoformat(said).timestamp() - time.time()
        assert abs(ahead_s - offset_s) < HOUR_S, (said, ahead_s, offset_s)

    def story(self):
        return f"{self.controller.story()}\n--- agentd\n{self.agentd.program.output()[-4000:]}"


@contextlib.contextmanager
def fleet():
    with whole_world() as (provider, controller), world.temporary_folder("clocks") as folder:
        clocks = [WallClock(folder, name) for name in ("controllers", "agentds")]
        controller.arguments = ("--executor-check-seconds", "1")
        agentd = Agentd(folder, controller, "--check-seconds", "1")
        with clocks[0].given():
            controller.start()
        try:
            controller.declare("provider", provider_manifest(provider))
            controller.declare("box", sandbox_manifest("box"))
            controller.wait_ready("box")
            with clocks[1].given():
                agentd.start()
            of = Fleet(provider, controller, agentd)
            yield of, *clocks
            of.harness.end()
            agentd.program.stop()
            delete_all(provider, controller, ["box"])
            controller.program.stop()
        finally:
            for each in (controller.program, agentd.program):
                if each:
                    each.kill()


def test_wall_clocks_that_jump_cost_nothing():
    with fleet() as (of, controllers, agentds):
        for whose, clock in ((of.agentd, agentds), (of.controller, controllers)):
            for offset_s in OFFSETS:
                clock.set(offset_s)
                of.expect_nothing_lost(f"{whose.program.name} {offset_s:+d} s")
                of.expect_to_be_ahead(whose.program, offset_s)
        assert len(of.harness.welcomes) == 1, of.harness.welcomes


def test_a_controller_that_comes_back_with_a_wrong_clock_replaces_no_executor():
    with fleet() as (of, controllers, _):
        for offset_s in OFFSETS:
            of.controller.program.kill()
            controllers.set(offset_s)
            with controllers.given():
                of.controller.start()
            of.expect_nothing_lost(f"begun with {offset_s:+d} s")
        assert "the clock of an executor differs from ours" in (of.controller.folder / "controller.log").read_text()


if __name__ == "__main__":
    world.need_root()
    world.run_test_named_by(sys.argv[1:], globals())
