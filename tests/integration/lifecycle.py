"""The whole product as processes: controller, provider and boxes, and what crashes do to them.
Run one test: lifecycle.py NAME; without a name: their names."""

import contextlib
import random
import shutil
import subprocess
import sys
import time

from whole import created, delete_all, mutations, one_box_each, whole_world, world
from world import provider_manifest, run_inside, sandbox_manifest, wait_until


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
            # The attach service's door looks once a second whether it can open.
            wait_until(lambda: f"{controller.ask('/readyz')} to be ready", lambda: controller.ask("/readyz")[0] == 200)
            assert "is full" not in controller.cli("get", errors=True)
            delete_all(provider, controller, ["one", "two"])
        assert len(created(provider)) == 2


def test_without_its_state_folder_a_controller_says_so_and_deletes_nothing():
    with whole_world() as (provider, controller):
        controller.arguments = ("--sweep-seconds", "1", "--grace-seconds", "1")
        aside = controller.folder / "aside"
        controller.declare("provider", provider_manifest(provider))
        controller.declare("left", sandbox_manifest("left") + "  deletionPolicy: Leave\n")
        controller.declare("one", sandbox_manifest("one"))
        with controller:
            boxes = controller.wait_ready("left", "one")
            controller.remove("left")
            wait_until(lambda: "it to be let go\n" + controller.story(), lambda: set(controller.sandboxes()) == {"one"})

            def is_told(words):
                told = controller.ask("/readyz")
                return told[0] == 503 and words in told[1] and "sandfleet_state_unwritable 1" in controller.ask("/metrics")[1]

            def looks():
                log = (controller.folder / "controller.log").read_text()
                return log.count("the manifests cannot be taken"), log.count("a sweep failed")
            controller.state.rename(aside)
            assert is_told("was removed"), controller.ask("/readyz")
            controller.remove("one")
            before = looks()
            wait_until(lambda: f"two scans and two sweeps, beyond {before}\n" + controller.program.output(),
                       lambda: all(now >= then + 2 for now, then in zip(looks(), before)))
            assert set(provider.sandboxes()) == set(boxes.values()) and not controller.state.exists()
            shutil.copytree(aside, controller.state, ignore=shutil.ignore_patterns("*.sock"))
            assert is_told("is not the one that this controller began with"), controller.ask("/readyz")
            assert "no controller is running" in controller.cli("get", errors=True), controller.cli("get", errors=True)
            shutil.rmtree(controller.state)
            aside.rename(controller.state)
            wait_until(lambda: "all to be well; " + controller.story(), lambda: controller.ask("/readyz")[0] == 200)
            wait_until(lambda: "the removal to be believed; " + controller.story(), lambda: not controller.sandboxes())
            assert set(provider.sandboxes()) == {boxes["left"]}, "what was let go is nobody's to kill"
            provider.ask("DELETE", f"/sandboxes/{boxes['left']}")


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
