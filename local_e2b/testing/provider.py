"""What the tests of the embedded provider share: a provider of their own, and running one test."""

import contextlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
import world  # noqa: E402


def why_skipped(need_root):
    if need_root and os.geteuid() != 0:
        return "these boxes need root"
    if not (world.programs_folder() / "sandfleet-executor").exists():
        return "sandfleet-executor is not built"
    return None


@contextlib.contextmanager
def provider_with(*arguments, ordinary=False, cgroup=None, **settings):
    """A provider in a folder of its own, of an ordinary user if asked; afterwards the machine holds nothing
    of it."""
    with world.temporary_folder("local-e2b") as folder:
        if ordinary:
            settings["user"] = world.OrdinaryUser(folder, "sandfleet-local-e2b", "sandfleet-executor", cgroup=cgroup)
        with world.Provider(folder / "provider", *arguments, **settings) as provider:
            yield provider
        assert not world.processes_of(folder), f"processes left: {world.processes_of(folder)}"
        assert not world.mounts_under(folder), f"mounts left: {world.mounts_under(folder)}"
        assert not boxes_on_disk(provider), f"box folders left: {boxes_on_disk(provider)}"


def create(provider, **fields):
    status, made = provider.ask("POST", "/v2/sandboxes", {"templateID": "base", **fields})
    assert status == 201, made
    return made["sandboxID"]


def state_of(provider, box):
    status, detail = provider.ask("GET", f"/sandboxes/{box}")
    return detail["state"] if status == 200 else status


def boxes_on_disk(provider):
    return {path.name for path in (provider.state / "boxes").glob("[!.]*")}


def run_named(module, need_root=True):
    """Runs the function test_NAME of a script for `script NAME`; without a name, prints the names."""
    tests = {name[len("test_"):]: test for name, test in module.items() if name.startswith("test_")}
    if len(sys.argv) < 2:
        print("\n".join(tests))
        return
    if reason := why_skipped(need_root):
        print(f"skipped: {reason}")
        sys.exit(world.SKIPPED)
    tests[sys.argv[1]]()
