"""The demo, as people see it. Run one test: demo.py NAME; without a name: their names."""

import contextlib
import os
import re
import signal
import subprocess
import sys

from whole import world

DEADLINE_S = 120
SHOWN = ["machine", "provider", "controller", "ready", "sdk", "agentd", "exec", "exec", "kill -9", "restart", "whole", "ps",
         "shell", "kill -9", "restart", "attach", "pause", "resume", "shell", "exit", "kill -9", "restart", "kill", "delete", "left", "done"]


def words(shown):
    return re.findall(r"^ *[0-9.]+ s  (kill -9|[a-z-]+) ", shown, re.MULTILINE)


@contextlib.contextmanager
def demo(**env):
    """It, begun; afterwards the machine holds nothing of it."""
    with world.temporary_folder("demo") as folder:
        env = {**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1", **env}
        with subprocess.Popen([sys.executable, "-B", world.REPO / "scripts/demo"], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
            try:
                yield process
            except BaseException:
                process.send_signal(signal.SIGINT)
                raise
        left = {"files": list(folder.iterdir()), "processes": world.processes_of(folder), "mounts": world.mounts_under(folder)}
        for pid in left["processes"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert not any(left.values()), left


def test_the_demo_shows_all_and_leaves_nothing():
    world.need_root()
    with demo() as process:
        shown, _ = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0 and words(shown) == SHOWN, f"{process.returncode}\n{shown}"


def interrupt_at(word, number):
    with demo() as process:
        shown = ""
        for line in process.stdout:
            shown += line
            if word in words(shown):
                break
        process.send_signal(number)
        shown += process.communicate(timeout=DEADLINE_S)[0]
        assert process.returncode == 130 and words(shown)[-1] == "clean-up", f"{word}: {process.returncode}\n{shown}"


def test_the_demo_interrupted_leaves_nothing():
    world.need_root()
    interrupt_at("kill -9", signal.SIGINT)
    interrupt_at("shell", signal.SIGHUP)


def test_a_demo_that_was_kept_runs_what_it_says_and_ends_as_it_says():
    world.need_root()
    with demo(KEEP="1") as process:
        shown, _ = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, shown
        *blocks, end = [block for block in re.findall(r"^\n((?:  \S.*\n)+)", shown, re.MULTILINE)]
        try:
            typed = subprocess.run(["bash", "-ec", "\n".join(blocks)], capture_output=True, text=True, timeout=DEADLINE_S)
        finally:
            ended = subprocess.run(["bash", "-ec", end], capture_output=True, text=True, timeout=DEADLINE_S)
        assert typed.returncode == 0, f"{shown}\n{typed}"
        assert "\nuid=1000(user)" in typed.stdout and "\n399989\n" in typed.stdout, typed.stdout
        assert ended.returncode == 0, ended


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
