"""The real chain for the tests of this folder: a provider, a controller, a sandbox that is Ready with an executor in it, and
agentd. Programs are those of SANDFLEET_BIN, else of build/dev/bin."""

import asyncio
import contextlib
import pathlib
import sys
import types

import pytest

REPO = pathlib.Path(__file__).resolve().parents[4]
sys.path[:0] = [str(REPO / "tests/support"), str(REPO / "tests/integration")]
import world  # noqa: E402
from coroutines import run_coroutine  # noqa: E402
from whole import agentd_before_a_box  # noqa: E402

TEST_S = 120


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return run_coroutine(pyfuncitem, TEST_S)


@pytest.fixture(scope="session")
def chain():
    world.end_on_signals()
    with agentd_before_a_box() as (_, controller, agentd):
        yield types.SimpleNamespace(controller=controller, agentd=agentd, socket=str(agentd.socket))


@pytest.fixture
def marker():
    return world.Marker()


async def until(what, check, within_s=60):
    """The first truthy value of check()."""
    async with asyncio.timeout(within_s):
        while not (value := check()):
            await asyncio.sleep(0.01)
        return value


@pytest.fixture
def eventually():
    return until


class Cutter:
    """A Unix socket that leads to another, and breaks what goes through it after so many bytes either way, within a frame."""

    def __init__(self, to, path):
        self._to, self.path = to, path
        self._pairs, self._budgets, self._budget = set(), None, None
        self.cuts = 0

    async def __aenter__(self):
        self._server = await asyncio.start_unix_server(self._accept, self.path)
        return self

    async def __aexit__(self, *_):
        self._server.close()
        self.cut()

    def cut_after(self, budgets):
        """Bytes that pass before each of the next cuts."""
        self._budgets = iter(budgets)
        self._budget = next(self._budgets)

    def cut(self):
        self.cuts += 1
        for writer in [writer for pair in self._pairs for writer in pair]:
            writer.transport.abort()

    def spoil(self):
        """What comes to this side is no frame of the protocol."""
        for near, _ in self._pairs:
            near.write(bytes(16))

    async def _accept(self, near_reader, near):
        try:
            far_reader, far = await asyncio.open_unix_connection(self._to)
        except OSError:
            near.transport.abort()
            return
        pair = (near, far)
        self._pairs.add(pair)
        await asyncio.gather(self._carry(near_reader, far), self._carry(far_reader, near))
        self._pairs.discard(pair)

    async def _carry(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if self._budget is not None and len(data) > self._budget:
                    writer.write(data[: self._budget])
                    await asyncio.sleep(0)
                    self._budget = next(self._budgets, None)
                    self.cut()
                    break
                if self._budget is not None:
                    self._budget -= len(data)
                writer.write(data)
                await writer.drain()
        writer.transport.abort() if writer.is_closing() else writer.close()


@pytest.fixture
def cutter(chain, tmp_path):
    return Cutter(chain.socket, str(tmp_path / "cut.sock"))
