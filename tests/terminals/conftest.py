"""The real chain for the tests of this folder: a sandbox that is Ready, with agentd before it, and somebody who works at its
terminals. Programs are those of SANDFLEET_BIN, else of build/dev/bin."""

import asyncio
import inspect
import pathlib
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / part) for part in ("clients/python/src", "tests/support", "tests/integration")]
import world  # noqa: E402
from harness import Agentd  # noqa: E402
from whole import delete_all, whole_world  # noqa: E402

from sandfleet import Sandbox  # noqa: E402

TEST_S = 120


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), TEST_S))
    return True


@pytest.fixture(scope="session")
def chain():
    world.end_on_signals()
    with whole_world() as (provider, controller), controller, world.temporary_folder("terminals") as folder:
        controller.declare("provider", world.provider_manifest(provider))
        controller.declare("box", world.sandbox_manifest("box"))
        controller.wait_ready("box")
        with Agentd(folder, controller) as agentd:
            agentd.box = controller.sandboxes()["box"]["status"]["sandboxID"]
            yield agentd
        delete_all(provider, controller, ["box"])


@pytest.fixture
def marker():
    return world.Marker()


@pytest.fixture
def sandbox(chain):
    """A session with the sandbox, to be opened: `async with sandbox() as box`."""
    return lambda **how: Sandbox("default/box", socket=chain.socket, **how)
