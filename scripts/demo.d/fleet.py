"""Sandboxes as resources: declared, paused, resumed, left alone by a controller that crashes, deleted."""

import json
import os
import signal
import subprocess

import world
from telling import say, show

IN_SANDBOX = """
import sys
from e2b import Sandbox
sandbox = Sandbox.connect(sys.argv[1], timeout=300)
print(sandbox.commands.run(sys.argv[2]).stdout, end="")
"""


def sdk_python():
    return subprocess.run([world.REPO / "scripts/bootstrap", "where", "python"], check=True,
                          capture_output=True, text=True).stdout.strip() + "/bin/python"


def through_sdk(provider, sandbox_id, command):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("E2B_")}
    done = subprocess.run([sdk_python(), "-c", IN_SANDBOX, sandbox_id, command], timeout=60,
                          env={**clean, **provider.sdk_env()}, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"the SDK failed:\n{done.stderr}")
    return done.stdout.strip()


def declare_examples(controller, provider):
    """A copy of examples/ whose provider is the one just started; how many sandboxes it declares."""
    declared = 0
    for path in sorted((world.REPO / "examples").glob("*.yaml")):
        text = path.read_text()
        if path.name.startswith("provider"):
            controller.declare("provider", world.provider_manifest(provider))
        elif "desiredState: Paused" in text and "pause" in provider.cannot():
            say("left out", f"{path.name}, which wants to be paused")
        else:
            if "pause" in provider.cannot() and "onTimeout:" not in text:
                text = text.replace("\n  template:", "\n  keepAlive: {onTimeout: Kill}\n  template:")
                say("changed", f"{path.name}: onTimeout is Kill, not Pause")
            controller.declare(path.stem, text)
            declared += sum(line.strip() == "kind: Sandbox" for line in text.splitlines())
    return declared


def settled(each):
    """Whether a Sandbox is as its manifest wants it."""
    wanted = {"Running": "Ready", "Paused": "Paused"}[each["spec"]["desiredState"]]
    return any(condition["type"] == wanted and condition["status"] == "True"
               for condition in each.get("status", {}).get("conditions", []))


def become_ready(controller, declared):
    """{name: id} of those that are to run, once every Sandbox is as it is wanted."""
    def all_settled():
        found = controller.sandboxes()
        return len(found) == declared and all(map(settled, found.values())) and found
    found = world.wait_until(
        lambda: f"all as wanted:\n{controller.story()}", all_settled, 40, 0.05)
    say("ready", f"{declared} of {declared} sandboxes are as their manifests want them")
    show(controller.cli("get", "sandboxes"))
    return {name: each["status"]["sandboxID"] for name, each in found.items()}


def listed(controller):
    """What runs in the sandbox."""
    found = json.loads(controller.cli("ps", "-o", "json"))["processes"]
    return [each for each in found if not each["state"]["empty"]]


def list_processes(controller, execution):
    """The handle of the one that runs."""
    execution.wait_for_more_than(0)
    say("ps", "sandfleet ps lists what sandfleet exec began: a command that counts")
    show(controller.cli("ps"))
    (process,) = listed(controller)
    return process["handle"]


def pause_and_resume(controller, provider, name, box, execution):
    say("pause", f"{name}, with the command that counts in it")
    controller.cli("pause", name)
    world.wait_until("the provider to say paused", lambda: provider.sandboxes()[box]["state"] == "paused")
    world.wait_until("the status to say so", lambda: controller.condition(name, "Paused").get("status") == "True")
    before = execution.lines()
    controller.cli("resume", name)
    controller.wait_ready(name)
    after = execution.wait_for_more_than(before, "the count to go on")
    say("resume", f"{name}: the same exec goes on, its count went from {before} to {after}")


def crash(controller, provider, ids, execution):
    controller.program.kill()
    before = execution.lines()
    say("kill -9", f"of the controller; {len(provider.sandboxes())} sandboxes are there without it")
    controller.start()
    world.wait_until("all as wanted again", lambda: all(map(settled, controller.sandboxes().values())))
    now = {name: each["status"]["sandboxID"] for name, each in controller.sandboxes().items()}
    assert now == ids and set(provider.sandboxes()) == set(ids.values()), f"{now} is not {ids}"
    after = execution.wait_for_more_than(before, "the count to go on")
    say("restart", f"the same {len(ids)} sandboxes, none made anew; the count went from {before} to {after}")


def kill(controller, handle, execution):
    controller.cli("kill", handle)
    code = execution.program.process.wait(30)
    assert code == 128 + signal.SIGTERM, f"{code}\n{execution.program.output()}"
    counted = execution.log.read_text().split()
    assert counted == [str(number + 1) for number in range(len(counted))], counted
    assert not listed(controller), controller.cli("ps")
    say("kill", f"sandfleet kill ended it: its exec returned {code}, and every number from 1 to {len(counted)} has come")


def delete_all(controller, provider, agentd, folder, ids):
    for name in ids:
        controller.cli("delete", name, "--policy", "Kill")
    world.wait_until(lambda: f"all gone:\n{controller.story()}",
                     lambda: not provider.sandboxes() and not controller.sandboxes(), 60)
    say("delete", f"of all {len(ids)}")
    ours = [each.program.pid for each in (provider, controller, agentd)]
    nothing = {
        "in the provider's list": provider.sandboxes(),
        "sandbox folders": list((provider.state / "boxes").glob("*")),
        "processes": {pid: line for pid, line in world.processes_of(folder).items() if pid not in ours},
        "mounts": world.mounts_under(folder),
        "cgroups": [group for box in ids.values() for group in world.cgroups_named(box)]}
    for where, found in nothing.items():
        assert not found, f"left behind, {where}: {found}"
    say("left", "nothing: " + ", ".join(f"0 {where}" for where in nothing))
