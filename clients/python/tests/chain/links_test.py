"""A session over links that break: with a cutter in between, and with agentd killed."""

import asyncio
import random
import secrets

import pytest

from sandfleet import PIPE, RemoteError, Sandbox
from sandfleet.link import is_final

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


async def test_a_token_that_is_not_there_when_a_link_is_dialled_again_costs_nothing(chain, cutter, tmp_path, caplog, eventually):
    token = tmp_path / "token"
    token.write_text("some.token\n")
    caplog.set_level("INFO", "sandfleet")
    async with cutter, Sandbox("default/box", socket=cutter.path, token_file=token) as box:
        session = box.welcome.session
        for spoil in (lambda: token.write_text(""), token.unlink):
            caplog.clear()
            spoil()
            cutter.cut()
            asked = asyncio.create_task(box.files.stat("."))
            await eventually("it misses its token", lambda: "its token cannot be read" in caplog.text)
            token.write_text("some.token\n")
            assert (await asked).type == "directory"
        assert box.welcome.session == session
        token.write_text("of nobody \u00e9")
        cutter.cut()
        with pytest.raises(RemoteError, match=r"its token cannot be read: .*holds no token"):
            await box.files.stat(".")


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
async def test_a_token_that_never_was_there_is_told_at_once(chain, tmp_path, content):
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    with pytest.raises(RemoteError, match="its token cannot be read: "):
        await Sandbox("default/box", socket=chain.socket, token_file=token).open()


def test_who_is_refused_a_token_does_not_wait_for_it():
    for error, first, later in (
        (FileNotFoundError(), True, False),
        (NotADirectoryError(), True, False),
        (PermissionError(), True, True),
        (ValueError(), True, True),
        (OSError(), False, False),
    ):
        assert (is_final(error, False), is_final(error, True)) == (first, later), error
