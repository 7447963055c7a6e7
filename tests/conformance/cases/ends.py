"""How commands are ended, and the proof that nothing of them is left."""

import secrets
import signal

from mark import Mark
from outgoing import Outgoing
from seam import Outcome, fails, not_through
from world import wait_until

IGNORES_TERM = "trap '' TERM"


def test_to_terminate_is_sigterm_to_the_whole_group(seam):  # T1 E
    mark = Mark(seam)
    inner = "trap 'echo inner; exit' TERM; echo begun; while :; do sleep 0.02; done"
    script = f"trap 'wait; echo outer; exit 5' TERM; sh -c \"{inner}\" & while :; do sleep 0.02; done"
    command = seam.spawn(["sh", "-c", script], grace_ms=20_000, env=mark.env)
    command.until_written("begun")
    command.terminate()
    assert command.done() == Outcome(5, None)
    assert command.read_from(0).text == "begun\ninner\nouter\n"
    assert command.wait_for_exit()
    mark.assert_none_left()


def test_the_grace_is_for_who_has_something_to_finish(seam):  # T1
    command = seam.spawn(["sh", "-c", "trap 'sleep 0.7; echo finished; exit 6' TERM; echo ready; while :; do sleep 0.02; done"], grace_ms=20_000)
    command.until_written("ready")
    command.terminate()
    assert command.done() == Outcome(6, None)
    assert command.read_from(0).text == "ready\nfinished\n"


def test_to_terminate_twice_is_to_terminate(seam):  # T1
    command = seam.spawn(["sh", "-c", "trap 'echo told; sleep 0.3; exit 8' TERM; echo ready; while :; do sleep 0.02; done"], grace_ms=20_000)
    command.until_written("ready")
    for _ in range(3):
        command.terminate()
    assert command.done() == Outcome(8, None)
    command.terminate()
    assert command.wait_for_exit()
    assert command.read_from(0).text == "ready\ntold\n", "it was told once"


def test_each_command_leads_a_group_of_its_own(seam):  # T1
    groups = []
    for _ in range(2):
        command = seam.spawn(["sh", "-c", "cut -d' ' -f5 /proc/$$/stat; echo $$"])
        command.done()
        group, pid = command.read_from(0).text.split()
        assert group == pid == str(command.pid)
        groups.append(group)
    assert groups[0] != groups[1]


def test_to_terminate_one_command_ends_no_other(seam):  # T1
    first, second = (seam.spawn(["sh", "-c", "echo ready; read -r line; echo $line"], stdin="pipe") for _ in range(2))
    for each in (first, second):
        each.until_written("ready")
    first.terminate()
    assert first.wait_for_exit()
    second.write(b"lives\n")
    assert second.done() == Outcome(0, None)
    assert second.read_from(0).text == "ready\nlives\n"


def test_who_is_stopped_hears_that_he_is_terminated(seam):  # T1
    command = seam.spawn(["sh", "-c", "trap 'echo heard; exit 9' TERM; echo ready; kill -STOP $$; while :; do sleep 0.02; done"], grace_ms=20_000)
    command.until_written("ready")
    command.terminate()
    assert command.done() == Outcome(9, None)
    assert command.read_from(0).text == "ready\nheard\n"


def test_that_the_first_process_ends_ends_no_escalation(seam):  # T2
    mark = Mark(seam)
    command = seam.spawn(["sh", "-c", f"({IGNORES_TERM}; exec sleep 1000) & wait"], grace_ms=200, env=mark.env)
    mark.until(("sleep", 1), ("sh", 1))
    command.terminate()
    assert command.wait_for_exit()
    mark.assert_none_left()
    assert command.done() == Outcome(None, "SIGTERM")


def test_whom_a_command_has_left_behind_is_terminated_with_it(seam):  # T2 E
    mark = Mark(seam)
    command = seam.spawn(["sh", "-c", f"({IGNORES_TERM}; exec sleep 1000 >/dev/null 2>&1) & exit 0"], grace_ms=200, env=mark.env)
    assert command.done() == Outcome(0, None)
    mark.until(("sleep", 1))
    command.terminate()
    assert command.wait_for_exit()
    mark.assert_none_left()


def test_a_command_that_is_over_is_terminated_without_any_harm(seam):  # T3
    command = seam.spawn(["true"])
    assert command.done() == Outcome(0, None)
    assert command.wait_for_exit()
    for _ in range(3):
        command.terminate()
    assert command.wait_for_exit() and command.done() == Outcome(0, None)


@not_through("dsh", why="Its handles have no signals; a terminal's have.")
def test_nobody_gets_a_signal_once_a_tree_was_seen_empty(seam):  # T3
    command = seam.spawn(["true"])
    assert command.wait_for_exit()
    for reach in ("leader", "group", "tree"):
        args = {"handle": command.handle, "signal": "SIGKILL", "to": reach}
        assert seam.session.call("process.signal", args, mutating=True) == {"delivered": False}


def test_who_is_dead_and_not_yet_buried_keeps_nothing_open(seam):  # T3
    zombie = "import os, time\nif os.fork() == 0: os._exit(0)\nprint('ready', flush=True)\ntime.sleep(1000)"
    command = seam.spawn(["python3", "-c", zombie], grace_ms=200)
    command.until_written("ready")
    command.terminate()
    assert command.wait_for_exit()
    assert command.done() == Outcome(None, "SIGTERM")


def test_the_end_of_the_first_process_is_not_the_end(seam):  # T4 E
    mark = Mark(seam)
    command = seam.spawn(["sh", "-c", "sh -c 'until [ -e go ]; do sleep 0.02; done' >/dev/null 2>&1 & exit 0"], env=mark.env)
    assert command.done() == Outcome(0, None)
    waiting = command.begin_wait_for_exit()
    assert [line for line in mark.living() if line.startswith("sh -c until")]
    seam.ground.write(seam.path("go"))
    assert waiting.result() is True
    mark.assert_none_left()


@not_through("executor", "agentd", why="A wait that is given up over the wire is answered by nothing.")
def test_a_wait_for_the_end_that_is_given_up_says_no(seam):  # T4
    command = seam.spawn(["sleep", "1000"])
    waiting = command.begin_wait_for_exit()
    wait_until("it to run", lambda: command.pid > 0)
    assert waiting.abort().result() is False
    command.terminate()
    assert command.wait_for_exit() is True


@not_through("dsh", why="Its wait has no time of its own; who waits gives up.")
def test_a_look_says_what_is_so_and_waits_for_nothing(seam):  # T4
    command = seam.spawn(["sh", "-c", "sleep 1000 >/dev/null 2>&1 & read -r line"], stdin="pipe")
    for until in ("exit", "settled", "empty"):
        ok = seam.session.call("process.wait", {"handle": command.handle, "until": until, "timeoutMs": 0})
        assert not ok["reached"], ok
    command.end_input()
    assert command.done() == Outcome(1, None)
    ok = seam.session.call("process.wait", {"handle": command.handle, "until": "empty", "timeoutMs": 50})
    assert not ok["reached"] and ok["state"]["exited"] and ok["state"]["settled"] and not ok["state"]["empty"], ok
    command.terminate()
    assert command.wait_for_exit()


def test_who_is_terminated_as_soon_as_he_is_spawned_leaves_nothing(seam):  # T5
    for _ in range(10):
        mark = Mark(seam)
        command = seam.spawn(["sh", "-c", f"{IGNORES_TERM}; sleep 1000 & setsid sleep 1001"], grace_ms=50, env=mark.env)
        command.terminate()
        assert command.wait_for_exit() is True
        mark.assert_none_left()


@not_through("dsh", why="Its provider has an answer to each request; the case before this is the same by its surface.")
def test_a_terminate_that_comes_before_the_spawn_is_answered_leaves_nothing(seam):  # T5
    for _ in range(10):
        mark, handle = Mark(seam), secrets.token_hex(16)
        spawn = {"handle": handle, "argv": ["sh", "-c", f"{IGNORES_TERM}; sleep 1000 & setsid sleep 1001"], "graceMs": 50,
                 "env": list(mark.env.items()), "stdin": "data", "stdout": "discard", "stderr": "discard"}
        # What its stdin is to be never comes to its end, so that it cannot have begun.
        asked = seam.session.ask("process.spawn", spawn, mutating=True, upload=Outgoing(b"never all of it"))
        seam.session.call("process.terminate", {"handle": handle}, mutating=True)
        with fails("CANCELLED", "SPAWN_FAILED", "CONFLICT"):
            seam.session.reply_to(asked)
        mark.assert_none_left()


def test_the_end_of_a_session_ends_all_that_it_started(seam):  # T6 W5
    mark = Mark(seam)
    with seam.another() as other:
        other.spawn(["sh", "-c", f"{IGNORES_TERM}; setsid sleep 1000 & sleep 1001; :"], grace_ms=100, env=mark.env)
        other.spawn(["sleep", "1002"], env=mark.env)
        other.terminal(["sh", "-c", "trap '' HUP TERM; sleep 1003; :"], grace_ms=100, env=mark.env)
        mine = seam.spawn(["sh", "-c", "read -r line"], stdin="pipe")
        mark.until(("sleep 1000", 1), ("sleep 1001", 1), ("sleep 1002", 1), ("sleep 1003", 1))
    if seam.way == "dsh":
        mark.assert_none_left()
    mark.until_none_left()
    mine.end_input()
    assert mine.done() == Outcome(1, None)


@not_through("executor", "agentd", why="Who has said that a session ends asks nothing more in it.")
def test_while_a_session_is_ended_nothing_new_begins(seam):  # T6
    mark = Mark(seam)
    other = seam.another()
    other.spawn(["sh", "-c", "trap 'sleep 0.5; exit' TERM; echo ready; while :; do sleep 0.02; done"], env=mark.env).until_written("ready")
    disposing = other.begin("dispose")
    other.sandbox_mode()  # By when it has heard.
    with fails(None, "ABORT_ERR"):
        other.spawn(["sleep", "1000"], env=mark.env).done()
    disposing.result()
    mark.assert_none_left()
    other.bridge.socket.close()


def ends_to_the_proof(seam, script, *ready):
    mark = Mark(seam)
    command = seam.spawn(["sh", "-c", script], grace_ms=100, env=mark.env)
    mark.until(*ready)
    command.terminate()
    assert command.wait_for_exit() is True
    mark.assert_none_left()


def test_who_begins_a_session_of_his_own_is_ended(seam):  # T7
    ends_to_the_proof(seam, f"{IGNORES_TERM}; setsid sleep 1000 & wait", ("sleep", 1), ("sh", 1))


def test_who_forks_twice_is_ended(seam):  # T7
    ends_to_the_proof(seam, f"{IGNORES_TERM}; (setsid sh -c 'sleep 1000 & sleep 1001 &'); sleep 1002; :", ("sleep", 3))


def test_who_was_left_by_all_his_parents_is_ended(seam):  # T7
    ends_to_the_proof(seam, f"{IGNORES_TERM}; setsid sh -c 'setsid sleep 1000 & exit 0' & exit 0", ("sleep", 1), ("sh", 0))


def test_who_has_closed_everything_and_calls_himself_otherwise_is_ended(seam):  # T7
    daemon = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nos.closerange(0, 256)\nos.chdir('/')\n" \
             "open('/proc/self/comm', 'w').write('innocent')\ntime.sleep(1000)"
    seam.ground.write(seam.path("daemon.py"), daemon.encode())
    ends_to_the_proof(seam, "python3 daemon.py; sleep 1000", ("python3", 1), ("sleep", 1))


def test_a_chain_that_forks_on_is_ended(seam):  # T7
    mark = Mark(seam)
    seam.ground.write(seam.path("hop"), b"#!/bin/sh\ntrap '' TERM\n[ -e hop ] && setsid \"$0\" &\n", mode=0o755)
    command = seam.spawn([seam.path("hop")], grace_ms=20, env=mark.env)
    assert command.done() == Outcome(0, None)
    command.terminate()
    assert command.wait_for_exit() is True
    mark.assert_none_left()


@not_through("dsh", why="Its handles have no signals; a terminal's have.")
def test_a_signal_reaches_whom_it_is_for(seam):  # T1 T7
    script = "trap 'echo leader' USR1; sh -c 'trap \"echo group\" USR1; echo a; while :; do sleep 0.02; done' & " \
             "setsid sh -c 'trap \"echo tree\" USR1; echo b; while :; do sleep 0.02; done' & echo c; while :; do sleep 0.02; done"
    for reach, told in (("leader", {"leader"}), ("group", {"leader", "group"}), ("tree", {"leader", "group", "tree"}), (None, {"leader", "group"})):
        command = seam.spawn(["sh", "-c", script], grace_ms=50)
        wait_until("all three", lambda: set("abc") <= set(command.read_from(0).text))
        args = {"handle": command.handle, "signal": "SIGUSR1"} | ({"to": reach} if reach else {})
        assert seam.session.call("process.signal", args, mutating=True) == {"delivered": True}
        # Stopped by what reaches all: what was not told by then was not told.
        wait_until(lambda: f"{told} of {command.read_from(0).text}", lambda: told <= set(command.read_from(0).text.split()))
        command.terminate()
        assert command.wait_for_exit()
        assert set(command.read_from(0).text.split()) - set("abc") == told, reach


@not_through("dsh", why="Its handles have no signals; a terminal's have.")
def test_a_signal_that_is_none_is_refused(seam):  # T1
    command = seam.spawn(["sleep", "1000"])
    for name in ("SIGNOT", "9", "", "KILL"):
        with fails("INVALID"):
            seam.session.call("process.signal", {"handle": command.handle, "signal": name}, mutating=True)
    assert seam.session.call("process.signal", {"handle": command.handle, "signal": "SIGKILL"}, mutating=True) == {"delivered": True}
    assert command.done() == Outcome(None, signal.Signals.SIGKILL.name)


def holder_of_a_command(seam):
    """The control group that a command is in, and the name of its parent."""
    command = seam.spawn(["sh", "-c", "grep ^0:: /proc/self/cgroup; cat /proc/$PPID/comm"])
    assert command.done() == Outcome(0, None)
    return command.read_from(0).text.splitlines()


def test_each_tree_is_held_by_a_control_group_of_its_own_or_by_a_reaper(seam):  # T7
    (group, parent), (other_group, _) = holder_of_a_command(seam), holder_of_a_command(seam)
    if seam.way == "executor" and parent == "sandfleet-reap":
        return  # It may make no groups here.
    assert group != other_group and parent != "sandfleet-reap", (group, other_group, parent)


@not_through("agentd", "dsh", why="The sandbox of these ways has control groups.")
def test_where_there_are_control_groups_an_executor_alone_holds_trees_by_them(seam):  # T7
    with seam.own_executor(grouped=True) as (executor, mine):
        group, parent = holder_of_a_command(mine)
        assert group.startswith(f"0::/{executor.user.cgroup.name}/") and parent != "sandfleet-reap", (group, parent)
        with Mark(mine) as mark:
            command = mine.spawn(["sh", "-c", f"{IGNORES_TERM}; setsid sleep 1000 & sleep 1001; :"], grace_ms=50, env=mark.env)
            mark.until(("sleep", 2))
            command.terminate()
            assert command.wait_for_exit() is True
            mark.assert_none_left()
