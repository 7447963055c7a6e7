"""The whole product as processes: controller, provider and boxes, and what crashes do to them.
Run one test: lifecycle.py NAME; without a name: their names."""

import contextlib
import pathlib
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import world  # noqa: E402
from world import provider_manifest, run_inside, sandbox_manifest, wait_until  # noqa: E402


ENVD_PORT = 49983


@contextlib.contextmanager
def whole_world(*provider_arguments, provider_up=True):
    """A provider and a controller's folders, both empty; afterwards the machine holds nothing of them."""
    with world.temporary_folder("integration") as folder:
        with world.Provider(folder / "provider", *provider_arguments) as provider:
            if not provider_up:
                provider.program.stop()
            yield provider, world.Controller(folder / "controller")
        assert not world.processes_of(folder), f"processes left: {world.processes_of(folder)}"
        assert not world.mounts_under(folder), f"mounts left: {world.mounts_under(folder)}"


def created(provider):
    """How many sandboxes were ever made, by the provider's own log of requests."""
    status, log = provider.ask("GET", "/_local/requests")
    assert status == 200, log
    return [each for each in log["requests"]
            if each["method"] == "POST" and each["path"].endswith("/sandboxes") and each["status"] == 201]


def mutations(provider):
    status, log = provider.ask("GET", "/_local/requests")
    assert status == 200, log
    return [f"{each['method']} {each['path']}" for each in log["requests"]
            if each["method"] != "GET" and not each["path"].startswith("/_local")]


def one_box_each(provider, names):
    """The list shows every name once, and no other."""
    found = sorted(each["metadata"].get("sandfleet.name") for each in provider.sandboxes().values())
    return found == sorted(names)


def delete_all(provider, controller, names):
    boxes = list(provider.sandboxes())
    for name in names:
        controller.remove(name)
    wait_until(lambda: f"nothing left: {provider.sandboxes()}\n{controller.story()}",
               lambda: not provider.sandboxes() and not controller.sandboxes(), 40)
    left = [group for box in boxes for group in world.cgroups_named(box)]
    assert not left, f"cgroups left: {left}"


def test_a_manifest_becomes_a_live_sandbox_and_its_removal_leaves_nothing():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        controller.declare("two", sandbox_manifest("two", template="base"))
        ids = controller.wait_ready("one", "two")
        assert set(ids.values()) == set(provider.sandboxes())
        assert run_inside(provider, ids["one"], "echo alive; whoami") == (0, "alive\nuser\n")
        metadata = provider.sandboxes()[ids["one"]]["metadata"]
        assert metadata["sandfleet.name"] == "one" and metadata["sandfleet.uid"], metadata
        delete_all(provider, controller, ["one", "two"])
        assert len(created(provider)) == 2


def test_a_process_lives_across_pause_and_resume():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        box = controller.wait_ready("one")["one"]
        pid = run_inside(provider, box, "i=0; while :; do i=$((i+1)); echo $i >/tmp/n; sleep 0.05; done", True)
        run_before = controller.sandboxes()["one"]["status"]["run"]
        controller.declare("one", sandbox_manifest("one", desired="Paused"))
        wait_until(lambda: "paused\n" + controller.story(),
                   lambda: provider.sandboxes()[box]["state"] == "paused")
        wait_until("the status to say so", lambda: controller.condition("one", "Paused").get("status") == "True")
        controller.declare("one", sandbox_manifest("one"))
        assert controller.wait_ready("one")["one"] == box
        status = controller.sandboxes()["one"]["status"]
        assert status["run"] > run_before and status["incarnation"] == 1 and status["epoch"] == 1, status
        assert run_inside(provider, box, f"kill -0 {pid}")[0] == 0
        first = int(run_inside(provider, box, "cat /tmp/n")[1] or 0)
        wait_until("counting on", lambda: int(run_inside(provider, box, "cat /tmp/n")[1] or 0) > first)
        delete_all(provider, controller, ["one"])


def test_a_controller_killed_at_any_moment_goes_on_with_the_same_sandboxes():
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    names = [f"box-{number}" for number in range(3)]
    with whole_world() as (provider, controller):
        controller.declare("provider", provider_manifest(provider))
        for name in names:
            controller.declare(name, sandbox_manifest(name))
        seen = {}
        for _ in range(7):
            controller.start()
            time.sleep(chance.uniform(0.02, 1.5))  # The moment of the crash, not a wait.
            controller.program.kill()
            for name, each in controller.sandboxes().items():
                box = each.get("status", {}).get("sandboxID")
                if box:
                    assert seen.setdefault(name, box) == box, f"{name} went from {seen[name]} to {box}"
        with controller:
            ids = controller.wait_ready(*names)
            assert all(ids[name] == seen.get(name, ids[name]) for name in names), (ids, seen)
            wait_until(lambda: f"one box each: {provider.sandboxes()}", lambda: one_box_each(provider, names))
            for kept in range(3):
                controller.program.kill()
                controller.start()
                assert controller.wait_ready(*names) == ids, kept
            assert len(created(provider)) == len(names), mutations(provider)
            delete_all(provider, controller, names)
            assert len(created(provider)) == len(names), mutations(provider)


def test_lost_and_late_answers_under_crashes_make_no_second_sandbox_and_lose_none():
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    names = ["one", "two", "three"]
    faults = ["--seed", str(seed), "--fault", "create:lost-reply:p=0.3", "--fault", "create:late-effect:p=0.3:ms=700",
              "--fault", "connect:lost-reply:p=0.3", "--fault", "kill:lost-reply:p=0.3", "--fault", "list:lost-reply:p=0.1"]
    with whole_world(*faults) as (provider, controller):
        controller.declare("provider", provider_manifest(provider, settle=5))
        for name in names:
            controller.declare(name, sandbox_manifest(name, template=chance.choice(["base", "base-executor"])))
        for _ in range(4):
            controller.start()
            time.sleep(chance.uniform(0.05, 1.0))  # The moment of the crash, not a wait.
            controller.program.kill()
        with controller:
            controller.wait_ready(*names, deadline_s=40)
            wait_until(lambda: f"one box each: {provider.sandboxes()}", lambda: one_box_each(provider, names), 20)
            for name in names:
                controller.remove(name)
            controller.program.kill()
            controller.start()
            wait_until(lambda: f"nothing left: {provider.sandboxes()}\n{controller.story()}",
                       lambda: not provider.sandboxes() and not controller.sandboxes(), 40)


def test_a_controller_killed_while_deleting_leaves_nothing():
    names = ["one", "two", "three"]
    with whole_world() as (provider, controller):
        controller.declare("provider", provider_manifest(provider))
        for name in names:
            controller.declare(name, sandbox_manifest(name))
        with controller:
            controller.wait_ready(*names)
            for name in names:
                controller.remove(name)
            wait_until("the first to go", lambda: len(provider.sandboxes()) < len(names), 40, 0.005)
            controller.program.kill()
            controller.start()
            wait_until(lambda: f"nothing left: {provider.sandboxes()}\n{controller.story()}",
                       lambda: not provider.sandboxes() and not controller.sandboxes(), 40)


def test_a_controller_goes_on_after_a_power_cut_that_spoilt_its_records():
    with whole_world() as (provider, controller):
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        with controller:
            box = controller.wait_ready("one")["one"]
            controller.program.kill()
            for record in controller.state.glob("sandbox*/**/*.json"):
                record.write_bytes(b"")  # Its name is on disk, what is in it never came.
            with open(max(controller.state.glob("journal/*.log")), "ab") as journal:
                journal.write(bytes(4096))
            controller.start()
            assert controller.wait_ready("one")["one"] == box
            assert len(created(provider)) == 1
            delete_all(provider, controller, ["one"])
        assert not list(controller.state.glob("journal/*.log")), "a clean end leaves no journal"


def test_sigterm_touches_no_sandbox():
    with whole_world() as (provider, controller):
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        controller.start()
        box = controller.wait_ready("one")["one"]
        before = provider.sandboxes()[box]
        assert controller.program.stop() == 0
        after = provider.sandboxes()[box]
        assert (after["state"], after["startedAt"]) == ("running", before["startedAt"])
        assert not [each for each in mutations(provider) if each.startswith("DELETE") or each.endswith("/pause")]
        with controller:
            assert controller.wait_ready("one")["one"] == box
            delete_all(provider, controller, ["one"])


def test_a_killed_provider_comes_back_with_its_sandboxes():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        box = controller.wait_ready("one")["one"]
        pid = run_inside(provider, box, "sleep 1000", True)
        provider.program.kill()
        provider.start()
        assert list(provider.sandboxes()) == [box]
        assert run_inside(provider, box, f"kill -0 {pid}")[0] == 0
        assert controller.wait_ready("one")["one"] == box
        delete_all(provider, controller, ["one"])


KEYS = "POST /process.Process/SendInput"
CALLS = ["GET /v1/health", "POST /process.Process/SendInput", "POST /process.Process/Start",
         "POST /process.Process/Start", "POST /v1/resumed"]


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


def test_a_wrong_key_is_said_and_its_cure_works():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider, key="e2b_" + "0" * 40))
        controller.declare("one", sandbox_manifest("one"))
        told = wait_until(
            lambda: "a condition that speaks of the key; " + controller.story(),
            lambda: next((each for each in controller.sandboxes().get("one", {}).get("status", {}).get("conditions", [])
                          if "key" in each["message"].lower() or "credential" in each["message"].lower()), None))
        assert told["status"] != "True" and "e2b_0" not in told["message"], told
        assert not provider.sandboxes()
        controller.declare("provider", provider_manifest(provider, key="e2b_0\\nX-Other: 1"))
        told = wait_until(lambda: "a condition that speaks of the line break; " + controller.story(),
                          lambda: controller.condition("one").get("reason") == "CredentialsInvalid"
                          and controller.condition("one"))
        assert "line break" in told["message"] and "X-Other" not in told["message"], told
        controller.declare("provider", provider_manifest(provider, key=provider.key + "\\r\\n"))
        controller.wait_ready("one")
        assert provider.key not in controller.program.output()
        delete_all(provider, controller, ["one"])


def test_a_provider_that_is_down_is_waited_for():
    with whole_world(provider_up=False) as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        wait_until("a condition about it", lambda: controller.condition("one").get("status") == "False")
        provider.start()
        controller.wait_ready("one", deadline_s=45)
        delete_all(provider, controller, ["one"])
        assert len(created(provider)) == 1


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "sandfleet-test", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(path):
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def test_a_controller_on_a_full_disk_starts_with_what_is_on_record():
    with whole_world() as (provider, controller), small_disk(controller.state):
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", sandbox_manifest("one"))
        with controller:
            box = controller.wait_ready("one")["one"]
            fill(controller.state / "filling")
            controller.program.kill()
            controller.declare("two", sandbox_manifest("two"))
            controller.start()
            wait_until(lambda: "what cannot be taken\n" + controller.story(),
                       lambda: "cannot be taken" in controller.program.output())
            assert set(provider.sandboxes()) == {box} and controller.program.alive()
            told = controller.ask("/readyz")
            assert told[0] == 503 and "the state folder cannot be written" in told[1], told
            assert "sandfleet_state_unwritable 1" in controller.ask("/metrics")[1]
            assert "is full" in controller.cli("get", errors=True), controller.cli("get", errors=True)
            (controller.state / "filling").unlink()
            assert controller.wait_ready("one", "two")["one"] == box
            assert controller.ask("/readyz")[0] == 200, controller.ask("/readyz")
            assert "is full" not in controller.cli("get", errors=True)
            delete_all(provider, controller, ["one", "two"])
        assert len(created(provider)) == 2


def test_the_cli_pauses_resumes_and_terminates():
    with whole_world() as (provider, controller), controller:
        controller.declare("provider", provider_manifest(provider))
        controller.declare("one", "# kept\n" + sandbox_manifest("one"))
        box = controller.wait_ready("one")["one"]
        controller.cli("pause", "one")
        wait_until("paused", lambda: provider.sandboxes()[box]["state"] == "paused")
        controller.cli("resume", "one")
        wait_until("resumed", lambda: provider.sandboxes()[box]["state"] == "running")
        assert controller.wait_ready("one")["one"] == box
        assert (controller.manifests / "one.yaml").read_text().startswith("# kept\n")
        controller.cli("terminate", "one")
        wait_until("terminated", lambda: not provider.sandboxes())
        wait_until("its record follows", lambda: controller.sandboxes()["one"]["spec"]["desiredState"] == "Terminated")
        assert "one" in controller.cli("get", "sandboxes") and controller.cli("events")


if __name__ == "__main__":
    world.need_root()
    world.run_test_named_by(sys.argv[1:], globals())
