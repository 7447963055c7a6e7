"""What commands leave to the executor that ran them. Each case fails against one that leaves out what it should do about it."""

import os

from alone import alone_executor
from mark import Mark
from seam import Collect, Outcome, fails, fails_without, not_through
from world import descriptors_of

OWN_EXECUTOR = "What is counted is that of one executor, which runs commands of others here."
TIMES = 20


@fails_without("killing")
def test_no_process_is_left_of_a_command_that_was_terminated(seam):  # T7 T2
    with Mark(seam) as mark:
        command = seam.spawn(["sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1001; :"], grace_ms=50, env=mark.env)
        mark.until(("sleep", 2))
        command.terminate()
        assert command.wait_for_exit() is True
        mark.assert_none_left()


@fails_without("killing")
def test_no_process_is_left_of_a_terminal_that_was_terminated(seam):  # Y4 T7
    with Mark(seam) as mark:
        terminal = seam.terminal(["bash", "--noprofile", "--norc", "-ic", "(trap '' HUP TERM; setsid sleep 1000 &); sleep 1001; :"],
                                 grace_ms=50, env=mark.env)
        mark.until(("sleep", 2))
        terminal.terminate()
        mark.assert_none_left()


@fails_without("killing")
def test_no_process_is_left_of_a_session_that_has_ended(seam):  # T6 W5
    with Mark(seam) as mark:
        with seam.another() as other:
            other.spawn(["sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1001; :"], grace_ms=50, env=mark.env)
            mark.until(("sleep", 2))
        mark.until_none_left()


def comes_to_no_more(mine, executor, round_of, counts):
    """After many rounds there are about as many of the executor's descriptors that count as after none."""
    before = sum(map(counts, descriptors_of(executor.pid)))
    for _ in range(TIMES):
        round_of()
    mine.wait_until(lambda: f"nothing of {TIMES} rounds is open: {descriptors_of(executor.pid)}",
                    lambda: sum(map(counts, descriptors_of(executor.pid))) < before + TIMES // 2)


@fails_without("closingPipes")
@not_through("agentd", "dsh", why=OWN_EXECUTOR)
def test_no_pipe_is_left_of_commands(seam):  # 4.2
    with seam.own_executor() as (executor, mine):
        def run():
            command = mine.spawn(["cat"], stdin=b"given", stdout="pipe")
            assert command.output() == b"given"
            assert command.done() == Outcome(0, None) and command.wait_for_exit()
            mine.spawn(["sh", "-c", "sleep 1000 & echo x"], grace_ms=1).terminate()
        comes_to_no_more(mine, executor, run, lambda found: found.startswith("pipe:"))


@fails_without("closingTerminals")
@not_through("agentd", "dsh", why=OWN_EXECUTOR)
def test_no_terminal_is_left_of_commands(seam):  # 4.8
    with seam.own_executor() as (executor, mine):
        def run():
            terminal = mine.terminal(["sh", "-c", "tty; read -r line"])
            terminal.until_waiting()
            terminal.terminate()
        comes_to_no_more(mine, executor, run, lambda found: found.startswith(("/dev/ptmx", "/dev/pts")))


@fails_without("removingGroups")
@not_through("agentd", "dsh", why=OWN_EXECUTOR)
def test_no_control_group_is_left_of_commands(seam):  # T7
    with seam.own_executor(grouped=True) as (executor, mine):
        def groups():
            return [each.name for each in executor.user.cgroup.iterdir() if each.is_dir()]
        command = mine.spawn(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & cat /proc/self/cgroup; cat /proc/$PPID/comm"], grace_ms=50)
        assert command.done() == Outcome(0, None)
        shown = command.read_from(0).text
        assert [each for each in groups() if f"0::/{executor.user.cgroup.name}/{each}\n" in shown] and "sandfleet-reap" not in shown, shown
        command.terminate()
        assert command.wait_for_exit()
        mine.wait_until(lambda: f"no group is left: {groups()}", lambda: not groups())


@fails_without("unlinking")
@not_through("agentd", "dsh", why=OWN_EXECUTOR)
def test_no_spill_is_left_of_commands(seam):  # O3
    with seam.own_executor() as (executor, mine):
        spills = executor.runtime / "spills"

        def spill(session, bound=1000):
            command = session.spawn(["printf", "0123456789"], stdout=Collect(1, bound))
            assert command.done() == Outcome(0, None) and command.wait_for_exit()
            return command
        released = spill(mine)
        assert [released.read_from(0).spill_path] == [str(each) for each in spills.iterdir()]
        mine.session.call("process.release", {"handle": released.handle}, mutating=True)
        mine.wait_until("the one that was released to go", lambda: not list(spills.iterdir()))
        spill(mine, 5)
        mine.wait_until("the one that was withheld to go", lambda: not list(spills.iterdir()))
        with mine.another() as other:
            spill(other)
            assert len(list(spills.iterdir())) == 1
        mine.wait_until("those of a session that has ended to go", lambda: not list(spills.iterdir()))


@not_through("agentd", "dsh", why="Nobody can keep the sandbox's own kernel from killing.")
def test_an_end_that_cannot_be_had_is_told_and_had_when_it_is_asked_for_again(seam):  # T4
    kept = {"SANDFLEET_WITHOUT": "killing", "SANDFLEET_WITHOUT_UNTIL": "/dev/shm/" + os.path.basename(seam.folder)}
    with alone_executor("executor_without", kept) as executor:
        mine = seam.with_executor(executor)
        with Mark(mine) as mark:
            command = mine.spawn(["sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1001; :"], grace_ms=50, env=mark.env)
            mark.until(("sleep", 2))
            for _ in range(2):
                command.terminate()
                with fails("TERMINATE_FAILED"):
                    command.wait_for_exit()
                assert not command.state()["empty"]
                mark.until(("sleep", 2))
            again = open(kept["SANDFLEET_WITHOUT_UNTIL"], "x")
            try:
                command.terminate()
                assert command.wait_for_exit() is True
                mark.assert_none_left()
            finally:
                again.close()
                os.unlink(again.name)
        mine.close()
