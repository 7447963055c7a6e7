"""Files of a sandbox: each operation is one request, and what must be atomic is so in the sandbox."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import names
from .asking import Asking
from .custody import Custody
from .errors import Failure, RemoteError
from .names import Name

WATCH_LINE_MOST = 64 << 10


@dataclass(frozen=True, slots=True)
class Info:
    version: str  # Opaque: another one whenever the content was written.
    type: str  # file, directory, symlink (of lstat) or other.
    size: int | None
    mode: int
    mtime: float  # Seconds since 1970.
    link_target: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    name: str  # In a tree: the path from where it was listed.
    type: str
    target: str | None
    version: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Written:
    created: bool
    version: str
    target: str


@dataclass(frozen=True, slots=True)
class Edited:
    version: str
    target: str
    replacements: int


@dataclass(frozen=True, slots=True)
class Copied:
    files: int
    bytes: int
    target: str


@dataclass(frozen=True, slots=True)
class Change:
    """`kind`: created, written, removed, renamed, mode; or lost, with `count`, where so many could not be told."""

    kind: str
    path: str | None = None
    count: int = 0


def _info(raw: Any) -> Info | None:
    if raw is None:
        return None
    link = raw.get("linkTarget")
    return Info(raw["version"], raw["type"], raw.get("size"), raw["mode"], raw["mtimeMs"] / 1000, link and names.from_wire(link))


def _entry(raw: Any, name: str) -> Entry:
    target = raw.get("target")
    return Entry(names.from_wire(raw[name]), raw["type"], target and names.from_wire(target), raw.get("version"), raw.get("size"))


def _content(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


class Files:
    """Paths may be relative: to the sandbox's folder to work in, `cwd` of the sandbox object. Failures are RemoteError with the
    codes FS_… of docs/protocol.md."""

    def __init__(self, asking: Asking, custody: Custody) -> None:
        self._asking, self._custody = asking, custody

    async def _call(self, op: str, upload: bytes | None = None, /, mutating: bool = False, **args: Any) -> dict[str, Any]:
        async with self._custody.lent():
            return await self._asking.call(op, upload, mutating=mutating, **args)

    async def resolve(self, path: Name) -> str:
        """One name for all ways to spell it, links followed."""
        return names.from_wire((await self._call("fs.resolve", path=names.to_wire(path)))["target"])

    async def stat(self, path: Name) -> Info | None:
        """None: there is none."""
        return _info((await self._call("fs.stat", path=names.to_wire(path))).get("info"))

    async def lstat(self, path: Name) -> Info | None:
        """Of a link itself, not of what it leads to."""
        return _info((await self._call("fs.lstat", path=names.to_wire(path))).get("info"))

    async def exists(self, path: Name) -> bool:
        return await self.stat(path) is not None

    async def read_bytes(
        self, path: Name, *, max_bytes: int | None = None, start: int | None = None, length: int | None = None
    ) -> bytes:
        """All of it, or `length` bytes from `start` on. More than `max_bytes`: FS_TOO_LARGE, and never a part."""
        async with self._custody.lent():
            args = {"path": names.to_wire(path), "maxBytes": max_bytes, "from": start, "length": length}
            return (await self._asking.fetch("fs.readBytes", **args))[1]

    async def read_text(self, path: Name, *, max_bytes: int | None = None) -> str:
        """Text in UTF-8, line ends as they are. Anything else: FS_NOT_TEXT."""
        async with self._custody.lent():
            _, data = await self._asking.fetch("fs.readText", path=names.to_wire(path), maxBytes=max_bytes)
            return data.decode()

    async def stream(self, path: Name, *, start: int | None = None, length: int | None = None) -> AsyncIterator[bytes]:
        """The content piece by piece; what is not read holds the sandbox back, and nothing is kept here."""
        args = {"path": names.to_wire(path), "from": start, "length": length}
        async for data in self._custody.each(self._asking.download(self._asking.request("fs.readBytes", args, down=True))):
            yield data

    async def write(
        self,
        path: Name,
        data: bytes | str,
        *,
        if_absent: bool = False,
        if_version: str | None = None,
        mode: int | None = None,
        durable: bool = False,
    ) -> Written:
        """Seen whole or not at all; parents are created. `if_absent`: FS_NOT_OBSERVED where there is something; `if_version`:
        FS_STALE_VERSION where it has changed. `mode` is that of a new file. `durable`: on disk before this returns."""
        if if_absent and if_version is not None:
            raise ValueError("if_absent and if_version exclude each other")
        intent: dict[str, str] | None = None
        if if_absent:
            intent = {"kind": "createIfAbsent"}
        elif if_version is not None:
            intent = {"kind": "replaceIfVersion", "version": if_version}
        content = _content(data)
        ok = await self._call(
            "fs.write",
            content,
            mutating=True,
            path=names.to_wire(path),
            size=len(content),
            intent=intent,
            mode=mode,
            durable=durable or None,
        )
        return Written(ok["operation"] == "create", ok["version"], names.from_wire(ok["target"]))

    async def edit(
        self,
        path: Name,
        old: str,
        new: str,
        *,
        replace_all: bool = False,
        if_version: str | None = None,
        durable: bool = False,
    ) -> Edited:
        """Replaces `old`, which stands there once unless `replace_all`, by `new` as it is typed. Line ends of the file are
        kept."""
        before = old.encode()
        ok = await self._call(
            "fs.editText",
            before + new.encode(),
            mutating=True,
            path=names.to_wire(path),
            oldBytes=len(before),
            replaceAll=replace_all or None,
            version=if_version,
            durable=durable or None,
        )
        return Edited(ok["version"], names.from_wire(ok["target"]), ok["replacements"])

    async def list(self, path: Name = ".") -> list[Entry]:
        """One folder, by bytes of the names."""
        return [entry async for entry in self._pages("fs.listDir", "name", path=names.to_wire(path))]

    def tree(self, path: Name = ".", *, depth: int | None = None, excludes: Sequence[Name] = ()) -> AsyncIterator[Entry]:
        """Parents before children. `excludes`: names of path segments that are left out with all below."""
        left_out = [names.to_wire(each) for each in excludes] or None
        return self._pages("fs.listTree", "path", path=names.to_wire(path), depthMax=depth, excludes=left_out)

    async def _pages(self, op: str, name: str, **args: Any) -> AsyncIterator[Entry]:
        after = None
        while True:
            page = await self._call(op, **args, after=after)
            for raw in page["entries"]:
                yield _entry(raw, name)
            if not page["more"]:
                return
            after = page["entries"][-1][name]

    async def mkdir(self, path: Name, *, parents: bool = False, mode: int | None = None) -> bool:
        """False: it was there."""
        ok = await self._call("fs.mkdir", mutating=True, path=names.to_wire(path), parents=parents or None, mode=mode)
        return bool(ok["created"])

    async def remove(self, path: Name, *, recursive: bool = False, missing_ok: bool = False) -> bool:
        """A link is removed, not what it leads to. False: `missing_ok`, and it was not there."""
        args = {"path": names.to_wire(path), "recursive": recursive or None, "missingOk": missing_ok or None}
        return bool((await self._call("fs.remove", mutating=True, **args))["removed"])

    async def rename(self, source: Name, to: Name, *, replace: bool = True) -> str:
        args = {"from": names.to_wire(source), "to": names.to_wire(to), "replace": replace}
        return names.from_wire((await self._call("fs.rename", mutating=True, **args))["target"])

    async def copy(
        self, source: Name, to: Name, *, recursive: bool = False, replace: bool = True, durable: bool = False
    ) -> Copied:
        args = {
            "from": names.to_wire(source),
            "to": names.to_wire(to),
            "recursive": recursive or None,
            "replace": replace,
            "durable": durable or None,
        }
        ok = await self._call("fs.copy", mutating=True, **args)
        return Copied(ok["files"], ok["bytes"], names.from_wire(ok["target"]))

    @contextlib.asynccontextmanager
    async def watch(self, path: Name = ".", *, recursive: bool = False) -> AsyncIterator[AsyncIterator[Change]]:
        """`async with files.watch("src") as changes: async for change in changes: …`; from the first line on none is missed
        without a word."""
        await self._custody.admit()
        args = {"path": names.to_wire(path), "recursive": recursive or None}
        call = self._asking.request("fs.watch", args, down=True)
        async with self._asking.connection.asked(call) as (stream, _):
            yield self._custody.each(self._changes(stream))

    async def _changes(self, stream: int) -> AsyncIterator[Change]:
        rest = b""
        async for piece in self._asking.connection.pieces(stream):
            *lines, rest = (rest + piece.data).split(b"\n")
            if len(rest) > WATCH_LINE_MOST:
                raise RemoteError(Failure("INTERNAL", "a change is longer than any may be"))
            for line in lines:
                raw = json.loads(line)
                if "lost" in raw:
                    yield Change("lost", None, raw["lost"])
                else:
                    yield Change(raw["change"], names.from_wire(raw["path"]))
