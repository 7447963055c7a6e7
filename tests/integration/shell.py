"""Terminals in sandboxes, with a real one before whoever types: sandfleet shell, attach and logs, through agentd to an
executor. Run one test: shell.py NAME; without a name: their names."""

import contextlib
import os
import re
import signal
import sys

from exec import typed
from whole import world
from sitting import Sitting
from world import wait_until

PROMPT = "sits> "


def sandfleet(person, *words, **how):
    env = {**person.env, "TERM": "xterm-256color", **how.pop("env", {})}
    return Sitting(world.programs_folder() / "sandfleet", *words, env=env, **how)


@contextlib.contextmanager
def shell(person, *words, **how):
    """A shell that is at its prompt."""
    bash = ["bash", "--noprofile", "--norc", "-i"]
    with sandfleet(person, "shell", "-e", f"PS1={PROMPT}", *words, "--", *bash, **how) as sitting:
        sitting.see(PROMPT)
        yield sitting


def way_back(sitting):
    """The line that it says one comes back by, for a shell."""
    found = re.search(r"come back by: (\S+/sandfleet attach .*?)\r\n", sitting.text())
    assert found, sitting.text()
    return found[1]


def pasted(person, line, **how):
    """What a shell makes of a line, where nothing is set that says more."""
    return Sitting("sh", "-c", f"exec {line}", env={"PATH": os.environ["PATH"], "TERM": "xterm-256color"}, **how)


def is_whole(sitting):
    """Whether what was kept in the shell is there."""
    return sitting.say('echo "<$kept>"', "<whole>")


def log_in(person):
    with sandfleet(person, "shell") as login:
        login.see("$ ")
        # bash tells by itself whether it was started as one logs in.
        login.say("shopt -q login_shell && echo \"is $((40 + 2)) $0 $TERM\"", "is 42 /bin/bash xterm-256color")
        login.type("\x04")
        assert login.wait() == 0 and login.is_as_before(), login.text()


def press(sitting, keys, seen):
    after = len(sitting.text())
    sitting.type(keys)
    sitting.see(seen, after)


def use_a_terminal(person):
    with shell(person, rows=33, columns=111) as sitting:
        assert not sitting.is_as_before(), "keys are no bytes"
        sitting.say("stty size", "33 111\r\n")
        sitting.resize(44, 122)
        wait_until("the size to arrive", lambda: sitting.say("stty size", PROMPT) and "44 122\r\n" in sitting.text())
        sleep = "sh -c 'echo up-$((6*7)); exec sleep 1000'"
        sitting.say(sleep, "up-42")
        press(sitting, "\x03", PROMPT)
        sitting.say("echo ended-$?", "ended-130")
        sitting.say(sleep, "up-42")
        press(sitting, "\x1a", "Stopped")
        sitting.say("jobs; kill %1; wait; echo over-$((6*7))", "over-42")
        sitting.say("seq 1 1000 | less", ":")
        press(sitting, "G", "1000")
        press(sitting, "q", PROMPT)
        sitting.say("vim -u NONE /tmp/written", "~")
        press(sitting, "ikept in vim\x1b:wq\r", PROMPT)
        sitting.say("cat /tmp/written", "kept in vim\r\n")
        sitting.type("exit 7\r")
        assert sitting.wait() == 7, sitting.text()
        assert sitting.is_as_before(), "the terminal is not as it was"


def stop_and_go_on(person):
    """The terminal is the job's that is in the foreground."""
    program = world.programs_folder() / "sandfleet"
    with Sitting("bash", "--noprofile", "--norc", "-i", env={**person.env, "PS1": "home> ", "TERM": "xterm"}) as home:
        home.see("home> ")
        home.say(f"{program} shell -e PS1='{PROMPT}' -- bash --noprofile --norc -i", PROMPT)
        home.say("kept=whole; echo set-$((6*7))", "set-42")
        press(home, "~?", "~. leaves")
        press(home, "\r~\x1a", "Stopped")
        home.say("stty -a | grep -o ' icanon'; stty erase '^G'; echo home-$((6*7))", " icanon\r\nhome-42")
        home.say("bg; echo behind-$((6*7))", "behind-42")  # Where it stops, as any that wants the terminal.
        behind = len(home.text())
        wait_until(home.text, lambda: home.say("jobs", "home> ") and "Stopped" in home.text()[behind:])
        home.type("fg\r")
        is_whole(home)
        press(home, "exit\r", "home> ")
        home.say("stty -a | grep -o 'erase = [^;]*'", "erase = ^G")
        home.type("exit\r")
        assert home.wait() == 0, home.text()


def test_a_shell_is_a_terminal_as_at_home():
    with typed() as person:
        log_in(person)
        use_a_terminal(person)
        stop_and_go_on(person)
        with sandfleet(person, "shell", "--", "no-such-command") as missing:
            assert missing.wait() == 127 and missing.is_as_before(), missing.text()
        code, _, err = person.run("shell")
        assert code == 125 and "exec -i" in err, (code, err)
        assert all(each["state"]["empty"] for each in person.listed()), f"something was left: {person.listed()}"


def leave_without_a_link(person):
    """The line to come back by; agentd is killed twice meanwhile."""
    odd = f"{os.path.dirname(person.agentd.socket)}/it's $HOME"
    os.symlink(person.agentd.socket, odd)
    with shell(person, "--socket", odd, "--escape-char", "'") as sitting:
        sitting.say("kept=whole; echo set-$((6*7))", "set-42")
        person.agentd.program.kill()
        sitting.type("echo \"typed-$((6*7))\"\r")
        person.agentd.start()
        sitting.see("typed-42")
        person.agentd.program.kill()
        sitting.see("no link to the sandbox")
        sitting.type("\r'.")
        assert sitting.wait() == 0 and sitting.is_as_before(), sitting.text()
        person.agentd.start()
        return way_back(sitting)


def hold_over_a_pause(person, sitting):
    person.controller.cli("pause", "box", "--wait")
    # Who types hears why nothing moves.
    sitting.type("echo woken-$((6*7))\r")
    sitting.see("sandfleet resume default/box")
    person.controller.cli("resume", "box", "--wait")
    sitting.see("woken-42")
    is_whole(sitting)


def test_a_terminal_outlives_whoever_sits_at_it():
    with typed() as person:
        back = leave_without_a_link(person)
        (listed,) = [each for each in person.listed() if not each["state"]["exited"]]
        handle = listed["handle"]
        assert back.endswith(f" default/box {handle}") and listed["state"]["detached"], listed
        _, out, _ = person.run("ps")
        assert re.search(rf"{handle} +\d+ +Running +\d+[sm] +100x30 +yes +bash", out.decode()), out
        with pasted(person, back, rows=20, columns=90) as again:
            again.see("set-42")
            is_whole(again)
            again.say("stty size", "20 90\r\n")
            # Whoever comes next has it.
            with pasted(person, back) as newest:
                is_whole(newest)
                assert again.wait() == 255 and again.is_as_before(), again.text()
                assert "somebody else" in again.text() and way_back(again) == back, again.text()
                newest.process.kill()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with pasted(person, back) as ended:
                is_whole(ended)
                ended.signal(number)
                assert ended.wait() == 128 + number and ended.is_as_before(), ended.text()
        with pasted(person, back) as last:
            is_whole(last)
            hold_over_a_pause(person, last)
            last.type("exit 5\r")
            assert last.wait() == 5 and last.is_as_before(), last.text()
        with pasted(person, back) as over:
            assert over.wait() == 5 and "<whole>" in over.text(), over.text()
        code, out, err = person.run("logs", handle)
        assert code == 0 and b"set-42" in out and b"exit 5" in out, (code, out, err)


LOUD = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo line-$i; done; echo oops >&2; cat; exit 3"


def detach(person, *command):
    code, out, err = person.run("exec", "--detach", "--", *command)
    assert code == 0, err
    return out.decode().strip()


def read_what_is_kept(person):
    lines = [f"line-{number + 1}" for number in range(60000)]
    handle = detach(person, "sh", "-c", LOUD)
    wait_until("its end", lambda: all(each["state"]["settled"] for each in person.listed()))
    code, out, err = person.run("attach", handle)
    assert code == 3, (code, err)
    kept, all_bytes = out.decode(), sum(map(len, lines)) + len(lines)
    assert "\n".join(lines).endswith(kept.strip()) and len(kept) == 256 << 10, len(kept)
    assert f"the first {all_bytes - len(kept)} bytes of its stdout are gone" in err and "oops\n" in err, err
    # What is not kept stands in a file, whole, once it is over.
    code, out, err = person.run("logs", handle, "--stdout")
    assert code == 0 and out.decode().split() == lines and not err, (code, len(out), err)
    code, out, err = person.run("logs", "default/box", handle, "--tail", "3")
    assert (code, out.decode().split(), err) == (0, lines[-3:], "oops\n"), (code, out, err)


SLOW = "echo one; while ! test -e /tmp/go; do sleep 0.05; done; echo two; echo three >&2"


def follow_together(person):
    """As many as like, while one is attached."""
    slow = detach(person, "sh", "-c", SLOW)
    with person.begin("logs", "-f", slow) as first, person.begin("logs", slow, "--follow", "--tail", "1") as second:
        for each in (first, second):  # By then what comes is theirs, too.
            assert each.stdout.readline() == b"one\n"
        with person.begin("attach", slow) as left:
            assert left.stdout.readline() == b"one\n"
            left.send_signal(signal.SIGINT)
            code, _, err = person.end_of(left)
            assert code == 130 and f"/sandfleet attach default/box {slow}" in err, (code, err)
        told = person.run("exec", "--", "touch", "/tmp/go")
        assert told[0] == 0, told
        for each in (first, second):
            told = person.end_of(each)
            assert told == (0, b"two\n", "three\n"), told


def test_what_was_detached_is_read_and_attended_to():
    with typed() as person:
        read_what_is_kept(person)
        follow_together(person)
        # What belongs to somebody is not taken from him.
        with person.begin("exec", "--", "sh", "-c", "echo up; exec sleep 1000") as running:
            assert running.stdout.readline() == b"up\n"
            (its,) = [each["handle"] for each in person.listed() if not each["state"]["exited"]]
            code, _, err = person.run("attach", its)
            assert code == 125 and "belongs to a session" in err, (code, err)
            person.run("kill", its)
            told = person.end_of(running)
            assert told[0] == 143, told
        for words, code in (("attach", 125), ("logs", 3)):
            told = person.run(words, "0123456789abcdef")
            assert told[0] == code, told


if __name__ == "__main__":
    os.environ.pop("PS1", None)
    world.run_test_named_by(sys.argv[1:], globals())
