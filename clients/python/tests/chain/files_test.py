"""Files of a real sandbox."""

import asyncio
import secrets

import pytest
import world

from sandfleet import RemoteError, Sandbox


def code_of(failed):
    return failed.value.code


async def test_a_file_is_written_read_edited_and_removed(chain):
    async with Sandbox("default/box", socket=chain.socket) as box:
        files = box.files
        written = await files.write("notes/today.txt", "one\r\ntwo\r\nthree\r\n")
        assert written.created and written.target == f"{box.cwd}/notes/today.txt"
        assert await files.read_text("notes/today.txt") == "one\r\ntwo\r\nthree\r\n"
        edited = await files.edit("notes/today.txt", "two\nthree", "$& two\n4")
        assert edited.replacements == 1
        content = b"one\r\n$& two\r\n4\r\n"
        assert await files.read_bytes("notes/today.txt") == content
        assert await files.read_bytes("notes/today.txt", start=3, length=4) == b"\r\n$&"
        info = await files.stat("notes/today.txt")
        assert (info.type, info.size, info.version) == ("file", len(content), edited.version)
        assert await files.remove("notes", recursive=True)
        assert await files.stat("notes/today.txt") is None and not await files.exists("notes")


async def test_intents_and_versions_guard_what_is_there(chain):
    async with Sandbox("default/box", socket=chain.socket) as box:
        first = await box.files.write("guarded", "1", if_absent=True)
        with pytest.raises(RemoteError) as taken:
            await box.files.write("guarded", "2", if_absent=True)
        assert code_of(taken) == "FS_NOT_OBSERVED"
        await box.files.write("guarded", "2", if_version=first.version)
        with pytest.raises(RemoteError) as stale:
            await box.files.write("guarded", "3", if_version=first.version)
        assert code_of(stale) == "FS_STALE_VERSION"
        with pytest.raises(RemoteError) as stale:
            await box.files.edit("guarded", "2", "3", if_version=first.version)
        assert code_of(stale) == "FS_STALE_VERSION"
        with pytest.raises(ValueError):
            await box.files.write("guarded", "", if_absent=True, if_version="v")
        with pytest.raises(RemoteError) as nothing:
            await box.files.edit("guarded", "", "")
        assert code_of(nothing) == "FS_EDIT_NOT_FOUND"
        assert await box.files.read_text("guarded") == "2"


async def test_what_is_large_comes_and_goes_exactly(chain):
    content = secrets.token_bytes(5_000_000)
    async with Sandbox("default/box", socket=chain.socket) as box:
        await box.files.write("large", content, mode=0o600, durable=True)
        assert await box.files.read_bytes("large") == content
        assert b"".join([piece async for piece in box.files.stream("large")]) == content
        assert (await box.files.stat("large")).mode & 0o777 == 0o600
        with pytest.raises(RemoteError) as large:
            await box.files.read_bytes("large", max_bytes=len(content) - 1)
        assert code_of(large) == "FS_TOO_LARGE"
        await box.files.write("empty", b"")
        assert await box.files.read_bytes("empty") == b""


async def test_folders_are_listed_whole_in_order_and_copied(chain):
    async with Sandbox("default/box", socket=chain.socket) as box:
        assert await box.files.mkdir("tree/a/b", parents=True)
        assert not await box.files.mkdir("tree/a/b", parents=True)
        async with asyncio.TaskGroup() as group:
            for number in range(40):
                group.create_task(box.files.write(f"tree/{number:02}", str(number)))
        raw = b"caf\xe9\n"
        await box.files.write(b"tree/a/" + raw, "x")
        await box.run(["ln", "-s", "nowhere", "tree/link"])
        listed = await box.files.list("tree")
        assert [entry.name for entry in listed] == [f"{number:02}" for number in range(40)] + ["a", "link"]
        assert (await box.files.lstat("tree/link")).link_target == "nowhere"
        tree = [entry.name async for entry in box.files.tree("tree/a")]
        assert tree == ["b", raw.decode("utf-8", "surrogateescape")]
        assert [entry.name async for entry in box.files.tree("tree", excludes=["a"], depth=1)][-1] == "link"
        copied = await box.files.copy("tree", "copy", recursive=True)
        assert copied.files >= 41
        assert await box.files.read_bytes(b"copy/a/" + raw) == b"x"
        assert await box.files.rename("copy", "moved") == f"{box.cwd}/moved"
        assert await box.files.resolve("./moved/../moved/00") == f"{box.cwd}/moved/00"
        with pytest.raises(RemoteError) as absent:
            await box.files.list("copy")
        assert code_of(absent) == "FS_NOT_FOUND"


async def test_changes_are_told_from_when_the_watch_stands(chain):
    async with Sandbox("default/box", socket=chain.socket) as box:
        await box.files.mkdir("watched")
        async with box.files.watch("watched") as changes:
            await box.files.write("watched/new", "1")
            async for change in changes:
                if change.path == "new":
                    break
        assert box.has("watch")


async def test_a_folder_goes_out_and_in_as_an_archive(chain):
    async with Sandbox("default/box", socket=chain.socket) as box:
        assert box.has("archives")
        await box.files.write("packed/sub/file", "content")
        archive = b"".join([piece async for piece in box.archive("packed")])
        report = await box.extract(archive, "unpacked")
        assert report["files"] == 1
        assert await box.files.read_text("unpacked/sub/file") == "content"


async def searched(box, folder):
    """A folder to search: ignored, hidden, not in UTF-8, and long."""
    for name, content in {
        "a.py": "one\nTwo caf\u00e9 two\nthree\n",
        "sub/b.txt": b"two \xe9 two\n",
        "sub/c.txt": "x" * 100 + "two",
        ".hidden.py": "two\n",
        "left.log": "two\n",
        ".ignore": "*.log\n",
    }.items():
        await box.files.write(f"{folder}/{name}", content)


async def test_a_search_sends_the_tool_that_the_sandbox_lacks_once_it_has_the_one(chain, tmp_path):
    another = tmp_path / "rg"
    another.write_bytes(b"#!/bin/sh\n")
    async with Sandbox("default/box", socket=chain.socket, ripgrep=another) as box:
        await searched(box, "lacking")
        with pytest.raises(RemoteError, match=f"takes the rg of SHA-256 [0-9a-f]{{64}}, and {another} is another") as missing:
            await box.search.glob("lacking")
        assert code_of(missing) == "TOOL_MISSING"
    async with Sandbox("default/box", socket=chain.socket, ripgrep=world.where("rg")) as box:
        found = await asyncio.gather(*(box.search.glob("lacking", order="path") for _ in range(4)))
        assert {each.paths for each in found} == {("a.py", "sub/b.txt", "sub/c.txt")}
    async with Sandbox("default/box", socket=chain.socket, ripgrep=another) as box:
        assert (await box.search.glob("lacking")).summary.found == 3, "it is there, and stays"


async def test_files_are_found_by_their_names_and_lines_by_what_stands_in_them(chain):
    async with Sandbox("default/box", socket=chain.socket, ripgrep=world.where("rg")) as box:
        await searched(box, "searched")
        found = await box.search.glob("searched", ["*.py", "!a.*"])
        assert (found.target, found.paths) == (f"{box.cwd}/searched", (".hidden.py",)), "what a glob names is looked at"
        found = await box.search.glob("searched", hidden=True, ignore_files=False, found_max=2)
        assert (len(found.paths), found.summary.limit) == (2, "found")
        assert (await box.search.glob("searched", types=["txt"], order="path")).paths == ("sub/b.txt", "sub/c.txt")
        found = await box.search.grep("two", "searched", case="smart", line_bytes_max=50, order="path", after=1)
        told = [(line.path, line.number, line.text[:20], [line.text[a:b] for a, b in line.spans]) for line in found.lines]
        assert told == [
            ("a.py", 2, "Two caf\u00e9 two", ["Two", "two"]),
            ("a.py", 3, "three", []),
            ("sub/b.txt", 1, "two \udce9 two", ["two", "two"]),
            ("sub/c.txt", 1, "x" * 20, []),
        ]
        assert [line.context for line in found.lines] == [False, True, False, False]
        assert [line.cut for line in found.lines] == [False, False, False, True]
        assert [line.offset for line in found.lines] == [4, 18, 0, 0]
        assert (found.summary.found, found.summary.files, found.summary.limit) == (3, 3, None)
        assert (await box.search.grep("two", "searched", literal=True, found_max=1)).summary.limit == "found"
        assert (await box.search.grep("t(wo", "searched", literal=True)).lines == ()
        with pytest.raises(RemoteError) as wrong:
            await box.search.grep("t(wo", "searched")
        assert code_of(wrong) == "INVALID"
