"""Commands in sandboxes, typed as people type them: sandfleet exec, ps and kill, through agentd to an executor, all of them real.
Run one test: exec.py NAME; without a name: their names."""

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading

from whole import agentd_before_a_box, world
from world import wait_until

BYTES = 64 << 20
PIECE = 1 << 20


class Begun(subprocess.Popen):
    """A program that is waited for, but not by a test that has failed already."""

    def __exit__(self, failed, *why):
        if failed:
            self.kill()
        super().__exit__(failed, *why)


class Typed:
    """What a person has at hand: a sandbox that is Ready, agentd, and the command line."""

    def __init__(self, agentd, controller):
        self.agentd, self.controller = agentd, controller
        self.env = {**os.environ, "SANDFLEET_STATE": str(controller.state), "SANDFLEET_SOCKET": str(agentd.socket),
                    "SANDFLEET_SANDBOX": "default/box"}

    def begin(self, *words, **how):
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        return Begun([world.programs_folder() / "sandfleet", *words], env=self.env, **how)

    def run(self, *words, data=None):
        """(exit code, stdout, stderr)"""
        how = {} if data is None else {"stdin": subprocess.PIPE}
        with self.begin(*words, **how) as process:
            out, err = process.communicate(data, timeout=120)
        return process.returncode, out, err.decode()

    @staticmethod
    def end_of(process):
        """The same of one that was begun and is about to end: what of its outputs was not read yet. Who does not end is killed, so that
        what it said is told all the same."""
        late = threading.Timer(60, process.kill)
        late.start()
        try:
            out, err = process.stdout.read(), process.stderr.read().decode()
            return process.wait(), out, err
        finally:
            late.cancel()

    def listed(self):
        code, out, err = self.run("ps", "-o", "json")
        assert code == 0, err
        return json.loads(out)["processes"]


@contextlib.contextmanager
def typed():
    with agentd_before_a_box() as (_, controller, agentd):
        yield Typed(agentd, controller)


EXIT_CODES = [
    (0, ["exec", "--", "true"]),
    (0, ["exec", "default/box", "true"]),
    (1, ["exec", "--", "false"]),
    (42, ["exec", "--", "sh", "-c", "exit 42"]),
    (137, ["exec", "--", "sh", "-c", "kill -9 $$"]),
    (143, ["exec", "--", "sh", "-c", "kill $$"]),
    (127, ["exec", "--", "no-such-command"]),
    (127, ["exec", "--", "/no/such/file"]),
    (126, ["exec", "--", "/etc/passwd"]),
    (126, ["exec", "--", "/tmp"]),
    (125, ["exec", "-C", "/no/such/folder", "--", "true"]),
    (125, ["exec", "default/nobody", "--", "true"]),
    (125, ["exec", "--socket", "/nowhere/agentd.sock", "--", "true"]),
    (124, ["exec", "--timeout", "1", "--", "sleep", "100"]),
    (2, ["exec"]),
    (2, ["exec", "--no-such-flag", "--", "true"]),
    (3, ["kill", "0123456789abcdef"]),
]


def test_exec_ends_as_its_command_does():
    with typed() as person:
        for code, words in EXIT_CODES:
            told = person.run(*words)
            assert told[0] == code, f"{words}: {told} and not {code}"
            assert not told[1], told
            assert bool(told[2]) == (code in (2, 3, 124, 125, 126, 127)), told
        _, out, _ = person.run("exec", "-e", "A=a b", "-e", "GREETING=", "-C", "/tmp", "--", "sh", "-c", 'echo "$A|$GREETING|$PWD"')
        assert out == b"a b||/tmp\n", out
        assert all(each["state"]["empty"] for each in person.listed()), f"something was left: {person.listed()}"


def test_exec_passes_on_every_byte_in_both_directions():
    content = random.Random(7).randbytes(BYTES)
    with typed() as person:
        code, out, err = person.run("exec", "-i", "--", "sh", "-c", "tee /tmp/all; sha256sum /tmp/all >&2", data=content)
        assert code == 0, err
        assert hashlib.sha256(out).digest() == hashlib.sha256(content).digest(), len(out)
        assert err.split()[0] == hashlib.sha256(content).hexdigest(), err
        # What nobody reads on stays what it was: the command hears of it as from any pipe.
        with person.begin("exec", "--", "yes") as endless:
            assert endless.stdout.read(2) == b"y\n"
            endless.stdout.close()
            assert endless.wait(60) == 128 + signal.SIGPIPE, (endless.returncode, endless.stderr.read())
        # Nobody has said that it may have the rest of the loop's input.
        loop = 'for i in 1 2; do "$0" exec -- cat; done; cat'
        told = subprocess.run(["sh", "-c", loop, world.programs_folder() / "sandfleet"], env=person.env, input=b"rest",
                              capture_output=True, timeout=60)
        assert told.stdout == b"rest", told


def test_what_is_closed_here_is_nobody_elses():
    with typed() as person:
        for closing, told in ((">&-", (125, b"", "cannot write what it says: Bad file descriptor")),
                              ("2>&-", (125, b"", "")), ("<&-", (5, b"out\n", "err"))):
            line = f"""exec "$0" exec -i -- sh -c 'echo out; echo err >&2; cat; exit 5' {closing}"""
            done = subprocess.run(["sh", "-c", line, world.programs_folder() / "sandfleet"], env=person.env, capture_output=True,
                                  timeout=60)
            code, out, err = told
            assert done.returncode == code and err in done.stderr.decode(), (closing, done)
            assert done.stdout == out or ">" in closing, (closing, done)
        assert all(each["state"]["empty"] for each in person.listed()), f"something was left: {person.listed()}"


# As a build is: programs that come and go, and much to say on both outputs.
BUILD = r"""
set -e
mkdir -p /tmp/build-$1 && cd /tmp/build-$1
i=0
while [ $i -lt 150 ]; do
  i=$((i+1))
  echo "[$i/150] compiling unit-$i"
  seq $i $((i * 40)) > unit-$i
  sha256sum unit-$i
  echo "unit-$i: warning: $(wc -c < unit-$i) bytes" >&2
done
cat unit-*
cat unit-* | sha256sum >&2
exit 7
"""


def test_a_build_goes_on_while_agentd_is_killed():
    here = subprocess.run(["sh", "-c", BUILD, "sh", f"here-{os.getpid()}"], capture_output=True, timeout=120)
    subprocess.run(["rm", "-rf", f"/tmp/build-here-{os.getpid()}"], check=True)
    assert here.returncode == 7 and len(here.stdout) > 1 << 20, here
    with typed() as person:
        with person.begin("exec", "--", "sh", "-c", BUILD, "sh", "there") as build:
            gathered = {build.stdout: b"", build.stderr: b""}

            def gather(stream):
                for piece in iter(lambda: os.read(stream.fileno(), 4096), b""):
                    gathered[stream] += piece
            readers = [threading.Thread(target=gather, args=[stream]) for stream in gathered]
            for reader in readers:
                reader.start()
            kills = 0
            for seen in (1_000, 5_000, 10_000):
                wait_until("the build to go on", lambda: len(gathered[build.stdout]) > seen or build.poll() is not None)
                if build.poll() is None:
                    person.agentd.program.kill()
                    kills += 1
                    person.agentd.start()
            for reader in readers:
                reader.join(120)
            assert build.wait(60) == 7, (build.returncode, gathered[build.stderr][-1000:])
        assert kills == 3, kills
        assert gathered[build.stdout] == here.stdout, "its output is another"
        assert gathered[build.stderr] == here.stderr, "its warnings are others"


def test_what_is_typed_arrives_while_agentd_is_killed():
    content = random.Random(8).randbytes(8 << 20)
    with typed() as person:
        with person.begin("exec", "-i", "--", "sha256sum", stdin=subprocess.PIPE) as digest:
            for at in range(0, len(content), PIECE):
                digest.stdin.write(content[at:at + PIECE])
                if at // PIECE in (1, 4):
                    person.agentd.program.kill()
                    person.agentd.start()
            digest.stdin.close()
            code, out, err = person.end_of(digest)
            assert code == 0 and out.split()[0].decode() == hashlib.sha256(content).hexdigest(), (code, out, err)


def test_signals_are_the_commands():
    with typed() as person:
        trap = 'trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.1; done'
        with person.begin("exec", "--", "sh", "-c", trap) as caught:
            assert caught.stdout.readline() == b"ready\n"
            caught.send_signal(signal.SIGINT)
            told = person.end_of(caught)
            assert told == (9, b"caught\n", ""), told
        deaf = 'trap "echo heard" INT; trap "" TERM; echo ready; while :; do sleep 0.1; done'
        with person.begin("exec", "--grace", "1", "--", "sh", "-c", deaf) as killed:
            assert killed.stdout.readline() == b"ready\n"
            killed.send_signal(signal.SIGINT)
            # Two that come together are one.
            assert killed.stdout.readline() == b"heard\n"
            killed.send_signal(signal.SIGINT)
            told = person.end_of(killed)
            assert told[0] == 128 + signal.SIGKILL, told
        wait_until("nothing left", lambda: all(each["state"]["empty"] for each in person.listed()))


def test_kill_ends_all_of_what_others_have_begun():
    with typed() as person:
        tree = 'setsid sh -c "trap : TERM; while :; do sleep 0.1; done" & echo ready; wait'
        with person.begin("exec", "--", "sh", "-c", tree) as begun:
            assert begun.stdout.readline() == b"ready\n"
            (mine,) = [each for each in person.listed() if not each["state"]["exited"]]
            code, out, err = person.run("ps")
            assert code == 0 and mine["handle"] in out.decode() and "Running" in out.decode(), (out, err)
            code, out, err = person.run("kill", "--grace", "1", mine["handle"])
            assert code == 0 and b"ended: Killed(SIGTERM)" in out, (out, err)
            told = person.end_of(begun)
            assert told[0] == 128 + signal.SIGTERM, told
        assert all(each["state"]["empty"] for each in person.listed()), person.listed()


def test_what_is_detached_stays_until_it_is_ended():
    with typed() as person:
        code, out, err = person.run("exec", "--detach", "--", "sleep", "1000")
        assert code == 0, err
        handle = out.decode().strip()
        person.agentd.program.kill()
        person.agentd.start()
        (state,) = [each["state"] for each in person.listed() if each["handle"] == handle]
        assert not state["exited"], state
        code, out, err = person.run("kill", "box", handle)
        assert code == 0 and b"ended: Killed(SIGTERM)" in out, (out, err)


def test_an_executor_killed_from_inside_is_back_for_who_waits_for_it():
    """The controller looks by itself every four minutes at the soonest; it hears from agentd that the way in leads nowhere."""
    with typed() as person:
        code, _, err = person.run("exec", "--", "sh", "-c", "kill -9 -1")
        assert code != 0 and err, (code, err)
        story = person.controller.story()
        assert "ExecutorGone" in (person.controller.state / "events.log").read_text(), (code, err, story)
        code, out, err = person.run("exec", "--", "echo", "here again")
        assert (code, out) == (0, b"here again\n"), (code, out, err, story)


def test_a_paused_sandbox_is_not_waited_for():
    with typed() as person:
        person.controller.cli("pause", "box", "--wait")
        code, _, err = person.run("exec", "--", "true")
        assert code == 125 and "sandfleet resume default/box" in err, (code, err)
        person.controller.cli("resume", "box", "--wait")
        wait_until("agentd to let it in", lambda: person.run("exec", "--", "true")[0] == 0)


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
