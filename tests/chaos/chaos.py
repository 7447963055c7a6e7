"""What all of chaos has in common: a seed, the chain as processes, and what it must not leave behind. A failure says how to have
the same again: SANDFLEET_CHAOS_SEED, and SANDFLEET_CHAOS_ONLY with the part of a schedule's name."""

import asyncio
import contextlib
import os
import pathlib
import random
import secrets
import sys

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "tests/support"), str(REPO / "tests/integration"), str(REPO / "clients/python/src")]
import world  # noqa: E402
from harness import Agentd  # noqa: E402
from whole import delete_all, whole_world  # noqa: E402
from wires import Wires  # noqa: E402

PATIENCE_S = 60
LEASE_S = 15  # Longer than any gap that a test makes, and what it waits for at its end.


def seed_of_this_run():
    """Printed always, so that each run can be had again."""
    seed = int(os.environ.get("SANDFLEET_CHAOS_SEED") or secrets.randbelow(1 << 32))
    print(f"SANDFLEET_CHAOS_SEED={seed}", flush=True)
    return seed


def chance_of(seed, *what):
    """The same for the same schedule, whatever else runs."""
    return random.Random(f"{seed} {' '.join(map(str, what))}")


def is_wanted(name):
    return os.environ.get("SANDFLEET_CHAOS_ONLY", "") in name


def tell(of, *stories, within_s=None):
    """Those that are wanted, one after the other."""
    for story in stories:
        if is_wanted(story.__name__):
            asyncio.run(asyncio.wait_for(story(of), within_s))
            print(story.__name__, flush=True)


async def until(what, check, within_s=PATIENCE_S):
    """The first truthy value of check()."""
    try:
        async with asyncio.timeout(within_s):
            while not (value := check()):
                await asyncio.sleep(0.02)
            return value
    except TimeoutError:
        raise AssertionError(f"not within {within_s} s: {what() if callable(what) else what}") from None


class Chain:
    """Sandboxes that are Ready, agentd, and wires on both hops."""

    def __init__(self, provider, controller, agentd, wires, boxes, seed):
        self.provider, self.controller, self.agentd, self.wires = provider, controller, agentd, wires
        self.boxes, self.seed = boxes, seed
        self.marker = world.Marker()
        self.env = self.marker.env

    @property
    def socket(self):
        return str(self.agentd.socket)

    def state_of(self, box):
        return self.controller.sandboxes()[box]["status"].get("state")

    def executors(self, box=None):
        """Of each sandbox, or of one, the pids of the parent and the child that serves."""
        found, places = {}, {box: self.boxes[box]} if box else self.boxes
        for pid in pids():
            with contextlib.suppress(OSError):
                argv = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if argv[1:2] != [b"run"] or not argv[0].endswith(b"/sandfleet-executor"):
                    continue
                mounts, parent = pathlib.Path(f"/proc/{pid}/mountinfo").read_text(), world.parent_of(pid)
                for name, sandbox_id in places.items():
                    if sandbox_id in mounts:
                        found.setdefault(name, {})[pid] = parent
        # A child has its parent among them.
        return {name: sorted(all_of_it, key=lambda pid: all_of_it[pid] in all_of_it) for name, all_of_it in found.items()}

    def serving(self, box):
        return self.executors(box)[box][-1]


def pids():
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]


def is_alive(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@contextlib.contextmanager
def chain(*names, through_wires=True):
    """Afterwards nothing of it is left."""
    world.end_on_signals()
    world.need_root()
    seed = seed_of_this_run()
    names = names or ("box",)
    with whole_world() as (provider, controller), world.temporary_folder("chaos") as folder, \
            contextlib.closing(Wires(folder)) as wires:
        with controller:
            manifest = world.provider_manifest(provider)
            if through_wires:
                manifest = manifest.replace(provider.data_url, f"http://127.0.0.1:{wires.open_port(provider.ports[1])}")
            controller.declare("provider", manifest)
            for name in names:
                controller.declare(name, world.sandbox_manifest(name))
            boxes = controller.wait_ready(*names, deadline_s=PATIENCE_S)
            with Agentd(folder, controller) as agentd:
                wires.agentd_socket = str(agentd.socket)
                yield Chain(provider, controller, agentd, wires, boxes, seed)
            delete_all(provider, controller, list(names))


class Residue:
    """What agentd and executors hold at rest, to be compared with what they hold after all."""

    def __init__(self, of, *boxes):
        self._chain = of
        self._executors = {box: world.descriptors_of(of.serving(box)) for box in boxes or of.boxes}
        self._agentd = self._of_agentd()

    def _of_agentd(self):
        """Its sockets: all that a link takes."""
        return sum(each.startswith("socket:") for each in world.descriptors_of(self._chain.agentd.program.pid))

    def left(self):
        """What is more than before, in words; empty: nothing."""
        chain, found = self._chain, []
        if marked := chain.marker.processes():
            found.append(f"processes {marked}")
        if (count := self._of_agentd()) > self._agentd:
            found.append(f"{count} sockets of agentd, {self._agentd} before")
        elif links := chain.agentd.metrics()["sandfleet_agentd_links"]:
            found.append(f"{links:g} links of agentd")
        for box, before in self._executors.items():
            now = world.descriptors_of(chain.serving(box))
            if len(now) > len(before):
                found.append(f"descriptors of the executor of {box}: {now}, before {before}")
        return "; ".join(found)

    def wait_for_none(self, lease_s=LEASE_S):
        """Sessions that nobody came back to end with their lease."""
        world.wait_until(lambda: f"nothing is left: {self.left()}", lambda: not self.left(), lease_s + PATIENCE_S, 0.5)
