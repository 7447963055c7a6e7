"""Names that are no text, disks that are full or cannot be written, and pids that are somebody else's by now. Run one test:
disk.py NAME; without a name: their names."""

import asyncio
import contextlib
import os
import subprocess
import sys

import chaos
from chaos import LEASE_S, PATIENCE_S, Residue, chain, chance_of
from sandfleet import PIPE, RemoteError, Sandbox

NAMES = [b"two\nlines", b"\n", b" ", b"tab\there", b"quote'\"s", b"back\\slash", b"-rf", b"$(id)", b"{\"b64\": \"x\"}",
         b"\xff\xfe not text", b"half \xe2\x82", "snow \N{SNOWMAN}".encode(), b"n" * 255, b"\x01\x7f"]
NO_SPACE = ("FS_IO_ERROR", "No space left on device")
SMALL_BYTES = 2 << 20
LARGE = chance_of(7, "large").randbytes(2 * SMALL_BYTES)


def in_mounts_of(of, *argv):
    """As this machine's root, where the sandbox's executor sees the world."""
    enter = ["nsenter", "-t", str(of.serving("box")), "-m", "-p", "--"]
    done = subprocess.run([*enter, *argv], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{argv}: {done}"
    return done.stdout


def user_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(next(line for line in status if line.startswith("Uid:")).split()[1])


@contextlib.contextmanager
def mounted(of, place, options):
    user = user_of(of.serving("box"))
    in_mounts_of(of, "mount", "-t", "tmpfs", "-o", f"uid={user},gid={user},{options}", "chaos", place)
    try:
        yield
    finally:
        in_mounts_of(of, "umount", "-l", place)


def used_bytes(of, place):
    return int(in_mounts_of(of, "df", "--output=used", "-B1", place).split()[-1])


@contextlib.asynccontextmanager
async def refused(code, *words):
    try:
        yield
    except RemoteError as failure:
        assert failure.code == code and all(word in str(failure) for word in words), failure
    else:
        raise AssertionError(f"not refused with {code}")


def opened(of, name):
    return Sandbox("default/box", socket=of.socket, client=name, lease_seconds=LEASE_S)


async def names_that_are_no_text(of):
    async with opened(of, "names") as box:
        for name in NAMES:
            folder, file = b"odd/" + name, b"odd/" + name + b"/" + name
            await box.files.write(file, b"in " + name)
            assert await box.files.read_bytes(file) == b"in " + name
            assert [os.fsencode(each.name) for each in await box.files.list(folder)] == [name]
            ran = await box.run(["cat", "--", name], cwd=folder, env=of.env)
            assert ran.stdout.data == b"in " + name, ran
            async with box.files.watch(folder) as changes:
                await box.files.rename(file, folder + b"/x")
                assert os.fsencode((await anext(changes)).path) in (name, b"x")
            await box.files.copy(folder + b"/x", file)
        listed = sorted(os.fsencode(each.name) for each in await box.files.list("odd"))
        assert listed == sorted(NAMES), listed
        archive = b"".join([piece async for piece in box.archive("odd")])
        await box.extract(archive, b"again\n\xff")
        tree = [os.fsencode(each.name) async for each in box.files.tree(b"again\n\xff")]
        assert set(tree) == {part for name in NAMES for part in (name, name + b"/" + name, name + b"/x")}, tree
        for each in ("odd", b"again\n\xff"):
            assert await box.files.remove(each, recursive=True)


async def a_disk_that_is_full(of):
    async with opened(of, "full") as box:
        await box.files.write("large/a", LARGE)
        await box.files.write("large/b", "small")
        archive = b"".join([piece async for piece in box.archive("large")])
        await box.files.mkdir("full")
        with mounted(of, f"{box.cwd}/full", f"size={SMALL_BYTES}"):
            await box.files.write("full/kept", "as it was")
            before = used_bytes(of, f"{box.cwd}/full")
            for target in ("full/new", "full/kept", "full/deep/new"):
                async with refused(*NO_SPACE):
                    await box.files.write(target, LARGE)
            async with refused(*NO_SPACE):
                await box.files.edit("full/kept", "it", LARGE[:SMALL_BYTES].hex())
            for target, source in (("full/copy", "large/a"), ("full/copies", "large")):
                async with refused(*NO_SPACE):
                    await box.files.copy(source, target, recursive=True)
            async with refused(*NO_SPACE):
                await box.extract(archive, "full/out")
            assert [each.name for each in await box.files.list("full")] == ["kept"]
            assert await box.files.read_text("full/kept") == "as it was"
            assert used_bytes(of, f"{box.cwd}/full") == before, "something is left aside"
            # Many at once, of which each fits alone: those that are there are whole.
            piece = LARGE[:SMALL_BYTES // 3]
            writes = [box.files.write(f"full/{number}", piece) for number in range(8)]
            ended = await asyncio.gather(*writes, return_exceptions=True)
            assert {each.code for each in ended if isinstance(each, RemoteError)} == {"FS_IO_ERROR"}, ended
            there = [each.name for each in await box.files.list("full") if each.name != "kept"]
            assert there == [str(number) for number, each in enumerate(ended) if not isinstance(each, Exception)], (there, ended)
            for name in there:
                assert await box.files.read_bytes(f"full/{name}") == piece
                await box.files.remove(f"full/{name}")
            # In a folder that is there, an archive's files that fit stay.
            async with refused(*NO_SPACE):
                await box.extract(archive, "full")
            assert "a" not in [each.name for each in await box.files.list("full")]
            await box.files.write("full/again", piece)
            assert await box.files.read_bytes("full/again") == piece
        assert await box.files.remove("large", recursive=True) and await box.files.remove("full")


async def no_room_for_what_the_executor_keeps(of):
    """Spills, and the tool that it is sent."""
    async with opened(of, "kept") as box:
        async def spill():
            ran = await box.run(["seq", "1", "400000"], max_output_bytes=100, spill_bytes=1 << 24, env=of.env)
            assert ran.ok and ran.stdout.data.endswith(b"\n400000\n") and ran.stdout.truncated, ran
            return ran.stdout.spill_path

        whole = await spill()
        assert len(await box.files.read_bytes(whole)) > SMALL_BYTES
        place = os.path.dirname(whole)
        with mounted(of, place, f"mode=700,size={SMALL_BYTES}"):
            assert await spill() is None
            assert used_bytes(of, place) == 0, "a part of it is left"
        assert await box.files.exists(await spill())
        tool = await box._asking.call("tool.find", name="rg")
        place = f"{os.path.dirname(place)}/tools"
        user = str(user_of(of.serving("box")))
        in_mounts_of(of, "install", "-d", "-m", "700", "-o", user, "-g", user, place)

        async def put():
            content = LARGE + LARGE[:tool["bytes"] - len(LARGE)]
            await box._asking.call("tool.put", content, mutating=True, name="rg", sha256=tool["sha256"])
        with mounted(of, place, f"mode=700,size={SMALL_BYTES}"):
            async with refused(*NO_SPACE):
                await put()
            assert used_bytes(of, place) == 0, "a part of it is left"
        async with refused("INVALID", "not the rg"):
            await put()
        assert not in_mounts_of(of, "ls", "-A", place)


async def a_disk_that_cannot_be_written(of):
    async with opened(of, "read-only") as box:
        await box.files.mkdir("ro")
        archive = b"".join([piece async for piece in box.archive("ro")])
        with mounted(of, f"{box.cwd}/ro", f"size={SMALL_BYTES}"):
            await box.files.write("ro/there", "as it was")
            in_mounts_of(of, "mount", "-o", "remount,ro", f"{box.cwd}/ro")
            files = box.files
            for change in (files.write("ro/new", "x"), files.write("ro/there", "x"), files.edit("ro/there", "it", "x"),
                           files.mkdir("ro/d"), files.remove("ro/there"), files.rename("ro/there", "ro/else"),
                           files.copy("ro/there", "ro/copy"), box.extract(archive, "ro/out"), box.extract(archive, "ro")):
                async with refused("FS_PERMISSION_DENIED"):
                    await change
            assert await box.files.read_text("ro/there") == "as it was"
            assert (await box.run(["cat", "there"], cwd="ro", env=of.env)).stdout.data == b"as it was"
            assert b"".join([piece async for piece in box.archive("ro")])
            in_mounts_of(of, "mount", "-o", "remount,rw", f"{box.cwd}/ro")
            await box.files.edit("ro/there", "as it was", "again")
        assert await box.files.remove("ro")


TAKE_PID = """\
mount -t proc proc /proc && echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid
setpriv --reuid=$2 --regid=$2 --clear-groups sleep 1000 &
echo $!
"""


@contextlib.contextmanager
def stranger(of, pid):
    """A process of the sandbox's user, whom nobody of ours has started, and whose pid there is this one."""
    serving = of.serving("box")
    user = user_of(serving)
    for _ in range(200):  # Another may have come between.
        shell = ["nsenter", "-t", str(serving), "-p", "unshare", "-m", "sh", "-c", TAKE_PID, "sh", str(pid), str(user)]
        with subprocess.Popen(shell, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
            got = int(process.stdout.readline())
            process.stdout.close()
            found = chaos.world.wait_until("the stranger", lambda got=got: as_seen_outside(got, serving))
            try:
                if got == pid:
                    chaos.world.wait_until(f"{found} is of user {user}", lambda found=found: user_of(found) == user)
                    yield found
                    return
            finally:
                os.kill(found, 9)
    raise AssertionError(f"pid {pid} was always another's")


def as_seen_outside(pid, neighbour):
    """The pid here of whoever has that one in the namespace of another."""
    for each in chaos.pids():
        with contextlib.suppress(OSError):
            with open(f"/proc/{each}/status", encoding="utf-8", errors="replace") as status:
                inside = int(next(line for line in status if line.startswith("NSpid:")).split()[-1])
            if inside == pid and os.readlink(f"/proc/{each}/ns/pid") == os.readlink(f"/proc/{neighbour}/ns/pid"):
                return each
    return None


async def a_pid_that_is_anothers_by_now(of):
    """Whatever is asked of a handle whose command has ended, and however the session goes, the stranger lives."""
    async def ended(box, way):
        process = await (box.terminal(["sleep", "1000"], env=of.env) if way == "terminal" else
                         box.spawn(["sleep", "1000"], stdin=PIPE, env=of.env))
        await process.signal("SIGKILL", to="leader")
        await process.wait("exit" if way == "at once" else "empty")
        return process

    for way in ("at once", "group", "terminal"):
        async with opened(of, f"reused-{way[0]}") as box:
            process = await ended(box, way)
            with stranger(of, process.pid) as pid:
                assert (await box.run(["kill", "-0", str(process.pid)])).ok, "its user may not signal it anyway"
                for to in ("leader", "group", "tree"):
                    assert not await process.signal("SIGKILL", to=to)
                await process.terminate(0.01)
                await process.wait("empty")
                await process.release()
                assert chaos.is_alive(pid), "a signal meant for another hit a stranger"
    box = await opened(of, "reused-end").open()
    process = await ended(box, "group")
    with stranger(of, process.pid) as pid:
        await box.close()
        async with opened(of, "reused-after") as after:
            assert await after.files.stat(".")
        assert chaos.is_alive(pid), "the end of a session hit a stranger"


STORIES = (names_that_are_no_text, a_disk_that_is_full, no_room_for_what_the_executor_keeps, a_disk_that_cannot_be_written,
           a_pid_that_is_anothers_by_now)


def test_odd_names_full_disks_and_pids_of_others_harm_nobody():
    with chain(through_wires=False) as of:
        residue = Residue(of)
        chaos.tell(of, *STORIES, within_s=PATIENCE_S)
        residue.wait_for_none()


if __name__ == "__main__":
    chaos.world.run_test_named_by(sys.argv[1:], globals())
