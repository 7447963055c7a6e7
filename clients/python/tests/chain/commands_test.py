"""Commands in a real sandbox: their ends, their outputs, and that nothing is left of what was given up."""

import asyncio

import pytest

from sandfleet import (
    PIPE,
    Collect,
    CommandFailed,
    CommandTimedOut,
    LifetimeOver,
    Outcome,
    OutcomeUnknown,
    Process,
    Quarantined,
    Refused,
    RemoteError,
    Sandbox,
)
from sandfleet.streams import Streams

# Ignores SIGTERM itself, and leaves somebody who does so too in a session of his own.
LEAVES_SOMEBODY = """trap '' TERM
setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done' >/dev/null 2>&1 &"""
STUBBORN = LEAVES_SOMEBODY + "\nwhile :; do sleep 0.1; done"
GRACE = 0.2


def sandbox(chain, **how):
    return Sandbox("default/box", socket=chain.socket, **how)


async def stubborn(box, marker, **how):
    return await box.run(["sh", "-c", STUBBORN], env=marker.env, grace=GRACE, **how)


def left_by(marker):
    """Those in sessions of their own."""
    return [pid for pid, line in marker.processes().items() if line.startswith(b'sh\0-c\0trap "" TERM')]


async def begun(box, marker, eventually, **how):
    """A run() of it that is at work."""
    task = asyncio.create_task(stubborn(box, marker, **how))
    await eventually("it runs, and has left somebody", lambda: left_by(marker))
    return task


async def test_a_command_ends_by_itself_and_its_facts_are_the_kernels(chain):
    async with sandbox(chain) as box:
        result = await box.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
        assert (result.outcome, result.exit_code, result.signal, result.ok) == (Outcome.EXITED, 3, None, False)
        assert (result.stdout.text, result.stderr.text) == ("out\n", "err\n")
        assert result.empty and not result.stdout.truncated and result.stdout.total_bytes == 4
        assert 0 < result.duration <= (result.ended_at - result.started_at).total_seconds() + 0.1
        with pytest.raises(CommandFailed, match="ended with 3"):
            result.check()
        killed = await box.run(["sh", "-c", "kill -9 $$"])
        assert (killed.outcome, killed.exit_code, killed.signal, killed.ok) == (Outcome.SIGNALLED, None, "SIGKILL", False)
        echoed = await box.run(["cat"], stdin=b"x" * 1_000_000)
        assert echoed.check().stdout.data == b"x" * 1_000_000
        ran = await box.run(["sh", "-c", 'echo "$A-$HOME-$PWD"'], env={"A": "1", "HOME": None}, cwd="/tmp")
        assert ran.stdout.text == "1--/tmp\n"
        with pytest.raises(RemoteError, match="SPAWN_FAILED"):
            await box.run(["/nowhere/at/all"])
        assert await box.which("sh") == "/usr/bin/dash"
        assert not [each for each in await box.processes() if each.mine]


async def test_a_tail_is_exact_and_a_spill_has_all_of_it(chain):
    whole = b"".join(b"%d\n" % number for number in range(200_000))
    async with sandbox(chain) as box:
        result = await box.run(["seq", "0", "199999"], max_output_bytes=1000, spill_bytes=1 << 24)
        assert result.stdout.data == whole[-1000:] and result.stdout.truncated
        assert result.stdout.total_bytes == len(whole)
        assert await box.files.read_bytes(result.stdout.spill_path) == whole
        fits = await box.run(["seq", "0", "199999"], max_output_bytes=len(whole))
        assert fits.stdout.data == whole and not fits.stdout.truncated and fits.stdout.spill_path is None


async def test_output_is_told_as_it_comes(chain):
    told, later = bytearray(), asyncio.Event()

    def tell(piece):
        told.extend(piece.data)
        later.set()

    async with sandbox(chain) as box:
        await box.run(["mkfifo", "gate"])
        running = asyncio.create_task(box.run(["sh", "-c", "echo first; cat gate"], on_stdout=tell))
        await later.wait()
        assert told == b"first\n" and not running.done()
        await box.run(["sh", "-c", "echo second >gate"])
        assert (await running).ok and told == b"first\nsecond\n"

        async def fails(piece):
            raise LookupError("of the caller")

        with pytest.raises(LookupError):
            await box.run(["sh", "-c", "echo x; sleep 60"], on_stdout=fails, grace=GRACE)
        assert not [each for each in await box.processes() if each.mine]


# covers: M7
async def test_nothing_is_left_of_a_command_that_timed_out(chain, marker):
    async with sandbox(chain) as box:
        with pytest.raises(CommandTimedOut) as timed_out:
            await stubborn(box, marker, timeout=3)
        assert marker.processes() == {}
        result = timed_out.value.result
        assert (result.outcome, result.exit_code, result.signal) == (Outcome.TIMED_OUT, None, "SIGKILL")
        assert result.empty and 3 <= result.duration < 30
        assert (await box.run(["true"])).ok and not box.quarantined


# covers: M7
async def test_that_look_finds_what_a_client_without_the_proof_leaves(chain, marker, monkeypatch):
    async def leaves_it(process):
        pass

    async with sandbox(chain) as box:
        with monkeypatch.context() as patched:
            patched.setattr(Process, "end_to_the_proof", leaves_it)
            with pytest.raises(CommandTimedOut) as timed_out:
                await stubborn(box, marker, timeout=3)
        assert left_by(marker)
        process = await box.attach(timed_out.value.result.handle)
        assert await process.kill()
        assert marker.processes() == {}


# covers: M7
async def test_nothing_is_left_of_a_command_whose_caller_was_cancelled_however_often(chain, marker, eventually):
    async with sandbox(chain) as box:
        running = await begun(box, marker, eventually)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        # It is lent again only when nothing is left.
        assert (await box.run(["true"])).ok
        assert marker.processes() == {}


# covers: M7
async def test_a_command_cancelled_while_it_is_asked_for_never_is(chain, marker):
    async with sandbox(chain) as box:
        for turns in range(6):
            running = asyncio.create_task(stubborn(box, marker))
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert (await box.run(["true"])).ok
            assert marker.processes() == {}


# covers: M7
async def test_what_runs_on_ends_with_the_sandbox_object(chain, marker, eventually):
    async with sandbox(chain) as box:
        result = await box.run(["sh", "-c", LEAVES_SOMEBODY], env=marker.env, grace=GRACE)
        assert result.exit_code == 0 and not result.empty
        await box.spawn(["sh", "-c", STUBBORN], env=marker.env, grace=GRACE)
        await eventually("both have somebody", lambda: len(left_by(marker)) == 2)
    assert marker.processes() == {}
    with pytest.raises(Refused):
        await box.run(["true"])


# covers: M7, M8
async def test_where_no_proof_can_be_had_the_object_is_quarantined(chain, marker, eventually):
    box = await sandbox(chain, lease_seconds=8, proof_seconds=0.5).open()
    running = await begun(box, marker, eventually, timeout=4)
    chain.agentd.program.kill()
    try:
        with pytest.raises(CommandTimedOut) as timed_out:
            await running
        assert not timed_out.value.result.empty and box.quarantined
        with pytest.raises(Quarantined, match="not proven"):
            await box.run(["true"])
        with pytest.raises(Quarantined):
            await box.files.stat(".")
    finally:
        chain.agentd.start()
    with pytest.raises(Quarantined):
        await box.close()
    await eventually("its lease takes them", lambda: not marker.processes())


# covers: M8
async def test_a_way_that_fails_is_an_unknown_outcome_and_no_exit_code(chain, marker, eventually):
    box = await sandbox(chain, lease_seconds=1, proof_seconds=0.5).open()
    running = await begun(box, marker, eventually)
    chain.agentd.program.kill()
    try:
        with pytest.raises(OutcomeUnknown) as unknown:
            await running
    finally:
        chain.agentd.start()
    result = unknown.value.result
    assert (result.outcome, result.exit_code, result.signal, result.ok) == (Outcome.UNKNOWN, None, None, False)
    assert not result.empty and result.stdout.total_bytes is None and box.quarantined
    with pytest.raises(Quarantined):
        await box.close()
    await eventually("its lease takes them", lambda: not marker.processes())


async def test_it_is_used_for_its_lifetime_and_no_longer(chain, marker):
    async with sandbox(chain, lifetime=3.5) as box:
        assert (await box.run(["true"])).ok
        with pytest.raises(CommandTimedOut, match=r"3\.5 s"):
            await stubborn(box, marker)
        assert marker.processes() == {}
        with pytest.raises(LifetimeOver):
            await box.run(["true"])
        with pytest.raises(LifetimeOver):
            await box.files.stat(".")
        assert not box.quarantined


async def test_pipes_are_lossless_and_a_handle_tells_and_signals(chain):
    async with sandbox(chain) as box, await box.spawn(["cat"], stdin=PIPE) as cat:

        async def fill():
            for _ in range(40):
                await cat.stdin.write(b"0123456789" * 10_000)
            cat.stdin.close()

        filling = asyncio.create_task(fill())
        assert await cat.stdout.read() == b"0123456789" * 400_000
        await filling
        assert (await cat.wait("empty")).exit_code == 0
        async with await box.spawn(["sh", "-c", "trap 'echo got; exit 5' USR1; echo up; while :; do sleep 0.05; done"]) as trap:
            async for piece in trap.stdout:
                if b"up" in piece.data:
                    assert await trap.signal("SIGUSR1", to="leader")
            assert (await trap.wait()).exit_code == 5
        async with await box.spawn(["sleep", "60"], stdout=Collect(10), stderr=Collect(10)) as sleeper:
            with pytest.raises(TimeoutError):
                await sleeper.wait(timeout=0.05)
            assert await sleeper.kill()
            assert await sleeper.kill(), "there is nothing left to prove"
            assert (await sleeper.state()).signal == "SIGTERM"


async def test_who_reads_what_is_closed_meanwhile_is_told(chain):
    async with sandbox(chain) as box, await box.spawn(["sleep", "60"]) as sleeper:
        reading = asyncio.create_task(sleeper.stdout.read())
        await asyncio.sleep(0)
        sleeper.stdout.close()
        with pytest.raises(RemoteError, match="LOST"):
            await reading
        assert not box._connection._bells, "nobody waits any more"


async def test_another_session_takes_over_a_command_where_it_is(chain):
    async with sandbox(chain) as first, sandbox(chain) as second:
        process = await first.spawn(["sh", "-c", "read a; echo got $a; read b; echo and $b"], stdin=PIPE)
        await process.stdin.write(b"1\n")
        async for piece in process.stdout:
            assert piece.data == b"got 1\n"
            break
        other = await second.attach(process.handle, stdin=True, stdout_from=6, adopt=True)
        await other.stdin.write(b"2\n")
        assert await other.stdout.read() == b"and 2\n"
        assert [each.mine for each in await second.processes() if each.handle == process.handle] == [True]
        assert (await other.wait("empty")).exit_code == 0


async def test_what_is_detached_outlives_the_object_and_is_ended_by_another(chain):
    async with sandbox(chain) as first:
        async with await first.spawn(["sh", "-c", "echo up; exec sleep 1000"], detached=True) as sleeper:
            pass
        shell = await first.terminal(["sh"], detached=True)
        await shell.stdin.write(b"kept=whole\n")
        shown = b""
        async for piece in shell.stdout:
            shown += piece.data
            if b"kept=whole\r\n" in shown:
                break
        with pytest.raises(ValueError, match="Collect"):
            await first.spawn(["true"], stdout=PIPE, detached=True)
    async with sandbox(chain) as second:
        state = next(each.state for each in await second.processes() if each.handle == sleeper.handle)
        assert state.detached and not state.exited and state.age > 0
        other = await second.attach(sleeper.handle)
        assert (await other.read("stdout"))[1] == b"up\n"
        assert await other.kill()
        again = await second.attach(shell.handle, stdin=True, stdout_from=0)
        await again.stdin.write(b'echo "<$kept>"; exit 4\n')
        assert b"<whole>" in await again.stdout.read()
        assert (await again.wait("empty")).exit_code == 4


async def test_a_terminal_shows_what_is_typed(chain):
    async with sandbox(chain) as box:
        assert box.has("terminals")
        async with await box.terminal(["sh"], rows=10, columns=40) as shell:
            await shell.resize(20, 50)
            await shell.stdin.write(b"stty size; exit 4\n")
            assert b"20 50" in await shell.stdout.read()
            assert (await shell.wait()).exit_code == 4


# covers: Y3
async def test_nobody_waits_for_input_while_some_is_on_its_way(chain, monkeypatch):
    async with sandbox(chain) as box, await box.terminal(["cat"]) as cat:
        while not (await cat.foreground()).input_waiting:
            await asyncio.sleep(0.01)
        with monkeypatch.context() as patched:
            patched.setattr(Streams, "_next_data", lambda *_: None)  # Requests overtake it.
            await cat.stdin.write(b"one\n")
            assert (await cat.foreground()).input_waiting is False
        await cat.stdin.write(b"two\n")
        shown = b""
        async for piece in cat.stdout:
            shown += piece.data
            if shown.count(b"two") == 2:
                break
        while not (await cat.foreground()).input_waiting:
            await asyncio.sleep(0.01)


async def test_more_commands_at_once_than_waits(chain):
    async with sandbox(chain) as box:
        results = await asyncio.gather(*(box.run(["sh", "-c", f"exit {number % 7}"]) for number in range(100)))
        assert [result.exit_code for result in results] == [number % 7 for number in range(100)]


async def test_who_is_not_there_or_not_let_in_is_told(chain, tmp_path):
    with pytest.raises(RemoteError, match="no agentd listens at"):
        await Sandbox("default/box", socket=tmp_path / "none.sock").open()
    with pytest.raises(RemoteError, match="nowhere"):
        await Sandbox("default/nowhere", socket=chain.socket).open()
