"""The same, blocking: `with sandfleet.sync.Sandbox("team-a/box") as box: box.run(["make", "test"])`.

Behind each sandbox object a thread runs an event loop of its own, in which callbacks such as `on_stdout` are called too. Whoever
interrupts a call (Ctrl-C) cancels it, and waits for what that asks for: a command's tree is proven dead first. A second
interrupt does not wait; the proof goes on, and nothing is lent meanwhile."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from . import files as _files
from . import pipes as _pipes
from . import processes as _processes
from . import sandbox as _sandbox
from . import search as _search
from .errors import Refused
from .events import Welcome
from .files import Change
from .names import Name

P = ParamSpec("P")
R = TypeVar("R")
Inner = TypeVar("Inner")
_OVER = object()


class _Portal:
    """A thread with an event loop, and calls into it."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, R]) -> R:
        if self.closed:
            work.close()
            raise Refused("this sandbox object was closed")
        done: concurrent.futures.Future[R] = concurrent.futures.Future()
        tasks: list[asyncio.Task[None]] = []

        async def carry() -> None:
            try:
                done.set_result(await work)
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(lambda: tasks.append(self._loop.create_task(carry())))
        try:
            return done.result()
        except BaseException as error:
            if done.done():
                raise
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            concurrent.futures.wait([done])
            raise error

    @property
    def closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        if self.closed:
            return
        self.call(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Face(Generic[Inner]):
    def __init__(self, portal: _Portal, inner: Inner) -> None:
        self._portal, self._inner = portal, inner


def _blocking(method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[_Face[Inner], P], R]:
    @functools.wraps(method)
    def call(face: _Face[Inner], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return face._portal.call(method(face._inner, *args, **kwargs))

    return call


def _iterating(method: Callable[Concatenate[Inner, P], AsyncIterator[R]]) -> Callable[Concatenate[_Face[Inner], P], Iterator[R]]:
    @functools.wraps(method)
    def call(face: _Face[Inner], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        return _each(face._portal, method(face._inner, *args, **kwargs))

    return call


def _each(portal: _Portal, items: AsyncIterator[R]) -> Iterator[R]:
    async def following() -> R | object:
        return await anext(items, _OVER)

    try:
        while (item := portal.call(following())) is not _OVER:
            yield item  # type: ignore[misc]
    finally:
        close = getattr(items, "aclose", None)
        if close and not portal.closed:
            portal.call(close())


class Files(_Face[_files.Files]):
    resolve = _blocking(_files.Files.resolve)
    stat = _blocking(_files.Files.stat)
    lstat = _blocking(_files.Files.lstat)
    exists = _blocking(_files.Files.exists)
    read_bytes = _blocking(_files.Files.read_bytes)
    read_text = _blocking(_files.Files.read_text)
    stream = _iterating(_files.Files.stream)
    write = _blocking(_files.Files.write)
    edit = _blocking(_files.Files.edit)
    tree = _iterating(_files.Files.tree)
    mkdir = _blocking(_files.Files.mkdir)
    remove = _blocking(_files.Files.remove)
    rename = _blocking(_files.Files.rename)
    copy = _blocking(_files.Files.copy)
    list = _blocking(_files.Files.list)

    @contextlib.contextmanager
    def watch(self, path: Name = ".", *, recursive: bool = False) -> Iterator[Iterator[Change]]:
        watching = self._inner.watch(path, recursive=recursive)
        changes = self._portal.call(watching.__aenter__())
        try:
            yield _each(self._portal, changes)
        finally:
            self._portal.call(watching.__aexit__(None, None, None))


class Search(_Face[_search.Search]):
    glob = _blocking(_search.Search.glob)
    grep = _blocking(_search.Search.grep)


class Writer(_Face[_pipes.Writer]):
    write = _blocking(_pipes.Writer.write)

    def close(self) -> None:
        self._portal.call(_later(self._inner.close))


class Reader(_Face[_pipes.Reader]):
    __iter__ = _iterating(_pipes.Reader.__aiter__)
    read = _blocking(_pipes.Reader.read)

    def close(self) -> None:
        self._portal.call(_later(self._inner.close))


async def _later(call: Callable[[], None]) -> None:
    """In the loop's own thread."""
    call()


class Process(_Face[_processes.Process]):
    state = _blocking(_processes.Process.state)
    wait = _blocking(_processes.Process.wait)
    signal = _blocking(_processes.Process.signal)
    terminate = _blocking(_processes.Process.terminate)
    kill = _blocking(_processes.Process.kill)
    read = _blocking(_processes.Process.read)
    release = _blocking(_processes.Process.release)
    resize = _blocking(_processes.Process.resize)
    foreground = _blocking(_processes.Process.foreground)
    signal_foreground = _blocking(_processes.Process.signal_foreground)

    def __init__(self, portal: _Portal, inner: _processes.Process) -> None:
        super().__init__(portal, inner)
        self.handle = inner.handle
        self.pid = inner.pid
        self.stdin = Writer(portal, inner.stdin) if inner.stdin else None
        self.stdout = Reader(portal, inner.stdout) if inner.stdout else None
        self.stderr = Reader(portal, inner.stderr) if inner.stderr else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *why: Any) -> None:
        self._portal.call(self._inner.__aexit__(*why))


def _process(
    method: Callable[Concatenate[_sandbox.Sandbox, P], Coroutine[Any, Any, _processes.Process]],
) -> Callable[Concatenate[_Face[_sandbox.Sandbox], P], Process]:
    @functools.wraps(method)
    def call(face: _Face[_sandbox.Sandbox], /, *args: P.args, **kwargs: P.kwargs) -> Process:
        return Process(face._portal, face._portal.call(method(face._inner, *args, **kwargs)))

    return call


class Sandbox(_Face[_sandbox.Sandbox]):
    __doc__ = _sandbox.Sandbox.__doc__

    run = _blocking(_sandbox.Sandbox.run)
    spawn = _process(_sandbox.Sandbox.spawn)
    terminal = _process(_sandbox.Sandbox.terminal)
    attach = _process(_sandbox.Sandbox.attach)
    processes = _blocking(_sandbox.Sandbox.processes)
    which = _blocking(_sandbox.Sandbox.which)
    archive = _iterating(_sandbox.Sandbox.archive)
    extract = _blocking(_sandbox.Sandbox.extract)

    def __init__(self, name: str, **settings: Any) -> None:
        """With the settings of sandfleet.Sandbox."""
        super().__init__(_Portal(f"sandfleet {name}"), _sandbox.Sandbox(name, **settings))
        self.name = self._inner.name

    def open(self) -> Self:
        try:
            self._portal.call(self._inner.open())
        except BaseException:
            self._portal.close()
            raise
        self.files = Files(self._portal, self._inner.files)
        self.search = Search(self._portal, self._inner.search)
        return self

    def close(self) -> None:
        if self._portal.closed:
            return
        try:
            self._portal.call(self._inner.close())
        finally:
            self._portal.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *why: Any) -> None:
        try:
            self._portal.call(self._inner.__aexit__(*why))
        finally:
            self._portal.close()

    @property
    def welcome(self) -> Welcome:
        return self._inner.welcome

    @property
    def cwd(self) -> str:
        return self._inner.cwd

    @property
    def quarantined(self) -> bool:
        return self._inner.quarantined

    def has(self, feature: str) -> bool:
        return self._inner.has(feature)
