"""Terminals: who is in the foreground, whether that waits for input, and what is left of a session."""

import os

from mark import Mark
from seam import Failure, Foreground, Outcome, fails, not_through
from world import wait_until

SHELL = ["bash", "--noprofile", "--norc", "-i"]
PROMPT = {"PS1": "ready> ", "HISTFILE": None, "TERM": "dumb"}
AT_THE_END = ("CONFLICT", None)  # Over the wire, and thrown by dsh's provider.


def sit_down(seam, **how):
    terminal = seam.terminal(SHELL, env=PROMPT | how.pop("env", {}), **how)
    terminal.until_shown("ready> ")
    assert terminal.until_waiting() == terminal.pid
    return terminal


def until_a_job(terminal):
    """Somebody else in the foreground: his group."""
    def so():
        found = terminal.foreground()
        return found and found.group != terminal.pid and found.group
    return wait_until(lambda: f"a job: {terminal.shown()[-500:]!r}", so)


def test_a_start_that_is_given_up_leaves_nothing(seam):  # Y1
    for _ in range(5):
        mark = Mark(seam)
        starting = seam.begin_terminal(["sh", "-c", "trap '' HUP TERM; setsid sleep 1000 & sleep 1001; :"], grace_ms=50, env=mark.env)
        starting.abort()
        try:
            starting.result().terminate()  # It was begun by then, which is said.
        except Failure:
            pass
        mark.assert_none_left()


def test_to_give_up_a_start_later_ends_nothing(seam):  # Y1
    starting = seam.begin_terminal(SHELL, env=PROMPT)
    terminal = starting.result()
    starting.abort()
    terminal.until_shown("ready> ")
    terminal.write("echo $((6 * 7))\n")
    terminal.until_shown("\n42")
    terminal.terminate()


def test_a_terminal_that_cannot_be_started_says_so(seam):  # Y1 P2
    with fails("SPAWN_FAILED", "ENOENT"):
        seam.terminal(["/no/such/program"])
    with fails("SPAWN_FAILED", "ENOENT"):
        seam.terminal(["true"], cwd=seam.path("nowhere"))


def test_a_terminal_has_the_size_that_was_asked_for(seam):  # Y1 4.8
    for rows, columns in ((40, 160), (1, 1), (500, 500)):
        terminal = seam.terminal(["stty", "size"], rows=rows, columns=columns)
        assert terminal.done() == Outcome(0, None)
        wait_until("all to be shown", terminal.ended)
        assert terminal.shown() == f"{rows} {columns}\r\n".encode()


@not_through("dsh", why="Its terminals keep their size.")
def test_programs_are_told_of_a_new_size(seam):  # 4.8
    terminal = seam.terminal(["bash", "-c", "trap 'stty size' WINCH; echo set; while :; do sleep 0.02; done"])
    terminal.until_shown("set\r\n")
    terminal.resize(50, 200)
    terminal.until_shown("50 200\r\n")
    for rows, columns in ((0, 80), (24, 0), (65_536, 80)):
        with fails("INVALID"):
            terminal.resize(rows, columns)
    terminal.terminate()


def test_the_terminal_is_the_command_s_own_and_it_leads_its_session(seam):  # 4.8
    script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : < /dev/tty && set -- $(cat /proc/$$/stat) && echo $1 $6 $8"
    terminal = seam.terminal(["sh", "-c", script])
    assert terminal.done() == Outcome(0, None)
    wait_until("all to be shown", terminal.ended)
    pid, session, foreground = terminal.shown().split()
    assert pid == session == foreground == str(terminal.pid).encode()


def test_names_that_look_like_secrets_do_not_reach_a_terminal_unless_they_are_given(seam):  # 4.3 4.8
    terminal = seam.terminal(["sh", "-c", "env"], env={"GIVEN_TOKEN": "given", "TERM": "dumb", "HOME": None})
    assert terminal.done() == Outcome(0, None)
    wait_until("all to be shown", terminal.ended)
    shown = terminal.shown().decode().splitlines()
    assert "GIVEN_TOKEN=given" in shown and "TERM=dumb" in shown and not [line for line in shown if line.startswith("HOME=")]
    names = [line.split("=")[0].upper() for line in shown]
    assert not [name for name in names if name.startswith("DSH_") or any(word in name for word in ("KEY", "PASSWORD", "SECRET"))], names


TELLS = """import os, signal, termios, tty
tty.setraw(0)
def tell(number, frame): os.write(1, b'got %d;' % number)
for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(one, tell)
os.write(1, b'begun;')
while True: os.write(1, b'byte %d;' % os.read(0, 1)[0])
"""


def test_a_signal_is_one_whatever_the_mode_and_its_group_is_told(seam):  # Y2 E
    seam.ground.write(seam.path("tells.py"), TELLS.encode())
    terminal = sit_down(seam)
    terminal.write("python3 tells.py\n")
    terminal.until_shown("begun;")
    job = terminal.until_waiting()
    assert job != terminal.pid
    terminal.write("\x03")
    terminal.until_shown("byte 3;")
    for name, number in (("SIGINT", 2), ("SIGTERM", 15), ("SIGHUP", 1)):
        assert terminal.signal(name) == job
        terminal.until_shown(f"got {number};")
    assert terminal.signal("SIGKILL") == job
    terminal.until_shown("Killed")
    assert terminal.until_waiting() == terminal.pid, "the shell lives"
    terminal.terminate()


def test_a_job_is_stopped_and_taken_up_again(seam):  # Y2
    terminal = sit_down(seam)
    terminal.write("sh -c 'echo asleep; exec sleep 1000'\n")
    terminal.until_shown("\nasleep")
    job = until_a_job(terminal)
    assert terminal.signal("SIGTSTP") == job
    terminal.until_shown("Stopped")
    assert terminal.until_waiting() == terminal.pid
    terminal.write("fg\n")
    assert until_a_job(terminal) == job
    assert terminal.signal("SIGINT") == job
    assert terminal.until_waiting() == terminal.pid
    terminal.terminate()


def test_a_job_in_the_background_gets_no_signal_that_is_for_the_foreground(seam):  # Y2 E
    mark = Mark(seam)
    terminal = sit_down(seam, env=mark.env)
    terminal.write("sleep 1000 &\n")
    mark.until(("sleep 1000", 1))
    terminal.write("sh -c 'echo asleep; exec sleep 1001'\n")
    terminal.until_shown("\nasleep")
    mark.until(("sleep 1001", 1))
    job = until_a_job(terminal)
    assert terminal.signal("SIGTERM") == job
    mark.until(("sleep 1001", 0))
    assert terminal.until_waiting() == terminal.pid
    mark.until(("sleep 1000", 1))
    terminal.terminate()
    mark.assert_none_left()


def test_the_shell_s_own_group_is_not_killed_that_way(seam):  # Y2
    terminal = sit_down(seam)
    with fails(*AT_THE_END):
        terminal.signal("SIGKILL")
    assert terminal.signal("SIGINT") == terminal.pid
    assert terminal.until_waiting() == terminal.pid
    terminal.write("echo $((6 * 7))\n")
    terminal.until_shown("\n42")
    terminal.terminate()


@not_through("dsh", why="Its surface has names for five signals alone.")
def test_no_other_signal_goes_that_way(seam):  # Y2
    terminal = sit_down(seam)
    for name in ("SIGSTOP", "SIGCONT", "SIGUSR1", "SIGNOT", ""):
        with fails("INVALID"):
            terminal.signal(name)
    terminal.terminate()


WAITS = {
    "read": "os.read(0, 1)",
    "read of the terminal by its name": "os.read(os.open('/dev/tty', os.O_RDWR), 1)",
    "poll": "p = select.poll(); p.register(0, select.POLLIN); p.poll()",
    "select": "select.select([0], [], [])",
    "epoll": "e = select.epoll(); e.register(0, select.EPOLLIN); e.poll()",
    "a thread": "threading.Thread(target=os.read, args=(0, 1)).start(); signal.pause()",
    "a child": "os.fork() and os.wait() or os.read(0, 1)",
}
WAITS_NOT = {
    "sleep": "signal.pause()",
    "read of a pipe": "os.read(os.pipe()[0], 1)",
    "poll for another": "p = select.poll(); p.register(os.pipe()[0], select.POLLIN); p.poll()",
    "work": "exec('while True: pass')",
    "a child in a group of its own": "os.fork() and signal.pause() or (os.setpgid(0, 0), os.read(0, 1))",
}


def waits(seam, how):
    """At the terminal of a program that does that."""
    program = f"import os, select, signal, threading\nos.write(1, b'begun;')\n{how}"
    terminal = seam.terminal(["python3", "-c", program])
    terminal.until_shown("begun;")
    return terminal


def test_each_way_to_wait_for_input_is_told(seam):  # Y3
    for name, how in WAITS.items():
        terminal = waits(seam, how)
        assert terminal.until_waiting() == terminal.pid, name
        assert terminal.foreground() == Foreground(terminal.pid, True), name
        terminal.terminate()


def test_who_waits_for_something_else_is_not_said_to_wait_for_input(seam):  # Y3
    for name, how in WAITS_NOT.items():
        terminal = waits(seam, how)
        for _ in range(3):
            assert terminal.foreground() == Foreground(terminal.pid, False), name
        terminal.terminate()


def test_who_has_input_already_does_not_wait_for_it(seam):  # Y3
    terminal = waits(seam, "signal.pause()")
    terminal.write("typed ahead\n")
    assert terminal.foreground().waiting is False
    terminal.terminate()
    terminal = sit_down(seam)
    terminal.write("sleep 1000\n")
    assert terminal.foreground().waiting is False
    assert terminal.signal("SIGINT")
    terminal.terminate()


def test_a_shell_waits_between_two_commands_and_not_while_one_runs(seam):  # Y3
    terminal = sit_down(seam)
    for number in range(5):
        terminal.write(f"read -r line < gate; echo {number}\n" if number else "mkfifo gate; echo 0\n")
        if number:
            assert terminal.foreground().waiting is False
            seam.run("sh", "-c", "echo go > gate")
        terminal.until_shown(f"\n{number}\r\n")
        assert terminal.until_waiting() == terminal.pid
    terminal.terminate()


@not_through("executor", why="The user that it runs as here is nobody that su would ask.")
def test_of_a_program_that_cannot_be_looked_at_nothing_is_claimed(seam):  # Y3
    terminal = sit_down(seam)
    terminal.write("su -c true\n")
    terminal.until_shown("Password: ")
    found = terminal.foreground()
    assert found.group != terminal.pid and found.waiting is False, found
    terminal.write("\x03")
    terminal.terminate()


def test_after_the_end_nothing_is_taken(seam):  # Y4
    terminal = sit_down(seam)
    terminal.write("exit 3\n")
    assert terminal.done() == Outcome(3, None)
    wait_until("all to be shown", terminal.ended)
    with fails(*AT_THE_END):
        terminal.write("x")
    with fails(*AT_THE_END):
        terminal.signal("SIGINT")
    with fails(*AT_THE_END):
        terminal.foreground()
    terminal.terminate()


def test_what_was_shown_last_is_shown_before_the_end(seam):  # Y4
    terminal = seam.terminal(["sh", "-c", "stty -opost; seq 0 99999; printf last; exit 5"])
    assert terminal.done() == Outcome(5, None)
    wait_until("all to be shown", terminal.ended)
    assert terminal.shown() == "".join(f"{number}\n" for number in range(100_000)).encode() + b"last"


BEHIND = {
    "a job": "(trap '' HUP TERM; exec sleep 1000) &",
    "a job that nobody hangs up": "(trap '' TERM; nohup sleep 1000 > /dev/null 2>&1 &)",
    "a stopped job": "sh -c 'trap \"\" HUP TERM; kill -STOP $$; :' #sleep",
    "a session of its own": "(trap '' HUP TERM; setsid sleep 1000 &)",
    "a daemon": "(trap '' HUP TERM; setsid sh -c 'sleep 1000 > /dev/null 2>&1 < /dev/null & exit 0' &)",
}


def leave_behind(seam, line):
    mark = Mark(seam)
    terminal = sit_down(seam, grace_ms=100, env=mark.env)
    terminal.write(f"{line}\n")
    wait_until(lambda: f"somebody: {mark.living()}", lambda: [each for each in mark.living() if "sleep" in each or "STOP" in each])
    assert terminal.until_waiting() == terminal.pid
    return mark, terminal


def test_to_terminate_ends_every_group_of_the_session(seam):  # Y4 T7
    for line in BEHIND.values():
        mark, terminal = leave_behind(seam, line)
        terminal.terminate()
        mark.assert_none_left()
        terminal.terminate()


def test_who_outlives_a_shell_that_exits_is_ended_too(seam):  # Y4 T7
    for line in BEHIND.values():
        mark, terminal = leave_behind(seam, line)
        terminal.begin_write("exit\nexit\n")  # A shell with stopped jobs wants to be told twice.
        terminal.done()
        mark.until_none_left()
        terminal.terminate()


def test_an_idle_shell_is_ended_at_once_whatever_the_grace(seam):  # Y4
    mark = Mark(seam)
    terminal = sit_down(seam, grace_ms=600_000, env=mark.env)
    terminal.terminate()
    mark.assert_none_left()


def test_what_is_under_way_when_it_is_terminated_comes_to_an_end(seam):  # Y4
    terminal = seam.terminal(["sh", "-c", "stty raw; trap '' HUP; echo deaf; kill -STOP $$"])
    terminal.until_shown("deaf")
    writing = terminal.begin_write("x" * 4_000_000)
    terminal.terminate()
    with fails(*AT_THE_END):
        writing.result()


def test_the_first_byte_is_the_command_s_own(seam):  # Y5
    terminal = sit_down(seam)
    assert terminal.shown() == b"ready> "
    terminal.terminate()
    terminal = seam.terminal(["printf", r"\000\377first"])
    terminal.done()
    wait_until("all to be shown", terminal.ended)
    assert terminal.shown() == b"\0\xfffirst"


def test_bytes_of_any_kind_are_shown_as_they_are(seam):  # Y5
    content = os.urandom(300_000)
    seam.ground.write(seam.path("bytes"), content)
    terminal = seam.terminal(["sh", "-c", "stty raw; cat bytes"])
    assert terminal.done() == Outcome(0, None)
    wait_until("all to be shown", terminal.ended)
    assert terminal.shown() == content


def test_the_end_of_a_terminal_is_told_as_that_of_a_command(seam):  # X1 4.8
    assert seam.terminal(["sh", "-c", "exit 7"]).done() == Outcome(7, None)
    assert seam.terminal(["sh", "-c", "kill -9 $$"]).done() == Outcome(None, "SIGKILL")
