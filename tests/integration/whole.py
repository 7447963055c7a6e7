"""The world of the integration tests: a provider and a controller as processes, and what is left of them."""

import contextlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import world  # noqa: E402
from harness import Agentd  # noqa: E402
from world import wait_until  # noqa: E402


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


@contextlib.contextmanager
def agentd_before_a_box(*arguments, manifest=world.provider_manifest, box=world.sandbox_manifest("box"), **how):
    """agentd with these arguments, once "box" is Ready; yields the provider, the controller and it."""
    with whole_world() as (provider, controller), controller, world.temporary_folder("agentd") as folder:
        controller.declare("provider", manifest(provider))
        controller.declare("box", box)
        controller.wait_ready("box")
        with Agentd(folder, controller, *arguments, **how) as agentd:
            yield provider, controller, agentd
        assert not agentd.socket.exists(), "a socket is left"
        delete_all(provider, controller, ["box"])
