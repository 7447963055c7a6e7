"""The blocking face over the real chain."""

import os
import signal
import threading

import pytest
import world

from sandfleet import PIPE, CommandTimedOut
from sandfleet.sync import Sandbox


def test_files_and_commands_without_await(chain):
    told = []
    with Sandbox("default/box", socket=chain.socket, ripgrep=world.where("rg")) as box:
        assert box.files.write("sync/a", "text").created
        assert box.files.read_text("sync/a") == "text"
        assert b"".join(box.files.stream("sync/a")) == b"text"
        assert [entry.name for entry in box.files.tree("sync")] == ["a"]
        assert box.search.glob("sync").paths == ("a",)
        assert [line.text for line in box.search.grep("ex", "sync").lines] == ["text"]
        result = box.run(["sh", "-c", "echo out; exit 2"], on_stdout=told.append)
        assert (result.exit_code, [piece.data for piece in told]) == (2, [b"out\n"])
        with box.spawn(["cat"], stdin=PIPE) as cat:
            cat.stdin.write(b"typed\n")
            cat.stdin.close()
            assert cat.stdout.read() == b"typed\n"
            assert cat.wait("empty").exit_code == 0
        with box.files.watch("sync") as changes:
            box.files.write("sync/b", "")
            assert any(change.path == "b" for change in changes)
        assert box.cwd == box.welcome.cwd and not box.quarantined
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sandfleet")]


# covers: M7
def test_nothing_is_left_of_what_timed_out_or_was_interrupted(chain, marker):
    endless = ["sh", "-c", "trap '' TERM; setsid sleep 60 & while :; do sleep 0.1; done"]
    with Sandbox("default/box", socket=chain.socket) as box:
        with pytest.raises(CommandTimedOut):
            box.run(endless, env=marker.env, timeout=0.5, grace=0.2)
        assert marker.processes() == {}
        interrupted = threading.Event()

        def interrupt(piece):
            if not interrupted.is_set():
                interrupted.set()
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            box.run(["sh", "-c", f"echo up; {endless[2]}"], env=marker.env, grace=0.2, on_stdout=interrupt)
        assert interrupted.is_set() and marker.processes() == {}
        assert box.run(["true"]).ok
