"""Writing files."""

import contextlib
import os
import threading

from harness import Closed
from own import own_sandbox
from seam import Failure, Policy, fails, fails_without, not_through

LARGE = "large " * 50_000
MUCH = "much " * 400_000
TEN_MIB = 10 << 20
ONLY_DSH_ABORTS_FIRST = "Who has given up before asking asks nothing over the wire."
NO_HALF_UPLOADS = "A provider of dsh sends a text as a whole; nobody can keep half of it back."
OWN_EXECUTOR = "The case kills an executor of its own; the sandbox of these ways is shared by all cases."


def test_a_new_file_and_one_that_is_there_are_told_apart(seam):  # 2.3 A7
    made = seam.write(seam.at("file"), "one")
    assert (made.operation, made.before, made.after) == ("create", None, "one"), made
    changed = seam.write(seam.at("file"), "two")
    assert (changed.operation, changed.before, changed.after) == ("update", "one", "two"), changed
    assert seam.ground.text(seam.path("file")) == "two"


@not_through("executor", "agentd", why=ONLY_DSH_ABORTS_FIRST)
def test_a_write_that_is_given_up_before_it_is_asked_changes_nothing(seam):  # 2.3 R6
    seam.ground.write(seam.path("file"), b"old")
    for name in ("file", "new"):
        target = seam.at(name)
        with fails("FS_ABORTED"):
            seam.begin_aborted("writeText", target={"targetKey": target.key, "displayPath": target.display}, content="new").result()
    assert (seam.ground.names(seam.folder), seam.ground.text(seam.path("file"))) == (["file"], "old")


@fails_without("clearing", "nameless")
@not_through("dsh", why=NO_HALF_UPLOADS)
def test_a_write_that_is_given_up_half_way_changes_nothing_and_leaves_nothing(seam):  # 2.3 A5
    seam.ground.write(seam.path("file"), b"old")
    for name in ("file", "new", "folder/new"):
        unfinished = seam.begin_unfinished_write(seam.at(name), LARGE)
        unfinished.abort()
        with fails("FS_ABORTED"):
            unfinished.result()
    seam.wait_until(lambda: f"nothing is left: {seam.ground.names(seam.folder)}", lambda: seam.ground.names(seam.folder) == ["file"])
    assert seam.ground.text(seam.path("file")) == "old"


def test_a_write_that_is_denied_is_so_whatever_is_there(seam):  # 2.3
    seam.ground.folder(seam.path("folder"))
    for intent in (None, ("createIfAbsent",), ("replaceIfVersion", "no such version")):
        with fails("FS_SANDBOX_DENIED"):
            seam.write(seam.at("folder"), "x", intent, policy=Policy("read-only", seam.folder))


def test_what_is_no_regular_file_is_not_written_whatever_is_intended(seam):  # 2.3
    seam.ground.folder(seam.path("folder"))
    seam.ground.fifo(seam.path("pipe"))
    for name in ("folder", "pipe"):
        for intent in (None, ("createIfAbsent",), ("replaceIfVersion", "no such version")):
            with fails("FS_NOT_REGULAR_FILE"):
                seam.write(seam.at(name), "x", intent)
    with fails("FS_NOT_REGULAR_FILE"):
        seam.write(seam.resolve("/dev/null"), "x")
    assert seam.ground.names(seam.folder) == ["folder", "pipe"]


def test_a_file_that_was_not_expected_is_not_replaced(seam):  # 2.3
    seam.ground.write(seam.path("file"), b"old")
    with fails("FS_NOT_OBSERVED"):
        seam.write(seam.at("file"), "new", ("createIfAbsent",))
    assert seam.ground.text(seam.path("file")) == "old"


def test_a_file_of_another_version_is_not_replaced(seam):  # 2.3
    version = seam.write(seam.at("file"), "one").version
    seam.write(seam.at("file"), "two", ("replaceIfVersion", version))
    with fails("FS_STALE_VERSION"):
        seam.write(seam.at("file"), "three", ("replaceIfVersion", version))
    with fails("FS_STALE_VERSION"):
        seam.write(seam.at("none"), "x", ("replaceIfVersion", version))
    assert (seam.ground.names(seam.folder), seam.ground.text(seam.path("file"))) == (["file"], "two")


def test_of_many_who_make_a_file_exactly_one_does(seam):  # 2.3 A1 E
    with seam.another() as other:
        target = seam.at("file")
        asked = [(who.begin_write(target, f"{name}-{number}", ("createIfAbsent",)), f"{name}-{number}")
                 for number in range(5) for name, who in (("one", seam), ("other", other))]
        winners = []
        for pending, content in asked:
            try:
                assert pending.result().operation == "create"
                winners.append(content)
            except Failure as failure:
                assert failure.code == "FS_NOT_OBSERVED", failure
    assert winners == [seam.ground.text(seam.path("file"))], winners


def test_who_makes_a_file_at_the_same_moment_by_other_means_keeps_it(seam):  # 2.3 A1 E
    foreign_wins = 0
    for number in range(12):
        target, path = seam.at(f"file-{number}"), seam.path(f"file-{number}")
        pending = seam.begin_write(target, LARGE, ("createIfAbsent",))
        try:
            os.close(os.open(seam.ground.at(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            assert pending.result().operation == "create"
            assert seam.ground.text(path) == LARGE
            continue
        foreign_wins += 1
        with fails("FS_NOT_OBSERVED"):
            pending.result()
        assert seam.ground.read(path) == b""
    assert foreign_wins, "the race was never lost; nothing was shown"


@not_through("dsh", why=NO_HALF_UPLOADS)
def test_who_makes_a_file_while_another_is_uploaded_keeps_it(seam):  # A1
    unfinished = seam.begin_unfinished_write(seam.at("file"), LARGE, ("createIfAbsent",))
    seam.ground.write(seam.path("file"), b"foreign")
    with fails("FS_NOT_OBSERVED"):
        unfinished.result()
    assert seam.ground.text(seam.path("file")) == "foreign"
    unfinished = seam.begin_unfinished_write(seam.at("folder"), LARGE, ("createIfAbsent",))
    seam.ground.folder(seam.path("folder"))
    with fails("FS_NOT_OBSERVED", "FS_NOT_REGULAR_FILE"):
        unfinished.result()
    assert seam.ground.names(seam.folder) == ["file", "folder"]
    assert seam.ground.names(seam.path("folder")) == []


@not_through("dsh", why=NO_HALF_UPLOADS)
def test_what_is_being_written_is_nobody_elses_to_see(seam):  # A1
    unfinished = seam.begin_unfinished_write(seam.at("file"), LARGE)
    assert seam.stat(seam.at("file")) is None
    assert seam.list(seam.resolve(seam.folder)) == []
    for name in seam.ground.names(seam.folder):
        assert seam.ground.mode(seam.path(name)) & 0o077 == 0, oct(seam.ground.mode(seam.path(name)))
    unfinished.result()
    assert seam.ground.text(seam.path("file")) == LARGE
    assert seam.ground.names(seam.folder) == ["file"]


def test_a_file_that_is_replaced_keeps_its_mode(seam):  # A2 E
    for mode in (0o644, 0o755, 0o640, 0o777, 0o600):
        path = seam.ground.write(seam.path(f"file-{mode:o}"), b"old", mode)
        seam.write(seam.resolve(path), "new")
        assert seam.ground.mode(path) == mode
        seam.edit(seam.resolve(path), "new", "newer")
        assert seam.ground.mode(path) == mode


def test_a_new_file_is_for_its_user_alone(seam):  # A2
    seam.write(seam.at("file"), "x")
    seam.write(seam.at("folder/file"), "x", ("createIfAbsent",))
    assert seam.ground.mode(seam.path("file")) == 0o600
    assert seam.ground.mode(seam.path("folder/file")) == 0o600


@not_through("dsh", why="A provider of dsh asks for 0600, always.")
def test_a_new_file_has_the_mode_that_is_asked_for(seam):  # A2
    for mode, expected in ((0o640, 0o640), (0o755, 0o755), (None, 0o644)):
        args = {"path": seam.path(f"file-{expected:o}")} | ({"mode": mode} if mode else {})
        seam.session.call("fs.write", args, mutating=True, upload=b"x")
        assert seam.ground.mode(seam.path(f"file-{expected:o}")) == expected


def test_missing_folders_are_made(seam):  # A3
    seam.write(seam.at("a/b/c/file"), "x", ("createIfAbsent",))
    assert seam.ground.text(seam.path("a/b/c/file")) == "x"
    seam.ground.write(seam.path("plain"))
    assert seam.ground.names(seam.folder) == ["a", "plain"]


def test_through_a_link_what_it_leads_to_is_replaced(seam):  # A3
    seam.ground.folder(seam.path("folder"))
    seam.ground.write(seam.path("folder/file"), b"old", 0o640)
    seam.ground.link(seam.path("link"), "folder/file")
    written = seam.write(seam.at("link"), "new")
    assert (written.operation, written.before) == ("update", "old"), written
    assert seam.ground.at(seam.path("link")).is_symlink()
    assert (seam.ground.text(seam.path("folder/file")), seam.ground.mode(seam.path("folder/file"))) == ("new", 0o640)
    seam.edit(seam.at("link"), "new", "edited")
    assert seam.ground.at(seam.path("link")).is_symlink()
    assert seam.ground.text(seam.path("folder/file")) == "edited"


@fails_without("noLinks")
def test_a_write_goes_to_no_other_file_when_a_folder_was_swapped_for_a_link(seam):  # R7 A3
    for folder in ("folder", "other"):
        seam.ground.folder(seam.path(folder))
        seam.ground.write(seam.path(folder, "file"), folder.encode())
    file, new = seam.at("folder/file"), seam.at("folder/new")
    seam.ground.move(seam.path("folder"), seam.path("aside"))
    seam.ground.link(seam.path("folder"), "other")
    for change in (lambda: seam.write(file, "x"), lambda: seam.write(new, "x", ("createIfAbsent",)), lambda: seam.edit(file, "o", "x", True)):
        with fails("FS_IO_ERROR"):
            change()
    assert seam.ground.names(seam.path("other")) == ["file"]
    assert (seam.ground.text(seam.path("other/file")), seam.ground.text(seam.path("aside/file"))) == ("other", "folder")


def test_what_became_of_a_write_that_is_given_up_is_what_is_told(seam):  # A4
    seam.ground.write(seam.path("file"), b"old")
    target, there, told = seam.at("file"), "old", set()
    for number in range(30):
        content = f"{number}: {LARGE}"
        pending = seam.begin_write(target, content)
        for _ in range(number % 5):
            seam.stat(target)
        pending.abort()
        try:
            there = pending.result().after
            told.add("written")
        except Failure as failure:
            assert failure.code == "FS_ABORTED", failure
            told.add("aborted")
        assert seam.ground.text(seam.path("file")) == there, f"after {number}"
    assert seam.ground.names(seam.folder) == ["file"]


def test_who_reads_sees_the_whole_of_the_old_or_of_the_new(seam):  # A5 E
    contents = {letter: (letter * 300_000).encode() for letter in "ab"}
    seam.ground.write(seam.path("file"), contents["a"])
    stop, seen, torn = threading.Event(), set(), []

    def read():
        while not stop.is_set():
            content = seam.ground.read(seam.path("file"))
            seen.add(content[:1])
            if content not in contents.values():
                torn.append(len(content))
    reading = threading.Thread(target=read)
    reading.start()
    try:
        for number in range(20):
            seam.write(seam.at("file"), contents["ba"[number % 2]].decode())
    finally:
        stop.set()
        reading.join()
    assert not torn, f"{len(torn)} reads saw a part; their sizes: {torn[:5]}"
    assert seen


@fails_without("sweep", "nameless")
@not_through("agentd", "dsh", why=OWN_EXECUTOR)
def test_a_crash_leaves_no_part_of_a_file(seam):  # A5
    with seam.own_executor() as (executor, mine):
        mine.ground.write(mine.path("file"), b"old")
        for name in ("file", "new", "folder/new"):
            mine.begin_unfinished_write(mine.at(name), LARGE)
        for name in set(mine.ground.names(mine.folder)) - {"file"}:
            assert mine.ground.mode(mine.path(name)) == 0o700, f"{name} is open to others"
        executor.crash()
        assert mine.ground.names(mine.folder) == ["file"], f"left: {mine.ground.names(mine.folder)}"
        assert mine.ground.text(mine.path("file")) == "old"


@not_through("executor", why="The case beside this one has it.")
def test_a_crash_inside_a_sandbox_leaves_no_part_of_a_file(seam):  # A5
    with own_sandbox(seam.stage) as own:
        ground = own.ground()
        mine = seam.another(ground, sandbox=own.title)
        ground.write(mine.path("file"), b"old")
        pending = [mine.begin_write(mine.at(name), MUCH) for name in ("file", "folder/new")]
        if seam.way != "dsh":  # Where the rest of an upload is sent by who waits for it.
            mine.wait_until("something is gathered", lambda: own.has_open(mine.folder))
        own.crash_executor()
        with contextlib.suppress(Closed):  # Over the wire the session went with the executor.
            for each in pending:
                with contextlib.suppress(Failure):
                    each.result()
        mine.wait_until(lambda: f"nothing is left: {ground.all_names(mine.folder)}",
                        lambda: not any(name.startswith(".") for name in ground.all_names(mine.folder)))
        for name in set(ground.all_names(mine.folder)) - {"folder"}:
            assert ground.text(mine.path(name)) in (MUCH, "old"), f"{name} is torn"
        with contextlib.suppress(Closed):
            mine.close()


def test_what_is_stored_is_what_was_given(seam):  # A6 E
    for content in ("crlf\r\nlf\nlone\rcr", "\ufeffmark", "nul\0in it", "€\U0001f600", "", "no newline at the end"):
        written = seam.write(seam.at("file"), content)
        assert seam.ground.read(seam.path("file")) == content.encode()
        assert written.after == content.replace("\r\n", "\n"), written


def test_what_was_before_is_told_with_line_feeds(seam):  # A6
    seam.ground.write(seam.path("file"), b"one\r\ntwo\nlone\rend\r\n")
    written = seam.write(seam.at("file"), "x\r\ny")
    assert (written.before, written.after) == ("one\ntwo\nlone\rend\n", "x\ny"), written


def test_what_was_no_text_before_is_not_told(seam):  # A6
    for old in (b"\xff\xfe", b"a\0b", b"cut \xe2\x82"):
        seam.ground.write(seam.path("file"), old)
        written = seam.write(seam.at("file"), "text")
        assert (written.operation, written.before) == ("update", None), written


def test_from_ten_mebibytes_on_what_was_before_is_not_told(seam):  # A6
    seam.ground.write(seam.path("file"), b"x" * (TEN_MIB - 1))
    assert seam.write(seam.at("file"), "small").before == "x" * (TEN_MIB - 1)
    seam.ground.write(seam.path("file"), b"x" * TEN_MIB)
    assert seam.write(seam.at("file"), "small").before is None
    assert seam.write(seam.at("file"), "y" * TEN_MIB).before is None
    assert seam.ground.at(seam.path("file")).stat().st_size == TEN_MIB


def test_a_write_tells_the_version_that_a_look_shows(seam):  # A7
    for intent in (("createIfAbsent",), None):
        written = seam.write(seam.at("file"), f"{intent}", intent)
        assert seam.stat(seam.at("file")).version == written.version
    entry, = seam.list(seam.resolve(seam.folder))
    assert entry.version == written.version
    assert seam.edit(seam.at("file"), "None", "x", version=written.version).version == seam.stat(seam.at("file")).version


def test_a_write_into_a_folder_that_may_not_be_changed_is_denied(seam):  # 2.3
    seam.ground.folder(seam.path("locked"), mode=0o555)
    with fails("FS_PERMISSION_DENIED"):
        seam.write(seam.at("locked/file"), "x")
    assert seam.ground.names(seam.path("locked")) == []
