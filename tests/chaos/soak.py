"""What takes long, by `make soak`: a gibibyte each way, a hundred thousand files, and chaos for SANDFLEET_SOAK_MINUTES (10) with a
seed that is told. Programs are release builds, since memory is measured."""

import asyncio
import contextlib
import hashlib
import os
import pathlib
import time

import chaos
import script
from chaos import PATIENCE_S, Residue, chain, chance_of, until
from cuts import Run, many_cuts
from kills import the_sandbox_is_paused_once
from sandfleet import PIPE, Collect, Sandbox
import world
from wires import EXECUTOR, HARNESS

MIB = 1 << 20
BYTES = 1 << 30
FILES, FOLDERS = 100_000, 100
SPARE_BYTES = 16 * MIB  # What agentd and an executor may take beyond what was asked for.
TAIL_BYTES = 8 * MIB
SESSIONS = 16


def tell(*what):
    print(f"{time.strftime('%H:%M:%S')}", *what, flush=True)


class Memory:
    """The most that agentd and the executor had at once, beyond what they had at first."""

    def __init__(self, of):
        self._pids = {"agentd": of.agentd.program.pid, "executor": of.serving("box")}

    @staticmethod
    def _of(pid, field):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(field)).split()[1]) << 10

    @contextlib.contextmanager
    def bounded(self, what, asked_bytes=0):
        for pid in self._pids.values():
            pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")  # The peak begins anew.
        before = {name: self._of(pid, "VmRSS:") for name, pid in self._pids.items()}
        began = time.monotonic()
        yield
        grown = {name: self._of(pid, "VmHWM:") - before[name] for name, pid in self._pids.items()}
        told = ", ".join(f"{name} +{grew / MIB:.1f} MiB" for name, grew in grown.items())
        tell(f"{what}: {time.monotonic() - began:.1f} s; {told}")
        assert all(grew <= asked_bytes + SPARE_BYTES for grew in grown.values()), (what, grown)


async def a_gibibyte(of, memory):
    async with Sandbox("default/box", socket=of.socket, client="gibibyte") as box:
        zeros = hashlib.sha256(bytes(MIB) * (BYTES // MIB)).hexdigest()
        with memory.bounded("1 GiB of a command's output"):
            async with await box.spawn(["head", "-c", str(BYTES), "/dev/zero"], env=of.env) as head:
                digest = hashlib.sha256()
                async for piece in head.stdout:
                    digest.update(piece.data)
            assert digest.hexdigest() == zeros
        with memory.bounded("1 GiB of a command's input"):
            async with await box.spawn(["sha256sum"], stdin=PIPE, env=of.env) as summing:
                for _ in range(BYTES // MIB):
                    await summing.stdin.write(bytes(MIB))
                summing.stdin.close()
                assert (await summing.stdout.read()).decode().split()[0] == zeros
        with memory.bounded(f"1 GiB of output, of which {TAIL_BYTES // MIB} MiB are kept", TAIL_BYTES):
            async with await box.spawn(["head", "-c", str(BYTES), "/dev/zero"], stdout=Collect(TAIL_BYTES), env=of.env) as head:
                assert (await head.wait("settled")).stdout.bytes == BYTES
                began, data = await head.read("stdout")
                assert (began, len(data)) == (BYTES - TAIL_BYTES, TAIL_BYTES)
        assert (await box.run(["truncate", "-s", str(BYTES), "large"])).ok
        with memory.bounded("1 GiB of a file"):
            digest = hashlib.sha256()
            async for piece in box.files.stream("large"):
                digest.update(piece)
            assert digest.hexdigest() == zeros
        await box.files.remove("large")


MANY_FILES = """\
mkdir many && cd many
for folder in $(seq 1 $1); do mkdir $folder && (cd $folder && seq 1 $2 | split -l 1 -a 4 -); done
"""


async def a_hundred_thousand_files(of, memory):
    async with Sandbox("default/box", socket=of.socket, client="files", ripgrep=world.where("rg")) as box:
        assert (await box.run(["sh", "-c", MANY_FILES, "sh", str(FOLDERS), str(FILES // FOLDERS)])).ok
        with memory.bounded(f"{FILES} files listed as a tree"):
            assert len([None async for each in box.files.tree("many") if each.type == "file"]) == FILES
        with memory.bounded("the same found by a glob"):
            found = await box.search.glob("many", ["*"], found_max=1_000_000, bytes_max=64 << 20)
            assert len(set(found.paths)) == found.summary.found == FILES
        with memory.bounded("the same out as an archive"):
            archive = b"".join([piece async for piece in box.archive("many")])
        with memory.bounded("the same in again"):
            report = await box.extract(archive, "again")
            assert report["files"] == FILES, report
        assert (await box.run(["diff", "-r", "many", "again"])).ok
        for each in ("many", "again"):
            with memory.bounded("the same removed"):
                assert await box.files.remove(each, recursive=True)


class Disturbing:
    """One thing after the other that happens to the chain while sessions work, as chance has it."""

    def __init__(self, of):
        self.of, self.chance, self.counts = of, chance_of(of.seed, "soak"), {}
        self._ways = {self.kill_agentd: 4, self.kill_controller: 2, self.kill_provider: 2, self.cut_harnesses: 6,
                      self.cut_executors: 6, self.pause: 1}

    async def once(self):
        way = self.chance.choices(list(self._ways), list(self._ways.values()))[0]
        await way()
        self.counts[way.__name__] = self.counts.get(way.__name__, 0) + 1

    async def kill_agentd(self):
        self.of.agentd.program.kill()
        self.of.agentd.start()

    async def kill_controller(self):
        self.of.controller.program.kill()
        self.of.controller.start()

    async def kill_provider(self):
        self.of.provider.program.kill()
        self.of.provider.start()

    async def cut_harnesses(self):
        self.of.wires.cut_all(HARNESS, self.chance.random() < 0.5)

    async def cut_executors(self):
        self.of.wires.cut_all(EXECUTOR, self.chance.random() < 0.5)

    async def pause(self):
        await asyncio.to_thread(self.of.controller.wait_ready, "box", deadline_s=PATIENCE_S)
        await the_sandbox_is_paused_once(self.of)


async def at_random(of, minutes):
    """Sessions one after the other in so many places, each with cuts of its own; and now and then something that happens to all."""
    run, disturbing, over = Run(of, SESSIONS), Disturbing(of), time.monotonic() + 60 * minutes
    run.patience_s = 4 * PATIENCE_S

    async def place(number):
        chance = chance_of(of.seed, "soak", number)
        while time.monotonic() < over and not run.failures:
            cuts = many_cuts(chance) if chance.random() < 0.5 else []
            await run.one(chance.choice(list(script.PARTS)), cuts)

    async def disturb():
        told = 0
        while time.monotonic() < over and not run.failures:
            enough = of.wires.plan.frames + disturbing.chance.randrange(200, 5000)
            await until(f"{enough} frames", lambda: of.wires.plan.frames >= enough or time.monotonic() > over or run.failures)
            await disturbing.once()
            if time.monotonic() > told + 10:
                told = time.monotonic()
                tell(f"{run.done} sessions, {of.wires.plan.happened} cuts, {disturbing.counts}")

    async with asyncio.TaskGroup() as group:
        for number in range(SESSIONS):
            group.create_task(place(number))
        group.create_task(disturb())
    run.verdict()
    tell(f"{run.done} sessions, {of.wires.plan.happened} cuts, {disturbing.counts}")


def main():
    with chain() as of:
        for story in (a_gibibyte, a_hundred_thousand_files):
            if chaos.is_wanted(story.__name__):
                asyncio.run(story(of, Memory(of)))
        if chaos.is_wanted(at_random.__name__):
            residue = Residue(of)
            asyncio.run(at_random(of, float(os.environ.get("SANDFLEET_SOAK_MINUTES", "10"))))
            residue.wait_for_none()
            tell("nothing is left")


if __name__ == "__main__":
    main()
