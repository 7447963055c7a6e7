"""Listing folders."""

import threading

from seam import fails


def entries(seam, *parts):
    return {entry.name: entry for entry in seam.list(seam.at(*parts))}


def test_a_listing_is_one_level_deep_and_has_everything(seam):  # R8
    seam.ground.folder(seam.path("folder"))
    seam.ground.folder(seam.path("folder/below"))
    seam.ground.write(seam.path("folder/below/deeper"))
    seam.ground.write(seam.path("folder/.hidden"), b"123")
    found = entries(seam, "folder")
    assert sorted(found) == [".hidden", "below"], found
    assert (found[".hidden"].type, found[".hidden"].size) == ("file", 3), found
    assert found["below"].type == "directory"
    assert found[".hidden"].version == seam.stat(seam.at("folder/.hidden")).version


def test_a_listing_has_the_same_order_each_time(seam):  # R8
    for name in ("b", "B", "a", "A", "_", "1"):
        seam.ground.write(seam.path(name))
    expected = {"dsh": ["_", "1", "a", "A", "b", "B"]}.get(seam.way, ["1", "A", "B", "_", "a", "b"])
    for _ in range(3):
        assert [entry.name for entry in seam.list(seam.resolve(seam.folder))] == expected


def test_children_are_the_files_that_their_links_lead_to(seam):  # R8
    seam.ground.folder(seam.path("folder"))
    seam.ground.write(seam.path("file"), b"12345")
    seam.ground.link(seam.path("folder/to-file"), "../file")
    seam.ground.link(seam.path("folder/to-folder"), "..")
    found = entries(seam, "folder")
    assert found["to-file"].target.key == seam.at("file").key
    assert found["to-file"].target.display == seam.path("folder/to-file")
    assert found["to-folder"].target.key == seam.resolve(seam.folder).key


def test_a_broken_link_is_listed_as_something_else(seam):  # R8 E
    seam.ground.link(seam.path("broken"), "nowhere")
    seam.ground.fifo(seam.path("pipe"))
    found = entries(seam, "")
    assert sorted(found) == ["broken", "pipe"], found
    broken = found["broken"]
    assert (broken.type, broken.version, broken.size) == ("other", None, None), broken
    assert found["pipe"].type == "other"


def test_a_file_that_may_not_be_read_is_listed(seam):  # R8
    seam.ground.write(seam.path("shut"), b"12345", mode=0o000)
    found = entries(seam, "")
    assert (found["shut"].type, found["shut"].size) == ("file", 5), found


def test_a_child_that_may_not_be_looked_at_fails_the_listing(seam):  # R8
    seam.ground.folder(seam.path("locked"))
    seam.ground.write(seam.path("locked/file"))
    seam.ground.folder(seam.path("folder"))
    seam.ground.write(seam.path("folder/good"))
    seam.ground.link(seam.path("folder/into-locked"), "../locked/file")
    assert sorted(entries(seam, "folder")) == ["good", "into-locked"]
    seam.ground.at(seam.path("locked")).chmod(0o000)
    with fails("FS_PERMISSION_DENIED"):
        seam.list(seam.at("folder"))


def test_what_is_no_folder_cannot_be_listed(seam):  # R8
    seam.ground.write(seam.path("file"))
    with fails("FS_NOT_DIRECTORY"):
        seam.list(seam.at("file"))
    with fails("FS_NOT_FOUND"):
        seam.list(seam.at("none"))
    seam.ground.folder(seam.path("shut"), mode=0o000)
    with fails("FS_PERMISSION_DENIED"):
        seam.list(seam.at("shut"))


def test_a_large_folder_is_listed_whole_and_each_name_once(seam):  # R8
    names = [f"f{number}" for number in range(2_345)]
    for name in names:
        seam.ground.at(seam.path(name)).touch()
    assert sorted(entry.name for entry in seam.list(seam.resolve(seam.folder))) == sorted(names)


def test_a_child_that_vanishes_meanwhile_fails_nothing(seam):  # R8
    stay = [f"stay{number}" for number in range(60)]
    for name in stay:
        seam.ground.write(seam.path(name))
    stop = threading.Event()

    def come_and_go():
        path = seam.ground.at(seam.path("fleeting"))
        while not stop.is_set():
            path.touch()
            path.unlink()
    coming = threading.Thread(target=come_and_go)
    coming.start()
    try:
        for _ in range(6):
            assert {entry.name for entry in seam.list(seam.resolve(seam.folder))} - {"fleeting"} == set(stay)
    finally:
        stop.set()
        coming.join()
