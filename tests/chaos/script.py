"""A session in parts, which together do a little of everything, such that whatever acted twice, or not at all, shows; and so does a
byte that is missing, doubled or another's."""

import asyncio
import random
import secrets

import sandfleet.connection
import sandfleet.session
from sandfleet import PIPE, Sandbox
from world import programs_folder

PIPED = asyncio.subprocess.PIPE

# More than may go with a request, and than fits into two frames.
CONTENT = random.Random(7).randbytes(150_000)
SIGNALLED = "trap 'echo hit' USR1; echo up; sleep 1000 & while :; do wait; done"


class WasThereBefore(sandfleet.session.Session):
    """Says hello as one whose session is gone, and so hears of that in a notice."""

    def __init__(self, settings):
        super().__init__(settings)
        self._session = secrets.token_hex(16)


sandfleet.connection.Session = WasThereBefore


async def run(part, socket, name, sandbox, env, lease_s):
    """One part to its end; what it meets is what the page of the protocol promises, or this raises."""
    if part == TYPED:
        return await typed(socket, name, sandbox, env)
    notices = []
    async with Sandbox(sandbox, socket=socket, client=name, lease_seconds=lease_s, on_notice=notices.append) as box:
        session = box.welcome.session
        await PARTS[part](box, name, env)
        assert box.welcome.session == session, "another session"
        assert not [each for each in await box.processes() if each.mine], "a handle is left"
    assert [(each.number, each.kind) for each in notices] == [(1, "lost")], notices
    assert not box.quarantined


async def files(box, place, _):
    """Each of these fails, or says something else, when it acts a second time."""
    files = box.files
    assert await files.mkdir(place)
    async with files.watch(place) as changes:
        assert (await files.write(f"{place}/a", "0", if_absent=True)).created
        change = await anext(changes)
        assert (change.kind, change.path) == ("created", "a"), change
    await files.edit(f"{place}/a", "0", "01")
    await files.write(f"{place}/content", CONTENT, if_absent=True)
    assert await files.read_bytes(f"{place}/content") == CONTENT
    await files.rename(f"{place}/a", f"{place}/b", replace=False)
    assert (await files.copy(f"{place}/b", f"{place}/c", replace=False)).bytes == 2
    assert await files.remove(f"{place}/c")
    assert [each.name for each in await files.list(place)] == ["b", "content"]
    assert await files.read_text(f"{place}/b") == "01"
    assert await files.remove(place, recursive=True)


async def command(box, place, env):
    ran = await box.run(["sh", "-c", f"echo ran >> {place}; cat; echo bad >&2; exit 3"], stdin=CONTENT, env=env,
                        max_output_bytes=100_000)
    assert (ran.exit_code, ran.stdout.data, ran.stderr.data) == (3, CONTENT[-100_000:], b"bad\n"), ran
    assert ran.stdout.total_bytes == len(CONTENT) and ran.empty
    assert await box.files.read_text(place) == "ran\n"
    assert await box.files.remove(place)


async def pipes(box, _, env):
    async with await box.spawn(["cat"], stdin=PIPE, env=env) as cat:
        async def fill():
            await cat.stdin.write(CONTENT)
            cat.stdin.close()
        filling = asyncio.create_task(fill())
        assert await cat.stdout.read() == CONTENT
        await filling
        assert (await cat.wait("empty")).exit_code == 0


async def signals(box, _, env):
    async with await box.spawn(["sh", "-c", SIGNALLED], env=env) as trap:
        told = aiter(trap.stdout)
        assert (await anext(told)).data == b"up\n"
        assert await trap.signal("SIGUSR1", to="leader")
        assert (await anext(told)).data == b"hit\n"
        await trap.terminate()
        assert [each.data async for each in told] == []
        assert (await trap.wait("empty")).signal == "SIGTERM"


async def taking_over(box, _, env):
    async with await box.spawn(["cat"], stdin=PIPE, env=env) as cat:
        await cat.stdin.write(b"one")
        assert (await anext(aiter(cat.stdout))).data == b"one"
        again = await box.attach(cat.handle, stdin=True, stdout_from=3)
        await again.stdin.write(b"two")
        again.stdin.close()
        assert await again.stdout.read() == b"two"
        await cat.wait("empty")


async def archives(box, place, _):
    await box.files.write(f"{place}/content", CONTENT, if_absent=True)
    archive = b"".join([piece async for piece in box.archive(place)])
    report = await box.extract(archive, f"{place}-again")
    assert report["files"] == 1, report
    assert await box.files.read_bytes(f"{place}-again/content") == CONTENT
    for each in (place, f"{place}-again"):
        assert await box.files.remove(each, recursive=True)


async def terminal(box, _, env):
    async with await box.terminal(["sh", "-c", "read line; stty size; echo \"got $line\"; exit 4"], env=env) as shell:
        await shell.resize(20, 50)
        await shell.stdin.write(b"typed\n")
        shown = await shell.stdout.read()
        assert shown == b"typed\r\n20 50\r\ngot typed\r\n", shown
        assert (await shell.wait("empty")).exit_code == 4


PARTS = {each.__name__: each for each in (files, command, pipes, signals, taking_over, archives, terminal)}


async def long_output(box, _, env):
    async with await box.spawn(["seq", "1", "300000"], env=env) as counting:
        assert await counting.stdout.read() == b"".join(b"%d\n" % number for number in range(1, 300_001))
        assert (await counting.wait("empty")).exit_code == 0


async def long_write(box, place, _):
    content = CONTENT * 30
    await box.files.write(place, content, if_absent=True)
    assert b"".join([piece async for piece in box.files.stream(place)]) == content
    assert await box.files.remove(place)


TYPED = "typed"
EXEC = "echo ran >> $1; cat; echo bad >&2; [ $(wc -l < $1) = 1 ] && rm $1 && exit 7"


async def typed(socket, name, sandbox, env):
    """A command as people type it; the command line has a client of its own."""
    words = ["exec", "-i", "--socket", socket, *(f"--env={key}={value}" for key, value in env.items()), sandbox, "--"]
    process = await asyncio.create_subprocess_exec(programs_folder() / "sandfleet", *words, "sh", "-c", EXEC, "sh", name,
                                                   stdin=PIPED, stdout=PIPED, stderr=PIPED)
    try:
        out, errors = await process.communicate(CONTENT)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, out == CONTENT, errors) == (7, True, b"bad\n"), (process.returncode, len(out), errors)


# More of what takes its time, and so is met in its midst.
PARTS |= {each.__name__: each for each in (long_output, long_write)}
SHORT_PARTS = [name for name in PARTS if not name.startswith("long")]
