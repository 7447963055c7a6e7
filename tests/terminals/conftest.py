"""The real chain for the tests of this folder: a sandbox that is Ready, with agentd before it, and somebody who works at its
terminals. Programs are those of SANDFLEET_BIN, else of build/dev/bin."""

import pathlib
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / part) for part in ("clients/python/src", "tests/support", "tests/integration")]
import world  # noqa: E402
from coroutines import run_coroutine  # noqa: E402
from whole import agentd_before_a_box  # noqa: E402

from sandfleet import Sandbox  # noqa: E402

TEST_S = 120


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return run_coroutine(pyfuncitem, TEST_S)


@pytest.fixture(scope="session")
def chain():
    world.end_on_signals()
    with agentd_before_a_box() as (_, _, agentd):
        yield agentd


@pytest.fixture
def marker():
    return world.Marker()


@pytest.fixture
def sandbox(chain):
    """A session with the sandbox, to be opened: `async with sandbox() as box`."""
    return lambda **how: Sandbox("default/box", socket=chain.socket, **how)
