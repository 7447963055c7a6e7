"""Versions of files, and who comes first."""

import os

from seam import Failure, fails, not_through


def test_each_write_changes_the_version_also_of_the_same_size(seam):  # C1
    versions = [seam.write(seam.at("file"), content).version for content in ("one", "two", "two", "six")]
    assert len(set(versions)) == len(versions), versions


def test_a_write_by_others_changes_the_version(seam):  # C1 C3
    version = seam.write(seam.at("file"), "one").version
    seam.ground.write(seam.path("file"), b"two")
    assert seam.stat(seam.at("file")).version != version
    with fails("FS_STALE_VERSION"):
        seam.write(seam.at("file"), "three", ("replaceIfVersion", version))
    with fails("FS_STALE_VERSION"):
        seam.edit(seam.at("file"), "two", "three", version=version)
    assert seam.ground.text(seam.path("file")) == "two"


def test_a_file_put_in_its_place_with_the_same_size_and_time_has_another_version(seam):  # C1
    version = seam.write(seam.at("file"), "one").version
    there = seam.ground.at(seam.path("file")).stat()
    seam.ground.write(seam.path("other"), b"two")
    os.utime(seam.ground.at(seam.path("other")), ns=(there.st_atime_ns, there.st_mtime_ns))
    seam.ground.move(seam.path("other"), seam.path("file"))
    assert seam.stat(seam.at("file")).version != version


def test_a_write_in_place_that_sets_the_time_back_changes_the_version(seam):  # C1
    version = seam.write(seam.at("file"), "one").version
    there = seam.ground.at(seam.path("file")).stat()
    seam.ground.write(seam.path("file"), b"two")
    os.utime(seam.ground.at(seam.path("file")), ns=(there.st_atime_ns, there.st_mtime_ns))
    assert seam.stat(seam.at("file")).version != version


def test_a_version_stays_while_nobody_writes(seam):  # C1
    version = seam.write(seam.at("file"), "one").version
    seam.read_text(seam.at("file"))
    seam.list(seam.resolve(seam.folder))
    with fails("FS_EDIT_NOT_FOUND"):
        seam.edit(seam.at("file"), "none", "x")
    assert seam.stat(seam.at("file")).version == version


def test_changes_of_one_file_are_made_in_the_order_in_which_they_are_asked_for(seam):  # C2
    target = seam.at("file")
    asked = [seam.begin_write(target, f"content {number}") for number in range(12)]
    told = [pending.result() for pending in asked]
    assert [each.operation for each in told] == ["create"] + ["update"] * 11
    assert [each.before for each in told] == [None] + [f"content {number}" for number in range(11)]
    assert seam.ground.text(seam.path("file")) == "content 11"


@not_through("executor", "agentd", why="What is uploaded in pieces has its turn when it is whole: a client that wants order waits.")
def test_what_is_asked_for_behind_a_large_write_is_made_behind_it(seam):  # C2
    target, large = seam.at("file"), "large " * 200_000
    for number in range(5):
        written = seam.begin_write(target, f"{number}: {large}")
        edited = seam.begin_edit(target, f"{number}: large", f"{number}: small")
        written.result()
        edited.result()
        assert seam.ground.text(seam.path("file")).startswith(f"{number}: small")


def test_who_gives_up_in_the_line_is_told_and_holds_nobody_up(seam):  # C2 R6
    target = seam.at("file")
    first = seam.begin_write(target, "large " * 200_000)
    given_up = seam.begin_edit(target, "large", "never", replace_all=True).abort()
    last = seam.begin_write(target, "last")
    try:
        given_up.result()
    except Failure as failure:
        assert failure.code in ("FS_ABORTED", "FS_STALE_VERSION"), failure  # Where nothing was there yet to edit.
    first.result()
    last.result()
    assert seam.ground.at(seam.path("file")).exists()


def winners_of(asked):
    won = []
    for pending in asked:
        try:
            won.append(pending.result())
        except Failure as failure:
            assert failure.code == "FS_STALE_VERSION", failure
    return won


def test_of_many_edits_that_are_guarded_by_one_version_exactly_one_is_made(seam):  # C2
    target = seam.at("file")
    for round_ in range(5):
        version = seam.write(target, "n").version
        won = winners_of([seam.begin_edit(target, "n", f"n{number}", version=version) for number in range(8)])
        assert [each.after for each in won] == [seam.ground.text(seam.path("file"))], (round_, won)


def test_that_holds_between_sessions(seam):  # C3 C2
    with seam.another() as other:
        target = seam.at("file")
        for round_ in range(5):
            version = seam.write(target, "n").version
            asked = [who.begin_edit(target, "n", f"n{number}", version=version) for number in range(4) for who in (seam, other)]
            won = winners_of(asked)
            assert [each.after for each in won] == [seam.ground.text(seam.path("file"))], (round_, won)


def test_edits_that_are_not_guarded_lose_nothing_of_each_other(seam):  # C3 C2
    with seam.another() as other:
        names = [f"<{number}>" for number in range(10)]
        target = seam.at("file")
        seam.write(target, "".join(names))
        asked = [(seam, other)[number % 2].begin_edit(target, name, f"[{number}]") for number, name in enumerate(names)]
        for pending in asked:
            pending.result()
    assert seam.ground.text(seam.path("file")) == "".join(f"[{number}]" for number in range(10))


def test_each_operation_is_one_request(seam):  # C4
    with seam.counted() as (mine, requests):
        target = mine.resolve(seam.path("a/b/file"))
        steps = [lambda: mine.resolve(seam.path("a/b/file")), lambda: mine.stat(target), lambda: mine.write(target, "one\r\n"),
                 lambda: mine.read_text(target), lambda: mine.read_bytes(target, 100), lambda: mine.edit(target, "one", "two"),
                 lambda: mine.write(target, "three"), lambda: mine.list(mine.resolve(seam.path("a/b")))]
        counts = []
        for step in steps:
            before = requests()
            step()
            counts.append(requests() - before)
    assert counts == [1] * 7 + [2], counts  # The last two: a folder is resolved, and listed.
