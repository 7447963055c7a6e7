"""Searches in a sandbox: files by their names, lines by what stands in them, both found there by ripgrep. A sandbox that lacks
it is sent the one file that it takes, where this side has that."""

from __future__ import annotations

import asyncio
import bisect
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from . import names
from .asking import Asking
from .custody import Custody
from .errors import Failure, RemoteError
from .names import Name

Order: TypeAlias = Literal["asFound", "path", "modified"]
Case: TypeAlias = Literal["sensitive", "insensitive", "smart"]

TOOL = "rg"


@dataclass(frozen=True, slots=True)
class Summary:
    found: int
    files: int
    limit: str | None  # "found" or "bytes": it was reached, and there may be more.
    troubles: int  # What could not be looked at, the first of which `told` has in words.
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Globbed:
    target: str  # What paths are relative to.
    paths: tuple[str, ...]
    summary: Summary


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    number: int | None  # From 1. None, as `offset`: its file did not say, as of a line of more than 1 MiB.
    offset: int | None  # Of its first byte in the file.
    text: str  # Without its newline.
    spans: tuple[tuple[int, int], ...]  # What was found: text[start:end].
    context: bool  # It stands around what was found.
    cut: bool  # It is longer.


@dataclass(frozen=True, slots=True)
class Grepped:
    target: str  # What paths are relative to.
    lines: tuple[Line, ...]
    summary: Summary


class Search:
    """Paths may be relative, as those of files. `globs`, in order, choose files by their names, and one with `!` in front leaves
    out; `types` are ripgrep's, such as "py". Names with a dot in front are passed over unless `hidden`, and `.gitignore` and the
    like are heeded if `ignore_files`. `found_max` and `bytes_max` bound what comes; the summary says which one has."""

    def __init__(self, asking: Asking, custody: Custody, ripgrep: Name | None) -> None:
        self._asking, self._custody = asking, custody
        self._ripgrep = ripgrep
        self._sending = asyncio.Lock()

    async def glob(
        self,
        path: Name = ".",
        globs: Sequence[str] = (),
        *,
        types: Sequence[str] = (),
        hidden: bool = False,
        ignore_files: bool = True,
        order: Order | None = None,
        found_max: int | None = None,
        bytes_max: int | None = None,
    ) -> Globbed:
        """Files, and no folders."""
        chosen = _selection(path, globs, types, hidden, ignore_files, order)
        target, found, summary = await self._search("fs.glob", {**chosen, "foundMax": found_max, "bytesMax": bytes_max})
        return Globbed(target, tuple(names.from_wire(raw["path"]) for raw in found), summary)

    async def grep(
        self,
        pattern: str,
        path: Name = ".",
        globs: Sequence[str] = (),
        *,
        literal: bool = False,
        word: bool = False,
        multiline: bool = False,
        binary: bool = False,
        case: Case | None = None,
        before: int | None = None,
        after: int | None = None,
        types: Sequence[str] = (),
        hidden: bool = False,
        ignore_files: bool = True,
        order: Order | None = None,
        file_bytes_max: int | None = None,
        line_bytes_max: int | None = None,
        found_max: int | None = None,
        bytes_max: int | None = None,
    ) -> Grepped:
        """Lines in which `pattern` is found, a regular expression of ripgrep's unless it is `literal`, with so many `before` and
        `after` them. Files that hold NUL are passed over unless `binary`, and so are those of more than `file_bytes_max`."""
        args = {
            **_selection(path, globs, types, hidden, ignore_files, order),
            "pattern": pattern,
            "literal": literal or None,
            "word": word or None,
            "multiline": multiline or None,
            "binary": binary or None,
            "case": case,
            "before": before,
            "after": after,
            "fileBytesMax": file_bytes_max,
            "lineBytesMax": line_bytes_max,
            "foundMax": found_max,
            "bytesMax": bytes_max,
        }
        target, found, summary = await self._search("fs.grep", args)
        return Grepped(target, tuple(_line(raw) for raw in found), summary)

    async def _search(self, op: str, args: Mapping[str, Any]) -> tuple[str, list[Any], Summary]:
        async with self._custody.lent():
            try:
                ok, data = await self._asking.fetch(op, **args)
            except RemoteError as error:
                if error.code != "TOOL_MISSING":
                    raise
                await self._send_tool(error)
                ok, data = await self._asking.fetch(op, **args)
        found = [json.loads(line) for line in data.splitlines()]
        if not found or "summary" not in found[-1]:
            raise RemoteError(Failure("INTERNAL", "the search did not come to its end"))
        return names.from_wire(ok["target"]), found[:-1], _summary(found[-1]["summary"])

    async def _send_tool(self, missing: RemoteError) -> None:
        """Once, however many searches miss it at the same time."""
        async with self._sending:
            wanted = await self._asking.call("tool.find", name=TOOL)
            if wanted.get("path") is not None:
                return
            data = await asyncio.to_thread(self._read_tool, wanted["sha256"], wanted["bytes"])
            if data is None:
                where = "no rg on PATH is it" if self._ripgrep is None else f"{os.fsdecode(self._ripgrep)} is another"
                wish = f"it takes the rg of SHA-256 {wanted['sha256']}, and {where}; name its file by `ripgrep`"
                raise RemoteError(Failure(missing.code, f"{missing.message}: {wish}", None, missing.detail))
            await self._asking.call("tool.put", data, mutating=True, name=TOOL, sha256=wanted["sha256"])

    def _read_tool(self, sha256: str, size: int) -> bytes | None:
        """None: this side has another, or none."""
        path = shutil.which(TOOL) if self._ripgrep is None else os.fsdecode(self._ripgrep)
        if path is None or os.stat(path).st_size != size:
            return None
        data = Path(path).read_bytes()
        return data if hashlib.sha256(data).hexdigest() == sha256 else None


def _selection(
    path: Name, globs: Sequence[str], types: Sequence[str], hidden: bool, ignore_files: bool, order: Order | None
) -> dict[str, Any]:
    return {
        "path": names.to_wire(path),
        "globs": list(globs) or None,
        "types": list(types) or None,
        "hidden": hidden or None,
        "ignoreFiles": ignore_files,
        "order": order,
    }


def _summary(raw: Any) -> Summary:
    return Summary(raw["found"], raw["files"], raw.get("limit"), raw.get("troubles", 0), tuple(raw.get("told", ())))


def _line(raw: Any) -> Line:
    text = names.text_from_wire(raw["text"])
    spans = _in_characters(text, raw.get("spans", ()))
    return Line(
        names.from_wire(raw["path"]),
        raw.get("line"),
        raw.get("offset"),
        text,
        spans,
        raw.get("context", False),
        raw.get("cut", False),
    )


def _in_characters(text: str, spans: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """From counts of bytes. A character of which a part was found counts."""
    if text.isascii():
        return tuple((start, end) for start, end in spans)
    ends = list(itertools.accumulate(len(names.to_bytes(each)) for each in text))
    return tuple((_ended(ends, start), _ended(ends, end - 1) + 1 if end > start else _ended(ends, start)) for start, end in spans)


def _ended(ends: Sequence[int], at: int) -> int:
    """How many characters have ended at byte `at`."""
    return bisect.bisect_right(ends, at)
