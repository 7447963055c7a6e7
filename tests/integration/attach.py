"""The attach service beside a folder of manifests: who may ask at its socket, what it tells, and how it fares when processes
and folders go. Run one test: attach.py NAME; without a name: their names."""

import collections
import contextlib
import http.client
import json
import os
import socket
import stat
import sys

from whole import delete_all, whole_world, world
from ways import claims_of, executor_says, signed
from world import provider_manifest, sandbox_manifest, wait_until

Told = collections.namedtuple("Told", "status body retry_after")
NOBODY = 65534


class AtSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("attach", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def ask(path, name="box", space="default"):
    with contextlib.closing(AtSocket(path)) as connection:
        connection.request("POST", "/v1/attach", json.dumps({"namespace": space, "name": name}))
        answer = connection.getresponse()
        return Told(answer.status, json.loads(answer.read()), answer.getheader("Retry-After"))


def refusal(*arguments):
    told = ask(*arguments)
    assert set(told.body) == {"reason", "message"}, told
    return told.status, told.body["reason"]


def ask_as(user, groups, path):
    """What another user of this machine is told: a status, or the error."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        words = "nothing"
        try:
            os.setgroups(groups)
            os.setgid(user)
            os.setuid(user)
            words = str(ask(path).status)
        except OSError as error:
            words = type(error).__name__
        finally:
            os.write(tell, words.encode())
            os._exit(0)
    os.close(tell)
    with open(told, encoding="utf-8") as words:
        text = words.read()
    os.waitpid(child, 0)
    return text


def test_whoever_may_open_its_socket_gets_the_way_to_the_executor():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("box", sandbox_manifest("box"))
        box, door = controller.wait_ready("box")["box"], controller.state / "attach.sock"
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        told = ask(door)
        assert told.status == 200, told
        given = dict(told.body)
        endpoint, token, _ = given.pop("endpoint"), given.pop("token"), given.pop("expires")
        seen = controller.sandboxes()["box"]
        assert given == {"namespace": "default", "name": "box", "uid": seen["metadata"]["uid"], "sandboxID": box,
                         **{each: seen["status"][each] for each in ("epoch", "incarnation", "run")}}, told
        key, claims = (controller.state / "fleet.key").read_bytes(), claims_of(token)
        assert token == signed(key, "attach", claims) and claims["subject"] == f"uid:{os.geteuid()}", claims
        code, health = executor_says(endpoint, signed(key, "admin", claims))
        assert code == 200 and health["identity"] == {each: given[each] for each in ("uid", "epoch", "incarnation", "run")}, health

        assert refusal(door, "nowhere") == (404, "NotFound")
        controller.declare("box", sandbox_manifest("box", desired="Paused"))
        wait_until(lambda: "paused\n" + controller.story(), lambda: ask(door).status == 409)
        assert refusal(door) == (409, "Paused")
        log = controller.program.output()
        assert f"caller=uid:{os.geteuid()}" in log and f"client=pid:{os.getpid()}" in log, log[-4000:]
        assert token not in log and token.split(".")[2] not in log, "a token in the log"
        assert 'sandfleet_attach_requests_total{outcome="Attached"}' in controller.ask("/metrics")[1]
        delete_all(provider, controller, ["box"])
    assert not door.exists(), "a socket is left"


def test_others_of_the_machine_may_ask_where_a_group_of_theirs_may():
    with whole_world() as (provider, controller), world.temporary_folder("attach") as folder:
        folder.chmod(0o755)
        door = folder / "attach.sock"
        controller.arguments = ("--attach-socket", door, "--attach-socket-group", "4242")
        with controller:
            controller.declare("provider", provider_manifest(provider))
            controller.declare("box", sandbox_manifest("box"))
            controller.wait_ready("box")
            assert (door.stat().st_gid, stat.S_IMODE(door.stat().st_mode)) == (4242, 0o660)
            assert ask_as(NOBODY, [4242], door) == "200"
            assert ask_as(NOBODY, [], door) == "PermissionError"
            door.chmod(0o666)  # By mistake.
            assert ask_as(NOBODY, [], door) == "403"
            assert f"caller=uid:{NOBODY}" in controller.program.output()
            assert not (controller.state / "attach.sock").exists()
            delete_all(provider, controller, ["box"])


def test_it_is_there_again_after_a_crash_and_with_its_folder():
    with whole_world() as (provider, controller):
        door, aside = controller.state / "attach.sock", controller.folder / "aside"
        controller.declare("provider", provider_manifest(provider))
        controller.declare("box", sandbox_manifest("box"))
        with controller:
            controller.wait_ready("box")
            controller.program.kill()
            assert door.exists()
            controller.start()
            controller.wait_ready("box")
            assert ask(door).status == 200
            door.unlink()
            wait_until("its socket again", lambda: door.exists() and ask(door).status == 200)
            controller.state.rename(aside)
            controller.state.mkdir()
            wait_until(lambda: "closed\n" + controller.program.output(),
                       lambda: "a socket is closed" in controller.program.output())
            assert not list(controller.state.iterdir()), "a socket in the folder of somebody else"
            controller.state.rmdir()
            aside.rename(controller.state)

            def answers():
                with contextlib.suppress(OSError):
                    return ask(door).status == 200
            wait_until(lambda: "it to answer\n" + controller.program.output(), answers)
            wait_until(lambda: f"{controller.ask('/readyz')} to be ready", lambda: controller.ask("/readyz")[0] == 200)
            delete_all(provider, controller, ["box"])


if __name__ == "__main__":
    world.need_root()
    world.run_test_named_by(sys.argv[1:], globals())
