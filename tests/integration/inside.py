"""What the whole product does with the executors inside of sandboxes: how it brings them to life, and what it makes of those
that refuse, lie or end. Run one test: inside.py NAME; without a name: their names."""

import hashlib
import os
import shutil
import sys

from whole import created, delete_all, whole_world, world
from world import provider_manifest, run_inside, sandbox_manifest, wait_until

ENVD_PORT = 49983
X86_64, ARM64 = 62, 183
KEYS = "POST /process.Process/SendInput"
CALLS = ["GET /v1/health", KEYS, "POST /process.Process/Start", "POST /process.Process/Start", "POST /v1/resumed"]


def test_four_calls_bring_an_executor_to_life_where_the_template_has_it():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        box = controller.wait_ready("one")["one"]
        wait_until(lambda: f"the calls of one preparation: {provider.asked_inside(box)}",
                   lambda: sorted(provider.asked_inside(box)) == CALLS)
        delete_all(provider, controller, ["one"])


def test_a_controller_killed_between_any_two_calls_of_a_preparation_goes_on():
    slow = ("--fault", "data:latency:ms=150")
    with whole_world(*slow) as (provider, controller):
        controller.declare("provider", provider_manifest(provider))
        for done in range(5):
            name = f"after-{done}"
            controller.start()
            controller.declare(name, sandbox_manifest(name))

            def box():
                return controller.sandboxes().get(name, {}).get("status", {}).get("sandboxID")
            wait_until(lambda: f"{done} calls; {controller.story()}",
                       lambda: box() and len(provider.asked_inside(box())) >= done, every_s=0.005)
            controller.program.kill()
            with controller:
                assert controller.wait_ready(name)[name] == box()
                status = controller.sandboxes()[name]["status"]
                assert status["incarnation"] == 1 and not status.get("notices"), status
                # One that has its keys is left alone, so nobody else gets any.
                keys = provider.asked_inside(box()).count(KEYS)
                assert keys == 1 or done < 2, provider.asked_inside(box())
                delete_all(provider, controller, [name])


def test_an_ordinary_users_sandboxes_are_prepared_too():
    with world.temporary_folder("integration") as folder:
        user = world.OrdinaryUser(folder, "sandfleet-local-e2b", "sandfleet-executor")
        with world.Provider(folder / "provider", user=user) as provider, \
                world.Controller(folder / "controller") as controller:
            controller.declare("provider", provider_manifest(provider))
            for name, template in (("one", "base-executor"), ("two", "base")):  # Nothing is paused there.
                controller.declare(name, sandbox_manifest(name, template=template) + "  keepAlive: {onTimeout: Kill}\n")
            ids = controller.wait_ready("one", "two")
            wait_until(lambda: f"the calls of one preparation: {provider.asked_inside(ids['one'])}",
                       lambda: sorted(provider.asked_inside(ids["one"])) == CALLS)
            delete_all(provider, controller, ["one", "two"])


def test_a_controller_without_an_executor_takes_the_templates():
    with whole_world() as (provider, controller):
        controller.programs = controller.folder / "bin"
        controller.programs.mkdir()
        shutil.copy(world.programs_folder() / "sandfleet-controller", controller.programs)
        with controller:
            controller.declare("provider", provider_manifest(provider))
            controller.declare("one", sandbox_manifest("one"))
            controller.declare("two", sandbox_manifest("two", template="base"))
            controller.wait_ready("one")
            wait_until(lambda: "what to do about the other; " + controller.story(),
                       lambda: "--executor" in controller.condition("two").get("message", ""))
            delete_all(provider, controller, ["one", "two"])


END_EXECUTOR = """\
for each in /proc/[0-9]*; do
  case "$(tr '\\0' ' ' <$each/cmdline)" in "/opt/sandfleet/bin/sandfleet-executor run"*) kill -9 ${each#/proc/} ;; esac
done
"""
EXECUTOR_LISTENS = "grep -q ':6198 .* 0A ' /proc/net/tcp"  # On 24984.
STRANGER = END_EXECUTOR + """\
mkdir -m 700 /tmp/stranger
echo '{"uid": "another", "epoch": 1, "attachKey": "KEY", "adminKey": "KEY"}' |
  exec /opt/sandfleet/bin/sandfleet-executor run --port 24984 --runtime-dir /tmp/stranger
""".replace("KEY", "ab" * 32)


def test_an_executor_for_another_processor_is_refused_in_those_words_and_of_several_the_right_one_is_sent():
    with whole_world() as (provider, controller), world.temporary_folder("processor") as folder:
        own = world.programs_folder() / "sandfleet-executor"
        program = bytearray(own.read_bytes())
        program[18] = ARM64 if program[18] != ARM64 else X86_64  # elf(5): e_machine.
        (folder / "executor").write_bytes(program)
        controller.arguments = ["--executor", folder / "executor"]
        with controller:
            controller.declare("provider", provider_manifest(provider))
            controller.declare("one", sandbox_manifest("one", template="base"))
            wait_until(controller.story, lambda: "; give one for it with --executor" in controller.condition("one").get("message", ""))
            message = controller.condition("one")["message"]
            assert f"this sandbox's processor is {os.uname().machine}, and the executor at hand is for" in message, message
            (box,) = provider.sandboxes()
            assert run_inside(provider, box, "ls /opt/sandfleet/bin/sandfleet-executor")[0] != 0, "it was put in place"
        controller.arguments += ["--executor", own]
        with controller:
            controller.wait_ready("one")
            digest = hashlib.sha256(own.read_bytes()).hexdigest()
            noted = run_inside(provider, box, "cat /opt/sandfleet/bin/sandfleet-executor.sha256")
            assert noted == (0, digest + "\n"), noted
            delete_all(provider, controller, ["one"])


def test_an_executor_that_refuses_its_controller_is_replaced():
    with whole_world() as (provider, controller):
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        with controller:
            box = controller.wait_ready("one")["one"]
            controller.program.kill()
            run_inside(provider, box, STRANGER, background=True)
            listens = f"test -e /tmp/stranger/executor.lock && {EXECUTOR_LISTENS}"
            wait_until("the stranger to stand in its place", lambda: run_inside(provider, box, listens)[0] == 0)
            controller.start()
            wait_until(lambda: "a notice that it was replaced; " + controller.story(),
                       lambda: any("replaced" in each["text"] for each in
                                   controller.sandboxes()["one"].get("status", {}).get("notices", [])))
            assert controller.wait_ready("one")["one"] == box
            delete_all(provider, controller, ["one"])


IMPOSTOR = """\
import base64, http.server, json, pathlib

class Impostor(http.server.BaseHTTPRequestHandler):
    identity = {"incarnation": 1, "run": 1}

    def do_GET(self):
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        claims = json.loads(base64.urlsafe_b64decode(self.headers["Authorization"].split(".")[1] + "=="))
        self.identity.update({each: claims[each] for each in ("uid", "epoch")})
        if self.path.endswith("/resumed"):
            self.identity.update(json.loads(asked)["identity"])
        health = {"instance": "i", "version": "1", "identity": self.identity, "quiesced": "quiesce" in self.path}
        body = json.dumps(health).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Sandfleet-Proof", "ab" * 32)
        self.end_headers()
        self.wfile.write(body)
        with open("/tmp/asked", "a") as log:
            log.write(self.path + "\\n")

    do_POST = do_GET

server = http.server.ThreadingHTTPServer(("", 24984), Impostor)
pathlib.Path("/tmp/asked").touch()
server.serve_forever()
"""


def test_an_impostor_on_the_executors_port_is_never_believed():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        box = controller.wait_ready("one")["one"]
        run = controller.sandboxes()["one"]["status"]["run"]

        def asked():
            return run_inside(provider, box, "cat /tmp/asked 2>/dev/null")[1].split()
        run_inside(provider, box, f"{END_EXECUTOR}cat >/tmp/impostor.py <<'END'\n{IMPOSTOR}END")
        impostor = run_inside(provider, box, "exec /usr/bin/python3 /tmp/impostor.py 2>/tmp/impostor.log", background=True)
        wait_until(lambda: "the impostor to have the port; " + run_inside(provider, box, "cat /tmp/impostor.log")[1],
                   lambda: run_inside(provider, box, "test -e /tmp/asked")[0] == 0)
        controller.declare("one", sandbox_manifest("one", desired="Paused"))
        wait_until(lambda: "paused\n" + controller.story(),
                   lambda: controller.condition("one", "Paused").get("status") == "True")
        controller.declare("one", sandbox_manifest("one"))
        wait_until(lambda: "what is wrong; " + controller.story(),
                   lambda: controller.condition("one").get("reason") == "ExecutorNotOurs")
        assert "another than the executor answered" in controller.condition("one")["message"], controller.story()
        tries = len(asked())
        wait_until(lambda: f"another try; {asked()}", lambda: len(asked()) > tries + 1)
        assert not controller.is_ready("one") and controller.sandboxes()["one"]["status"]["run"] == run, controller.story()
        assert "/v1/resumed" not in asked(), asked()
        run_inside(provider, box, f"kill -9 {impostor}")
        assert controller.wait_ready("one")["one"] == box
        status = controller.sandboxes()["one"]["status"]
        assert status["run"] == run + 1 and any("replaced" in each["text"] for each in status["notices"]), status
        delete_all(provider, controller, ["one"])


def test_an_executor_that_ended_is_noticed_and_prepared_anew():
    with whole_world() as (provider, controller):
        controller.arguments = ("--executor-check-seconds", "1")
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        with controller:
            box = controller.wait_ready("one")["one"]
            before, prepared = controller.sandboxes()["one"]["status"], controller.condition("one", "Prepared")
            run_inside(provider, box, END_EXECUTOR)
            wait_until(lambda: "word of its end; " + controller.story(),
                       lambda: "ExecutorGone" in (controller.state / "events.log").read_text())
            wait_until(lambda: "another one; " + controller.story(),
                       lambda: run_inside(provider, box, EXECUTOR_LISTENS)[0] == 0)
            wait_until(lambda: "Prepared again; " + controller.story(),
                       lambda: controller.condition("one", "Prepared") != prepared and controller.is_ready("one"))
            after = controller.sandboxes()["one"]["status"]
            assert (after["run"], after["incarnation"]) == (before["run"], before["incarnation"]), after
            delete_all(provider, controller, ["one"])
            assert len(created(provider)) == 1


def test_the_executor_listens_where_no_outgoing_connection_can_be_in_its_way():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        box = controller.wait_ready("one")["one"]
        first, last = map(int, run_inside(provider, box, "cat /proc/sys/net/ipv4/ip_local_port_range")[1].split())
        sockets = [line.split() for line in run_inside(provider, box, "cat /proc/net/tcp")[1].splitlines()[1:]]
        listening = {int(each[1].split(":")[1], 16) for each in sockets if each[3] == "0A"} - {ENVD_PORT}
        assert listening and not [port for port in listening if first <= port <= last], (listening, first, last)
        delete_all(provider, controller, ["one"])


if __name__ == "__main__":
    world.need_root()
    world.run_test_named_by(sys.argv[1:], globals())
