"""What idles is paused, what works is not, and whoever wants something wakes it: a controller, agentd, the command line, and
executors in real sandboxes. Run one test: idle.py NAME; without a name: their names."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import threading

from exec import Typed
from whole import agentd_before_a_box, mutations, world
from harness import Harness
from world import sandbox_manifest, series_in, sum_of, wait_until

IDLE = "  lifecycle: {{idleSeconds: 1, wakeOnAttach: {wakes}}}\n"
CONNECTS = "/connect"


@dataclasses.dataclass
class Said:
    """All that a command said, and how it ended: what is shown where that is not as expected."""
    words: list
    code: int
    out: str
    err: str


class Place(Typed):
    """A sandbox that may idle, with its provider."""

    def __init__(self, provider, controller, agentd):
        super().__init__(agentd, controller)
        self.provider = provider
        self.box = controller.sandboxes()["box"]["status"]["sandboxID"]

    def status(self):
        return self.controller.sandboxes()["box"]["status"]

    def ended(self, process, code=0):
        out, err = process.communicate(timeout=60)
        said = Said(process.args[1:], process.returncode, out, err)
        assert said.code == code, f"{said}\n{self.controller.story()}"
        return said

    def run(self, *words, code=0):
        with self.begin(*words, text=True) as process:
            return self.ended(process, code)

    def counted(self, metric):
        return sum_of(series_in(self.controller.ask("/metrics")[1]), metric)

    def idles(self):
        return self.controller.condition("box", "Paused").get("reason") == "Idle"

    def wait_idle(self):
        wait_until(lambda: f"it to idle\n{self.controller.story()}", self.idles)
        status = self.status()
        assert (status["pausedBy"], status["state"], self.controller.condition("box")["reason"]) == ("Idle", "Paused", "Idle"), status
        assert self.controller.sandboxes()["box"]["spec"]["desiredState"] == "Running"

    def rests(self):
        return self.agentd.program.output().count("then=rests")

    def story(self):
        return f"{self.controller.story()}\n{self.agentd.program.output()}"

    def looks(self):
        return sum(each == "GET /v1/activity" for each in self.provider.asked_inside(self.box))

    def connects(self):
        return sum(each.endswith(CONNECTS) for each in mutations(self.provider))


@contextlib.contextmanager
def ends_in_time(process):
    """Who hangs is killed, so that whoever reads of it hears of its end."""
    late = threading.Timer(60, process.kill)
    late.start()
    try:
        yield
    finally:
        late.cancel()


@contextlib.contextmanager
def place(wakes=True):
    box = sandbox_manifest("box") + IDLE.format(wakes=str(wakes).lower())
    with agentd_before_a_box(box=box) as (provider, controller, agentd):
        yield Place(provider, controller, agentd)


def test_what_idles_is_paused_and_woken_by_whoever_attaches():
    with place() as here:
        here.run("exec", "--", "sh", "-c", "echo kept >$HOME/file")
        handle = here.run("exec", "--detach", "--", "sleep", "1000").out.strip()
        here.wait_idle()
        asked = len(here.provider.asked_inside(here.box))
        connects = here.connects()
        assert here.counted("sandfleet_idle_pauses_total") == 1 + here.counted("sandfleet_wakes_total")
        here.controller.program.kill()
        here.controller.start()  # And looks at everything anew, but not inside.
        wait_until("a list", lambda: here.counted("sandfleet_provider_requests_total") > 0)
        here.controller.cli("reconcile", "box")
        assert here.idles() and len(here.provider.asked_inside(here.box)) == asked, here.provider.asked_inside(here.box)[asked:]

        with concurrent.futures.ThreadPoolExecutor(4) as people:
            told = list(people.map(lambda _: here.run("exec", "--", "cat", "file"), range(4)))
        assert [each.out for each in told] == ["kept\n"] * 4, told
        said = here.run("ps", "-o", "json")
        assert json.loads(said.out)["processes"][0]["handle"] == handle, f"its memory was kept: {handle} {said}"
        woken = here.counted("sandfleet_wakes_total")
        assert 1 <= woken <= 1 + here.counted("sandfleet_idle_pauses_total"), "several wake it once"
        assert here.connects() - connects == woken, mutations(here.provider)
        events = here.run("events", "box")
        assert " Idle " in events.out and " Waking " in events.out, events


def test_what_works_is_not_paused():
    with place() as here:
        handle = here.run("exec", "--detach", "--", "sh", "-c", "while :; do :; done").out.strip()
        looked, paused = here.looks(), here.counted("sandfleet_idle_pauses_total")  # It may have idled before.
        wait_until(lambda: f"several looks\n{here.controller.story()}", lambda: here.looks() >= looked + 4)
        assert here.controller.is_ready("box") and here.counted("sandfleet_idle_pauses_total") == paused, here.controller.story()
        here.run("kill", handle)
        # Who only waits, or follows what says nothing, does not keep it up, and hears the end of it all the same.
        silent = here.run("exec", "--detach", "--", "sleep", "2000").out.strip()
        with here.begin("exec", "--", "sleep", "1000", text=True) as waiting, here.begin("logs", "-f", silent, text=True) as following:
            rests = here.rests()
            here.wait_idle()
            wait_until(lambda: f"who waits to rest\n{here.story()}", lambda: here.rests() > rests)
            said = here.run("ps", "-o", "json")
            found = [each["handle"] for each in json.loads(said.out)["processes"] if each["argv"] == ["sleep", "1000"]]
            assert len(found) == 1, said
            here.run("kill", *found)
            here.ended(waiting, code=128 + 15)
            here.run("kill", silent)
            here.ended(following)


def test_who_may_not_wake_it_is_told_how():
    with place(wakes=False) as here:
        here.wait_idle()
        told = here.run("exec", "--", "true", code=125)
        assert "paused because it idled" in told.err and "`sandfleet resume default/box`" in told.err, told
        assert here.idles()
        here.run("resume", "box", "--wait")
        here.wait_idle()
        here.controller.declare("box", sandbox_manifest("box"))  # It may idle for ever.
        here.controller.wait_ready("box")
        here.run("exec", "--", "true")


def test_a_request_of_an_open_session_wakes_it():
    with place() as here, Harness(here.agentd.socket) as harness:
        harness.call("fs.mkdir", {"path": "before"}, mutating=True)
        session = harness.session
        for number in range(2):
            here.wait_idle()
            made = harness.ask("fs.mkdir", {"path": f"after-{number}"}, mutating=True)
            harness.wait(lambda made=made: made in harness.replies)
            assert harness.replies[made]["ok"]["created"] and harness.session == session, harness.replies
        assert harness.call("fs.stat", {"path": "before"})["info"]["type"] == "directory"
        here.wait_idle()
        here.controller.declare("box", sandbox_manifest("box") + IDLE.format(wakes="false"))
        wait_until(here.controller.story, lambda: "wakeOnAttach" in here.controller.condition("box").get("message", ""))
        harness.ask("fs.stat", {"path": "before"})
        closed = harness.end_of_link()
        assert closed.reason == "quiesce" and "sandfleet resume default/box" in closed.message, closed


def test_bytes_that_wait_wake_it():
    with place() as here:
        with here.begin("exec", "-i", "--", "cat", stdin=subprocess.PIPE) as typing:
            for line in (b"one\n", b"two\n"):
                typing.stdin.write(line)
                typing.stdin.flush()
                with ends_in_time(typing):
                    heard = typing.stdout.readline()
                assert heard == line, f"{heard}\n{here.story()}"
                here.wait_idle()
            typing.stdin.close()
            with ends_in_time(typing):
                code = typing.wait()
            assert code == 0, f"its end of input: {code}\n{here.story()}"

        size = 5_000_000
        here.run("exec", "--", "sh", "-c", f"head -c {size} /dev/zero >$HOME/zeros")
        with here.begin("exec", "--", "cat", "zeros") as reading:
            got = len(os.read(reading.stdout.fileno(), 1 << 16))
            here.wait_idle()
            with ends_in_time(reading):
                got += len(reading.stdout.read())
                code = reading.wait()
            assert (code, got) == (0, size), f"{code} {got}\n{here.story()}"


def test_a_controller_that_dies_on_the_way_comes_out_the_same():
    with place() as here:
        here.run("exec", "--", "sh", "-c", "echo kept >$HOME/file")

        def die():
            here.controller.program.kill()
            here.controller.start()
        steps = [("the record", lambda: here.status().get("pausedBy") == "Idle"),
                 ("the pause", lambda: here.provider.sandboxes()[here.box]["state"] == "paused")]
        for what, there in steps:
            wait_until(lambda what=what: f"{what}\n{here.controller.story()}", there, every_s=0.002)
            die()
            here.wait_idle()
            with here.begin("exec", "--", "cat", "file", text=True) as waking:
                wait_until(here.controller.story, lambda: "sandfleet.dev/wake-requested-at" in
                           here.controller.sandboxes()["box"]["metadata"].get("annotations", {}), every_s=0.002)
                die()
                said = here.ended(waking)
                assert said.out == "kept\n", f"{said}\n{here.controller.story()}"
        assert here.status()["incarnation"] == 1, here.status()


if __name__ == "__main__":
    world.need_root()
    world.run_test_named_by(sys.argv[1:], globals())
