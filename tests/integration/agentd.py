"""agentd between harnesses and executors, all of them real: what a harness asks for arrives, whatever of what lies between is
cut, frozen or killed. Run one test: agentd.py NAME; without a name: their names."""

import contextlib
import hashlib
import json
import socket
import stat
import sys

from whole import agentd_before_a_box, world
from attach import ask
from direct import DirectHarness, refusal_of
from harness import ACK, CHALLENGE, DATA, END, NOTICE, Closed, Harness, Proxy, new_handle
from ways import claims_of, executor_says, signed
from world import provider_manifest, sandbox_manifest, sum_of, wait_until


def carried(*arguments, through=None, descriptors=None):
    """A sandbox that is Ready, and agentd; what is in sandboxes may be reached `through` a proxy of its port."""
    def manifest(provider):
        plain = provider_manifest(provider)
        return plain.replace(provider.data_url, f"http://127.0.0.1:{through(provider.ports[1])}") if through else plain
    return agentd_before_a_box(*arguments, manifest=manifest, descriptors=descriptors)


def refusal(agentd, **how):
    harness = Harness(agentd.socket, **how)
    with contextlib.closing(harness):
        try:
            harness.dial()
        except Closed as closed:
            return closed
    raise AssertionError(f"let in: {harness.welcomes}")


def test_a_harness_works_with_files_in_its_sandbox():
    with carried() as (provider, controller, agentd):
        assert stat.S_IMODE(agentd.socket.stat().st_mode) == 0o660
        assert agentd.ask("/readyz")[0] == 200
        with Harness(agentd.socket) as harness:
            welcome = harness.welcomes[0]
            seen = controller.sandboxes()["box"]
            assert (welcome["uid"], welcome["epoch"]) == (seen["metadata"]["uid"], seen["status"]["epoch"]), welcome
            assert welcome["expiresMs"] == 0 and "files" in welcome["features"], welcome
            made = harness.call("fs.mkdir", {"path": "a/b", "parents": True}, mutating=True)
            assert made["created"], made
            info = harness.call("fs.stat", {"path": "a/b"})["info"]
            assert info["type"] == "directory", info
            half = harness.ask("fs.write", {"path": "a/half"}, mutating=True, up=True)
            harness.send(DATA, half, {"offset": 0}, b"half")
            harness.send(DATA, half, {"offset": 4, "error": {"code": "CANCELLED", "message": "its source is gone"}}, flags=END)
            harness.wait(lambda: half in harness.replies)
            assert harness.replies[half]["error"]["code"] == "FS_ABORTED", harness.replies[half]
            assert harness.call("fs.stat", {"path": "a/half"})["info"] is None
            box = seen["status"]["sandboxID"]
            assert world.run_inside(provider, box, "ls -d $HOME/a/b")[0] == 0
            assert agentd.metrics()["sandfleet_agentd_links"] == 1
            harness.end()
        wait_until("no link", lambda: agentd.metrics()["sandfleet_agentd_links"] == 0)


def test_who_has_no_business_there_is_told():
    with carried("--sandbox", "default/box", "--links-max", "1") as (_, controller, agentd):
        nowhere = refusal(agentd, sandbox="default/nowhere")
        assert nowhere.reason == "denied" and "nowhere" in nowhere.message, nowhere
        with Harness(agentd.socket):
            many = refusal(agentd)
            assert many.reason == "busy" and many.retry_after_ms, many
        controller.declare("box", sandbox_manifest("box", desired="Paused"))
        wait_until(controller.story, lambda: controller.sandboxes()["box"]["status"].get("state") == "Paused")
        paused = refusal(agentd)
        assert paused.reason == "quiesce" and "sandfleet resume default/box" in paused.message, paused


def test_thousands_that_say_nothing_keep_nobody_out():
    with carried(descriptors=(256, 256)) as (_, _, agentd), Harness(agentd.socket) as harness:
        before, silent = agentd.metrics()["process_resident_memory_bytes"], []
        for number in range(3000):
            each = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            each.setblocking(False)
            silent.append(each)
            with contextlib.suppress(BlockingIOError):  # So many wait already that the kernel takes no more.
                each.connect(str(agentd.socket))
            if number % 500 == 0:
                harness.call("fs.stat", {"path": "/"})
        with Harness(agentd.socket) as another:
            another.call("fs.stat", {"path": "/"})
        harness.call("fs.stat", {"path": "/"})
        seen = agentd.metrics()
        assert seen["process_open_fds"] <= 256 and seen["process_resident_memory_bytes"] < before + (128 << 20), seen
        assert sum_of(seen, "sandfleet_agentd_closes_total") > 2500, seen
        for each in silent:
            each.close()
        wait_until("their places free", lambda: agentd.metrics()["process_open_fds"] < 60)


def test_who_does_not_read_holds_nobody_up():
    with carried() as (provider, controller, agentd), Harness(agentd.socket) as stalled, Harness(agentd.socket) as other:
        box = controller.sandboxes()["box"]["status"]["sandboxID"]
        assert world.run_inside(provider, box, "head -c 200000000 /dev/zero > $HOME/big")[0] == 0
        before = agentd.metrics()["process_resident_memory_bytes"]
        for _ in range(8):
            stalled.ask("fs.readBytes", {"path": "big"}, down=True)
        for _ in range(50):
            other.call("fs.stat", {"path": "/"})
        after = agentd.metrics()
        assert after["process_resident_memory_bytes"] < before + (16 << 20), (before, after)


def test_a_session_goes_on_after_a_pause():
    with carried() as (_, controller, agentd), Harness(agentd.socket) as harness:
        harness.call("fs.mkdir", {"path": "before"}, mutating=True)
        controller.cli("pause", "box")
        wait_until(controller.story, lambda: controller.sandboxes()["box"]["status"].get("state") == "Paused")
        controller.cli("resume", "box")
        harness.wait(lambda: len(harness.welcomes) == 2)
        assert harness.welcomes[1]["resumed"], harness.welcomes
        assert harness.call("fs.stat", {"path": "before"})["info"]["type"] == "directory"


class Survivor(Harness):
    """Goes on in another session when its own is lost, and hears what it is told of that."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.losses, self.notices = [], []

    def _begin(self, welcome):
        if self.session and not welcome["resumed"]:
            self.losses.append(welcome["why"])
            self.session, self.last_seq = None, 0
            self.waiting.clear()
        super()._begin(welcome)

    def _take(self, kind, flags, stream, header, payload):
        if kind != NOTICE:
            return super()._take(kind, flags, stream, header, payload)
        self.notices.append(header)
        self.send(ACK, 0, {"notices": header["number"]})


class Intruder(DirectHarness):
    """Does not mind that whoever answers has another key."""

    def _take(self, kind, flags, stream, header, payload):
        if kind == CHALLENGE:
            header["proof"] = self._proof("executor", header["nonce"])
        super()._take(kind, flags, stream, header, payload)


def intrude(way):
    with contextlib.closing(Intruder(way)) as harness:
        try:
            harness.dial()
        except Closed as closed:
            return closed.reason, closed.message
    raise AssertionError(f"let in: {harness.welcomes}")


def put_in_place_of(provider, controller, box):
    """Another E2B sandbox, of the next epoch, as after a restore of a controller's records from before it was made."""
    detail = provider.ask("GET", f"/sandboxes/{box}")[1]
    assert provider.ask("DELETE", f"/sandboxes/{box}")[0] == 204
    metadata = detail["metadata"] | {"sandfleet.epoch": "2", "sandfleet.nonce": "0" * 32}
    status, made = provider.ask("POST", "/sandboxes", {"templateID": detail["templateID"], "timeout": 300, "secure": True,
                                                       "autoPause": True, "metadata": metadata})
    assert status == 201, made
    (record,) = (controller.state / "sandboxes").rglob("*.json")
    told = json.loads(record.read_text())
    del told["object"]["status"]
    record.write_text(json.dumps(told))


def test_a_new_epoch_loses_all_sessions_and_takes_no_key_of_the_old_one():
    with carried() as (provider, controller, agentd), contextlib.ExitStack() as links:
        door, fleet_key = controller.state / "attach.sock", (controller.state / "fleet.key").read_bytes()
        at_work, handle, old = [links.enter_context(Survivor(agentd.socket)) for _ in range(3)], new_handle(), ask(door).body
        at_work[0].call("process.spawn", {"handle": handle, "argv": ["sleep", "600"], "graceMs": 3000, "stdin": "ignore",
                                          "stdout": "discard", "stderr": "discard"}, mutating=True)
        assert refusal_of(old) is None
        controller.program.stop()
        put_in_place_of(provider, controller, old["sandboxID"])
        controller.start()

        for harness in at_work:
            harness.wait(lambda harness=harness: harness.losses and harness.notices and harness.open)
            harness.call("fs.mkdir", {"path": harness.session}, mutating=True)
            told = [each["kind"] for each in harness.notices]
            assert (harness.losses, told) == (["lost"], ["recreated"]), (harness.losses, harness.notices)
            assert (harness.welcomes[-1]["epoch"], harness.welcomes[-1]["uid"]) == (2, old["uid"]), harness.welcomes
        lost = at_work[0].ask("process.wait", {"handle": handle, "until": "exit"})
        at_work[0].wait(lambda: lost in at_work[0].replies)
        assert at_work[0].replies[lost]["error"]["code"] == "NOT_FOUND", at_work[0].replies

        # What was given out before opens nothing, nor does what the keys that root could read in the old sandbox can sign.
        new = ask(door).body
        claims = claims_of(new["token"])
        assert refusal_of({**new, "token": old["token"]}) == "token refused: it is for another executor"
        assert intrude({**new, "token": signed(fleet_key, "attach", claims, key_of_epoch=1)}) == ("denied", "the token was not proven")
        assert executor_says(new["endpoint"], signed(fleet_key, "admin", claims, key_of_epoch=1))[0] == 401
        assert executor_says(new["endpoint"], signed(fleet_key, "admin", claims))[0] == 200
        assert refusal_of(new) is None


def test_a_session_outlives_agentd():
    with carried() as (_, _, agentd):
        harness = Harness(agentd.socket).connect()
        harness.call("fs.mkdir", {"path": "before"}, mutating=True)
        session = harness.session
        agentd.program.kill()
        assert agentd.socket.exists()
        unanswered = harness.ask("fs.mkdir", {"path": "meanwhile"}, mutating=True)
        agentd.start()
        harness.connect()
        assert harness.session == session and harness.welcomes[0]["resumed"], harness.welcomes
        harness.wait(lambda: unanswered in harness.replies)
        assert harness.replies[unanswered]["ok"]["created"], harness.replies
        agentd.program.process.terminate()
        closed = harness.end_of_link()
        assert closed.reason == "shutdown" and closed.retry_after_ms, closed
        harness.close()
        assert agentd.program.process.wait(30) == 0, agentd.program.output()


@contextlib.contextmanager
def cut_at_will():
    """The same, through a proxy that can cut what agentd has to the executor."""
    proxies = []

    def through(port):
        proxies.append(Proxy(port))
        return proxies[0].port

    with carried(through=through) as world_of_it, contextlib.closing(proxies[0]) as proxy:
        yield *world_of_it, proxy


def receive_with_cuts(agentd, proxy, harness, stream, every_bytes):
    """To the end of the stream: the link to the executor is cut again and again, and each fifth time agentd is killed.
    What was asked for meanwhile acts once."""
    cuts, kills, made = 0, 0, []
    while not stream.ended:
        made.append(harness.ask("fs.mkdir", {"path": f"made-{len(made)}"}, mutating=True))
        if len(made) % 5 == 0:
            agentd.program.kill()
            kills += 1
            agentd.start()
        else:
            cuts += proxy.cut()
        enough = len(stream.content) + every_bytes
        try:
            harness.wait(lambda: stream.ended or len(stream.content) > enough)
        except Closed:
            harness.connect()
    assert stream.error is None, stream.error
    harness.wait(lambda: not harness.waiting)
    assert all(harness.replies[each]["ok"]["created"] for each in made), harness.replies
    assert cuts >= 5 and kills >= 2, (cuts, kills)


def test_a_download_is_exact_whatever_is_cut():
    with cut_at_will() as (provider, controller, agentd, proxy), Harness(agentd.socket) as harness:
        box = controller.sandboxes()["box"]["status"]["sandboxID"]
        code, digest = world.run_inside(provider, box, "head -c 12000000 /dev/urandom > $HOME/big; sha256sum < $HOME/big")
        assert code == 0
        number = harness.ask("fs.readBytes", {"path": "big"}, down=True)
        receive_with_cuts(agentd, proxy, harness, harness.streams[number], 900_000)
        assert hashlib.sha256(harness.streams[number].content).hexdigest() == digest.split()[0]


def test_a_commands_output_is_exact_whatever_is_cut():
    with cut_at_will() as (_, _, agentd, proxy), Harness(agentd.socket) as harness:
        output, handle = harness.new_stream(), new_handle()
        harness.call("process.spawn", {"handle": handle, "argv": ["sh", "-c", "seq 1000000; exit 7"], "graceMs": 3000, "stdin": "ignore",
                                       "stdout": {"pipe": output}, "stderr": "discard"}, mutating=True, streams=[output])
        receive_with_cuts(agentd, proxy, harness, harness.streams[output], 500_000)
        assert harness.streams[output].content == b"".join(b"%d\n" % number for number in range(1, 1_000_001))
        ended = harness.call("process.wait", {"handle": handle, "until": "empty"})
        assert ended["reached"] and ended["state"]["exitCode"] == 7, ended


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
