"""A Sandbox to work in."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Self

from . import names
from .asking import Asking, Waits
from .connection import Connection
from .custody import PROOF_S, Custody
from .errors import Failure, Quarantined, RemoteError
from .events import Notice, Welcome
from .files import Files
from .names import Name
from .processes import Process
from .runs import OnOutput, Run, RunResult, collected
from .search import Search
from .session import Settings
from .specs import DISCARD, GRACE_S, PIPE, Collect, Input, Listed, Output, Spec, state_of
from .token_file import token_source

DEFAULT_SOCKET = "/run/sandfleet/agentd.sock"
FEATURES = ("files", "watch", "processes", "terminals", "archives", "search")
TERMINAL_TAIL_BYTES = 4 << 20


class Sandbox:
    """`async with Sandbox("team-a/box") as box: await box.run(["make", "test"])`.

    A session with the sandbox, through agentd's socket. Links that break cost it nothing. With `lifetime` it is used for so many
    seconds at most. What it has started ends with it, to the proof; when that cannot be proven, of this or of a command that
    timed out or was cancelled, the object is quarantined and refuses work: let the sandbox be replaced.
    """

    def __init__(
        self,
        name: str,
        *,
        socket: Name | None = None,
        token_file: Name | None = None,
        lifetime: float | None = None,
        lease_seconds: int = 300,
        permission_mode: str | None = None,
        workspace_root: Name | None = None,
        on_notice: Callable[[Notice], None] | None = None,
        client: str = "sandfleet-python",
        proof_seconds: float = PROOF_S,
        ripgrep: Name | None = None,
    ) -> None:
        namespace, _, short = name.rpartition("/")
        self.name = f"{namespace or 'default'}/{short}"
        self._path = os.fsdecode(socket or os.environ.get("SANDFLEET_AGENTD_SOCKET") or DEFAULT_SOCKET)
        self._settings = Settings(client, FEATURES, namespace or "default", short, lease_seconds)
        self._token, self._on_notice = token_source(token_file), on_notice
        self._permission_mode, self._workspace_root, self._ripgrep = permission_mode, workspace_root, ripgrep
        self._custody = Custody(lifetime, proof_seconds)
        self._connection: Connection | None = None

    # Its life.

    async def open(self) -> Self:
        """Once the sandbox has answered. Fails where nobody listens at the socket, or refuses; else waits for the lease's
        time."""
        connection = Connection(self._path, self._settings, self._token, self._on_notice)
        try:
            await connection.open()
        except BaseException:
            connection.give_up("it was not opened")
            raise
        self._connection = connection
        self._asking = Asking(connection, self._permission_mode, self._workspace_root)
        self._waits = Waits(self._asking)
        self.files = Files(self._asking, self._custody)
        self.search = Search(self._asking, self._custody, self._ripgrep)
        self._custody.begin()
        return self

    async def close(self) -> None:
        """Ends what it has started, to the proof, and its session. Raises Quarantined where that cannot be proven."""
        if self._connection is None:
            return
        try:
            await self._custody.end()
        finally:
            await self._connection.close()
        if isinstance(self._custody.refusal, Quarantined):
            raise self._custody.refusal

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            await self.close()
        except Quarantined:
            if kind is None:  # What is under way says more.
                raise

    @property
    def welcome(self) -> Welcome:
        """What the sandbox said of itself on the newest link."""
        if self._connection is None or self._connection.welcome is None:
            raise RuntimeError("this sandbox object was not opened")
        return self._connection.welcome

    @property
    def cwd(self) -> str:
        return self.welcome.cwd

    @property
    def quarantined(self) -> bool:
        return self._custody.quarantined

    def has(self, feature: str) -> bool:
        return feature in self.welcome.features

    # Commands.

    async def run(
        self,
        argv: Sequence[Name],
        *,
        timeout: float | None = None,
        cwd: Name | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: bytes | None = None,
        max_output_bytes: int = 1 << 20,
        spill_bytes: int | None = None,
        grace: float = GRACE_S,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
    ) -> RunResult:
        """A command to its end: no shell, unless argv names one. Of each output exactly the last `max_output_bytes` come back;
        with `spill_bytes`, all of a longer one is in a file of the sandbox. `on_stdout` and `on_stderr` hear of output as it
        comes; one that is slow finds gaps and never holds the command back.

        Returns when the command has ended by itself. Raises CommandTimedOut after `timeout` seconds, OutcomeUnknown where the
        way to the sandbox failed, and RemoteError where the command could not be started. When this is cancelled, times out
        or fails, all that the command has started is proven dead before the object takes other work.
        """
        await self._custody.admit()
        spec = Spec(
            tuple(argv),
            cwd,
            env,
            DISCARD if stdin is None else stdin,
            collected(max_output_bytes, spill_bytes, on_stdout),
            collected(max_output_bytes, spill_bytes, on_stderr),
            grace,
        )
        return await Run(self._custody, self._process(spec)).to_the_end(timeout, on_stdout, on_stderr)

    async def spawn(
        self,
        argv: Sequence[Name],
        *,
        cwd: Name | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: Input = DISCARD,
        stdout: Output | None = None,
        stderr: Output | None = None,
        grace: float = GRACE_S,
        detached: bool = False,
    ) -> Process:
        """A command that runs. Pipes are lossless and hold the command back; Collect(…) keeps a tail and never does. Use
        `async with`, or let it run until the sandbox object is closed. One that is `detached` goes on after that, and after
        `async with`, until it has ended by itself or kill() ends it; its outputs are collected, as nobody would read a pipe."""
        out, err = (way or (Collect() if detached else PIPE) for way in (stdout, stderr))
        if detached and PIPE in (out, err):
            raise ValueError("a pipe of what is detached would have no reader in the end; use Collect(…)")
        return await self._start(Spec(tuple(argv), cwd, env, stdin, out, err, grace, None, detached))

    async def terminal(
        self,
        argv: Sequence[Name],
        *,
        rows: int = 24,
        columns: int = 80,
        cwd: Name | None = None,
        env: Mapping[str, str | None] | None = None,
        grace: float = GRACE_S,
        detached: bool = False,
    ) -> Process:
        """A command that leads a terminal of its own: `stdin` is what is typed, `stdout` what it shows. One that is `detached`
        ends with no session, and whoever attaches next finds it as it is."""
        self._need("terminals")
        shown = Collect(TERMINAL_TAIL_BYTES, mirror=True)
        return await self._start(Spec(tuple(argv), cwd, env, PIPE, shown, DISCARD, grace, (rows, columns), detached))

    async def attach(
        self,
        handle: str,
        *,
        stdin: bool = False,
        stdout_from: int | None = None,
        stderr_from: int | None = None,
        adopt: bool = False,
    ) -> Process:
        """To a process that runs, perhaps by another session: from then on its streams are here. `adopt`: it ends with this
        session."""
        await self._custody.admit()
        stdout, stderr = (DISCARD if start is None else PIPE for start in (stdout_from, stderr_from))
        spec = Spec((handle,), None, None, PIPE if stdin else DISCARD, stdout, stderr)
        process = Process(self._asking, self._custody, self._waits, spec, handle)
        await process.attach(stdout_from, stderr_from, adopt)
        return process

    async def processes(self) -> list[Listed]:
        """All that this credential may see, by handle."""
        found: list[Listed] = []
        more = True
        while more:
            async with self._custody.lent():
                page = await self._asking.call("process.list", after=found[-1].handle if found else None)
            more = page["more"]
            for raw in page["processes"]:
                argv = tuple(names.from_wire(each, 1 << 20) for each in raw["argv"])
                found.append(Listed(raw["handle"], argv, raw["mine"], state_of(raw["state"])))
        return found

    async def which(self, command: Name, *, env: Mapping[str, str | None] | None = None) -> str:
        """Where the sandbox finds it. EXECUTABLE_NOT_FOUND: nowhere."""
        changes = None if env is None else [[name, value] for name, value in env.items()]
        async with self._custody.lent():
            ok = await self._asking.call("process.resolveExecutable", command=names.to_wire(command), env=changes)
        return names.from_wire(ok["path"])

    def _process(self, spec: Spec) -> Process:
        return Process(self._asking, self._custody, self._waits, spec)

    async def _start(self, spec: Spec) -> Process:
        await self._custody.admit()
        process = self._process(spec)
        try:
            await process.start()
        except BaseException:
            await self._custody.prove_dead(process)
            raise
        return process

    # Archives.

    async def archive(self, path: Name = ".", *, excludes: Sequence[Name] = (), level: int | None = None) -> AsyncIterator[bytes]:
        """A folder as a tar archive, compressed with zstd, piece by piece."""
        self._need("archives")
        args = {"path": names.to_wire(path), "excludes": [names.to_wire(each) for each in excludes] or None, "level": level}
        async for data in self._custody.each(self._asking.download(self._asking.request("archive.create", args, down=True))):
            yield data

    async def extract(self, archive: bytes, path: Name = ".", *, replace: bool = True) -> Mapping[str, object]:
        """What archive() gave, into a folder: {"entries", "files", "bytes", …}."""
        self._need("archives")
        async with self._custody.lent():
            ok = await self._asking.call("archive.extract", archive, mutating=True, path=names.to_wire(path), replace=replace)
        report: Mapping[str, object] = ok["report"]
        return report

    def _need(self, feature: str) -> None:
        if not self.has(feature):
            raise RemoteError(Failure("UNSUPPORTED", f"{self.name} has no {feature}"))
