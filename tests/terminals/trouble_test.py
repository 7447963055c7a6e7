"""What goes wrong at terminals: those who stay behind, odd sizes, garbage, output that nobody reads, links that break."""

import asyncio
import random

import pytest
from person import PROMPT, SHELL, Person, sit_down, until

DAEMON = """import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 256)
time.sleep(1000)
"""
STAYS_BEHIND = {
    "a daemon": "python3 daemon.py",
    "a job that minds no hang-up and holds the terminal": "(trap '' HUP TERM; exec sleep 1000) & disown",
    "a job of a session of its own": "setsid sh -c 'trap \"\" HUP TERM; sleep 1000; :' &",
    "a stopped job": "sh -c 'trap \"\" HUP TERM; kill -STOP $$; :'",
}


# covers: Y4 T7
@pytest.mark.parametrize("line", STAYS_BEHIND.values(), ids=STAYS_BEHIND)
@pytest.mark.parametrize("end", ["exit", "kill -9 $$"])
async def test_nobody_outlives_the_shell(sandbox, marker, line, end):
    async with sandbox() as box:
        await box.files.write("daemon.py", DAEMON.encode())
        async with await sit_down(box, **marker.env) as person:
            await person.at_prompt(PROMPT)
            await person.enter(line)

            async def somebody():
                return [line for line in marker.processes().values() if b"sleep" in line or b"STOP" in line or b"daemon" in line]
            await until("somebody is there", somebody)
            await person.at_prompt(PROMPT)
            await person.enter(f"{end}\r{end}")  # A shell with stopped jobs wants to be told twice.
            state = await person.over()
            assert (state.signal == "SIGKILL") == (end != "exit"), state
            assert marker.processes() == {}


# covers: Y3
async def test_ten_terminals_at_once_are_ten(sandbox):
    async def work(box, number, ttys, all_there):
        async with await sit_down(box) as person:
            await person.at_prompt(PROMPT)
            await person.enter(f"tty; read -r line; echo \"{number} got $line\"")
            await person.sees("/dev/pts/")
            await person.waited_for()
            ttys.append(next(line for line in person.screen.lines if line.startswith("/dev/pts/")))
            await person.enter(f"line {number}")
            await person.sees(f"\n{number} got line {number}\n")
            await person.at_prompt(PROMPT)
            await all_there.wait()
            await person.enter("exit")
            assert (await person.over()).exit_code == 0

    async with sandbox() as box:
        ttys, all_there = [], asyncio.Barrier(10)
        await asyncio.gather(*(work(box, number, ttys, all_there) for number in range(10)))
        assert len(set(ttys)) == 10, ttys


async def test_a_terminal_of_one_row_and_one_column_is_one(sandbox):
    async with sandbox() as box:
        shell = await box.terminal(["bash", "--noediting", *SHELL[1:]], rows=1, columns=1, env={"PS1": PROMPT}, grace=1)
        async with Person(shell, (24, 80)) as person:
            await person.at_prompt(PROMPT)
            await person.enter("stty size")
            await person.sees("\n1 1\n")
            await person.at_prompt(PROMPT)
            await person.enter("vim -u NONE -N")
            assert await person.waited_for() != shell.pid
            await person.type(":q\r")
            await person.at_prompt(PROMPT)
            await person.process.resize(65535, 65535)
            await person.enter("clear; stty size")
            await person.sees("65535 65535")


async def test_a_terminal_of_500_rows_and_columns_is_one(sandbox):
    async with sandbox() as box, await sit_down(box, rows=500, columns=500) as person:
        await person.at_prompt(PROMPT)
        await person.enter("clear; stty size; printf %0500d 7")
        await person.sees(lambda screen: "0" * 499 + "7" in screen.lines)
        assert "500 500" in person.screen.lines
        await person.at_prompt(PROMPT)
        await person.enter("vim -u NONE -N empty")
        await person.sees(lambda screen: screen.lines[1:499] == ["~"] * 498)
        await person.resize(10, 20)
        await person.sees(lambda screen: screen.lines[1:9] == ["~"] * 8)
        await person.type(":q\r")
        await person.at_prompt(PROMPT)


async def test_bytes_of_any_kind_pass_both_ways_as_they_are(sandbox):
    shown, typed = random.Random(1).randbytes(500_000), random.Random(2).randbytes(50_000)
    async with sandbox() as box:
        await box.files.write("shown", shown)
        script = f"stty raw -echo; cat shown; head -c {len(typed)} > typed; exit 7"
        async with await box.terminal(["sh", "-c", script]) as process:
            reading = asyncio.create_task(process.stdout.read())

            async def all_is_shown():
                state = await process.state()
                return state.stdout.bytes == len(shown) and (await process.foreground()).input_waiting
            await until("all is shown", all_is_shown)
            await process.stdin.write(typed)
            assert await reading == shown
            assert (await process.wait("empty")).exit_code == 7
        assert await box.files.read_bytes("typed") == typed


async def test_a_shell_goes_on_after_garbage_was_shown(sandbox):
    async with sandbox() as box:
        await box.files.write("garbage", random.Random(3).randbytes(200_000))
        async with await sit_down(box) as person:
            await person.at_prompt(PROMPT)
            await person.enter("cat garbage; printf '\\033c'")

            async def is_quiet():
                return person.shown.count(b"\x1bc") and (await person.process.foreground()).input_waiting
            await until("all is shown", is_quiet)
            await person.type("\x03\x03")  # Whatever the terminal has answered to garbage.
            await person.enter("printf '\\033c'; echo still $((6 * 7))")
            await person.sees("still 42\n")
            await person.at_prompt(PROMPT)


# covers: Y4
async def test_ctrl_s_holds_what_is_shown_until_ctrl_q_and_no_end(sandbox, marker):
    async with sandbox() as box, await sit_down(box, **marker.env) as person:
        async def grows():
            before = len(person.shown)
            await asyncio.sleep(0.2)
            return len(person.shown) > before

        async def stands_still():
            return not await grows()
        await person.at_prompt(PROMPT)
        await person.enter("while :; do echo line; read -t 0.01 < <(sleep 1); done")
        await until("it writes", grows)
        await person.type("\x13")
        await until("it is held", stands_still)
        await person.type("\x11")
        await until("it goes on", grows)
        await person.type("\x13")
        await until("it is held again", stands_still)
        await person.type("\x03")  # Which lets go, too.
        await person.at_prompt(PROMPT)
        await person.enter("yes")
        await person.busy()
        await person.type("\x13")
        await until("it is held for good", stands_still)
        await person.process.terminate()
        await person.over()
        assert marker.processes() == {}


WRITTEN = 50_000_000


# covers: O2
async def test_a_reader_who_is_behind_holds_nobody_back_and_is_told_what_he_missed(sandbox):
    async with sandbox() as box:
        script = f"stty -opost; yes | head -c {WRITTEN}; printf end; read -r line"
        async with await box.terminal(["sh", "-c", script]) as process:
            async def all_was_written():
                return (await process.state()).stdout.bytes == WRITTEN + 3 and (await process.foreground()).input_waiting
            await until("it has written all and waits", all_was_written, within_s=60)
            offset, missed, last = 0, 0, b""
            async for piece in process.stdout:
                missed += piece.offset - offset
                whole = b"y\n" * (len(piece.data) // 2 + 1)
                expected = whole[piece.offset % 2:][:min(len(piece.data), max(0, WRITTEN - piece.offset))]
                assert piece.data.startswith(expected)
                offset, last = piece.offset + len(piece.data), piece.data
                if offset == WRITTEN + 3:
                    await process.stdin.write(b"\n")
            assert last.endswith(b"end\r\n") or last in (b"\r\n", b"\n"), last[-10:]
            assert missed > WRITTEN - (16 << 20), "of what nobody reads, not all is kept"


# covers: 4.7
async def test_an_editor_does_not_notice_that_agentd_was_killed(sandbox, chain):
    async with sandbox() as box:
        async with await sit_down(box) as person:
            await person.at_prompt(PROMPT)
            await person.enter("vim -u NONE -N letter")
            await person.sees(lambda screen: screen.alternate and screen.lines[1] == "~")
            await person.type("idear")
            await person.sees(lambda screen: screen.lines[0] == "dear")
            chain.program.kill()
            await person.type(" reader\x1b")
            chain.start()
            await person.sees(lambda screen: screen.lines[0] == "dear reader")
            await person.waited_for()
            await person.type(":wq\r")
            await person.at_prompt(PROMPT)
        assert await box.files.read_bytes("letter") == b"dear reader\n"


# covers: 4.7
async def test_who_takes_over_a_terminal_sees_what_the_other_saw(sandbox):
    async with sandbox() as first, sandbox() as second, await sit_down(first) as person:
        await person.at_prompt(PROMPT)
        await person.enter("printf 'one\\ntwo\\n'; read -r word")
        await person.sees("\none\ntwo\n")
        await person.at_prompt()
        shell = await second.attach(person.process.handle, stdin=True, stdout_from=0)
        async with Person(shell, (24, 80)) as other:
            await other.sees(lambda screen: screen.lines == person.screen.lines)
            assert person.taken_over and other.screen.lines[1:3] == ["one", "two"]
            await other.at_prompt()
            await other.enter("three")
            await other.at_prompt(PROMPT)
            await other.enter("echo $word; exit 4")
            assert (await other.over()).exit_code == 4
            assert "three" in other.screen.text.splitlines()
