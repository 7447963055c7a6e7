"""Two hundred sessions through one agentd, into several sandboxes; and some among them that do not read. Run one test: crowd.py
NAME; without a name: their names."""

import asyncio
import contextlib
import sys

import chaos
import script
from chaos import LEASE_S, PATIENCE_S, Residue, chain, chance_of, until
from sandfleet import PIPE, Sandbox
from wires import EXECUTOR

BOXES = [f"box-{number}" for number in range(5)]  # One subject has 48 sessions in each, at most.
SESSIONS = 200
SLOW = 8  # In each sandbox, of which each holds what nobody reads of these:
SLOW_PARTS = ("yes", "cat /dev/zero", "seq 1 100000000")
CUTS = 5
MEMORY_BYTES = 64 << 20  # What all that is not read may cost agentd.


async def all_at_once(of):
    """Each is exact, also where all links to executors are cut meanwhile."""
    chance = chance_of(of.seed, "crowd")
    opened = 0
    everybody = asyncio.Event()

    async def one(number):
        nonlocal opened
        part, box = chance.choice(script.SHORT_PARTS), BOXES[number % len(BOXES)]
        name = f"crowd-{number}-{part}"
        async with Sandbox(f"default/{box}", socket=of.socket, client=name, lease_seconds=2 * PATIENCE_S) as opens:
            opened += 1
            if opened == SESSIONS:
                everybody.set()
            await everybody.wait()
            await script.PARTS[part](opens, name, of.env)

    async def cut():
        await everybody.wait()
        assert of.agentd.metrics()["sandfleet_agentd_links"] == SESSIONS
        for _ in range(CUTS):
            enough = of.wires.plan.frames + chance.randrange(500, 1500)
            await until(f"{enough} frames", lambda enough=enough: of.wires.plan.frames >= enough)
            of.wires.cut_all(EXECUTOR)

    async with asyncio.timeout(2 * PATIENCE_S), asyncio.TaskGroup() as group:
        for number in range(SESSIONS):
            group.create_task(one(number))
        group.create_task(cut())


async def slow_readers(of):
    """They stall nobody: others get to the end of their work while nothing of theirs is read."""
    async with contextlib.AsyncExitStack() as stack:
        slow = []
        for number in range(SLOW * len(BOXES)):
            box = await stack.enter_async_context(
                Sandbox(f"default/{BOXES[number % len(BOXES)]}", socket=of.socket, client=f"slow-{number}"))
            argv = ["sh", "-c", SLOW_PARTS[number % len(SLOW_PARTS)]]
            process = await stack.enter_async_context(await box.spawn(argv, stdin=PIPE, env=of.env))
            slow.append((box, process))
        # One of them reads nothing of its socket either.
        stalled = slow[0][0]._connection._link._line.transport
        stalled.pause_reading()
        before = of.agentd.metrics()["process_resident_memory_bytes"]
        async with asyncio.timeout(2 * PATIENCE_S), asyncio.TaskGroup() as group:
            for number in range(2 * len(BOXES)):
                for part in script.SHORT_PARTS:
                    name = f"fast-{number}-{part}"
                    group.create_task(script.run(part, of.socket, name, f"default/{BOXES[number % len(BOXES)]}", of.env, LEASE_S))
        # The same sessions, too: what they ask besides is answered.
        async with asyncio.timeout(PATIENCE_S):
            for box, _ in slow[1:]:
                assert await box.files.stat(".")
        after = of.agentd.metrics()["process_resident_memory_bytes"]
        assert after < before + MEMORY_BYTES, (before, after)
        stalled.resume_reading()
        async with asyncio.timeout(PATIENCE_S):
            first = await anext(aiter(slow[0][1].stdout))
        assert first.offset == 0 and first.data.startswith(b"y\ny\n"), first


def test_two_hundred_sessions_are_exact_and_slow_ones_stall_nobody():
    with chain(*BOXES) as of:
        residue = Residue(of)
        chaos.tell(of, all_at_once, slow_readers)
        residue.wait_for_none()


if __name__ == "__main__":
    chaos.world.run_test_named_by(sys.argv[1:], globals())
