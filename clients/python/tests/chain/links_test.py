"""A session over links that break: with a cutter in between, and with agentd killed."""

import asyncio
import random
import secrets

import pytest

from sandfleet import PIPE, RemoteError, Sandbox

SEED = 7


async def work(box, content):
    """Everything at once, each with a result that is known."""

    async def writes(number):
        await box.files.write(f"cut/{number}", content[number:])
        assert await box.files.read_bytes(f"cut/{number}") == content[number:]

    async def edits():
        await box.files.write("cut/edited", "0")
        for number in range(20):
            assert (await box.files.edit("cut/edited", str(number), str(number + 1))).replacements == 1
        assert await box.files.read_text("cut/edited") == "20"

    async def runs(number):
        result = await box.run(["sh", "-c", f"cat; exit {number}"], stdin=content[:200_000])
        assert (result.exit_code, result.stdout.data) == (number, content[:200_000])

    async def pipes():
        async with await box.spawn(["cat"], stdin=PIPE) as cat:

            async def fill():
                await cat.stdin.write(content)
                cat.stdin.close()

            filling = asyncio.create_task(fill())
            assert await cat.stdout.read() == content
            await filling
            assert (await cat.wait("empty")).exit_code == 0

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(writes(number))
            group.create_task(runs(number))
        group.create_task(edits())
        group.create_task(pipes())


async def test_whatever_is_cut_costs_nothing(chain, cutter):
    content, chance = secrets.token_bytes(1_500_000), random.Random(SEED)
    async with cutter, Sandbox("default/box", socket=cutter.path) as box:
        session = box.welcome.session
        cutter.cut_after(chance.randrange(1, 700_000) for _ in range(40))
        await work(box, content)
        assert cutter.cuts >= 8, cutter.cuts
        assert box.welcome.session == session and box.welcome.resumed
        cutter.cut_after([1 << 40])


async def test_an_agentd_that_is_killed_costs_nothing(chain, eventually):
    content = secrets.token_bytes(1_500_000)
    async with Sandbox("default/box", socket=chain.socket) as box:
        session = box.welcome.session
        working = asyncio.create_task(work(box, content))
        for _ in range(3):
            await asyncio.wait([working], timeout=0.3)
            before = box.welcome
            chain.agentd.program.kill()
            chain.agentd.start()  # It ends with the thread that starts it.
            await eventually("it is linked again", lambda before=before: box.welcome is not before)
        await working
        assert box.welcome.session == session and box.welcome.resumed


async def test_a_command_goes_on_after_a_pause(chain, eventually):
    def state():
        return chain.controller.sandboxes()["box"]["status"].get("state")

    async with Sandbox("default/box", socket=chain.socket) as box:
        session = box.welcome.session
        async with await box.spawn(["cat"], stdin=PIPE) as cat:
            await asyncio.to_thread(chain.controller.cli, "pause", "box")
            await eventually("it is paused", lambda: state() == "Paused")
            waiting = asyncio.create_task(box.files.stat("."))
            await asyncio.to_thread(chain.controller.cli, "resume", "box")
            assert (await waiting).type == "directory"
            await cat.stdin.write(b"after")
            cat.stdin.close()
            assert await cat.stdout.read() == b"after"
        assert box.welcome.session == session and not box.quarantined


async def test_a_server_that_breaks_the_protocol_ends_the_session_and_nothing_else(chain, cutter, eventually):
    async with cutter, Sandbox("default/box", socket=cutter.path) as box:
        session = box.welcome.session
        sleeper = await box.spawn(["sleep", "300"])
        waiting = asyncio.create_task(sleeper.wait())
        await asyncio.sleep(0)
        cutter.spoil()
        with pytest.raises(RemoteError):
            await waiting
        await eventually("there is another session", lambda: box.welcome.session != session)

        while (await box.run(["kill", "-0", str(sleeper.pid)])).exit_code == 0:
            pass
