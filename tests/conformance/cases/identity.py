"""Which file a path stands for."""

from seam import Policy, fails, not_through


def test_a_blank_path_is_nothing(seam):  # F1
    for blank in ("  ", "\n", "\t "):
        with fails("FS_NOT_FOUND"):
            seam.resolve(blank)


@not_through("executor", "agentd", why="A path in a request has at least one byte; without, the request is INVALID.")
def test_an_empty_path_is_nothing(seam):  # F1
    with fails("FS_NOT_FOUND"):
        seam.resolve("")
    with fails("FS_NOT_FOUND"):
        seam.lstat("")


def test_a_path_shows_as_it_is_spelled_with_no_link_followed(seam):  # F1
    seam.ground.folder(seam.path("real"))
    seam.ground.link(seam.path("alias"), "real")
    target = seam.resolve("x/../alias//./file", cwd=seam.folder)
    assert target.display == seam.path("alias/file"), target


def test_all_ways_to_spell_a_file_give_one_key(seam):  # F2
    seam.ground.folder(seam.path("real"))
    seam.ground.write(seam.path("real/file"))
    seam.ground.link(seam.path("alias"), "real")
    seam.ground.link(seam.path("absolute"), seam.path("real/file"))
    seam.ground.link(seam.path("chain"), "absolute")
    spellings = ["real/file", "real//file", "./real/./file", "real/../real/file", "alias/file", "absolute", "chain",
                 seam.path("real/file")]
    assert len({seam.resolve(each, cwd=seam.folder).key for each in spellings}) == 1
    assert seam.at("real").key != seam.at("real/file").key


def test_a_key_is_the_same_before_a_file_is_made_and_after(seam):  # F2
    seam.ground.folder(seam.path("real"))
    seam.ground.link(seam.path("alias"), "real")
    before = [seam.at(each) for each in ("alias/new/deep/file", "real/new/deep/file")]
    assert before[0].key == before[1].key
    seam.write(before[0], "x")
    assert {seam.at(each).key for each in ("alias/new/deep/file", "real/new/deep/file")} == {before[0].key}
    assert seam.stat(before[1]).size == 1


def test_what_is_not_there_is_absent_and_no_error(seam):  # F3
    assert seam.stat(seam.at("none")) is None
    assert seam.stat(seam.at("no/such/folder")) is None
    assert seam.lstat("none", cwd=seam.folder) is None
    seam.ground.write(seam.path("file"))
    assert seam.lstat("file/below/that", cwd=seam.folder) is None


def test_a_file_that_became_one_on_the_way_makes_what_was_below_it_absent(seam):  # F3
    seam.ground.folder(seam.path("folder"))
    below = seam.at("folder/file")
    seam.ground.remove(seam.path("folder"))
    seam.ground.write(seam.path("folder"))
    assert seam.stat(below) is None


def test_a_look_tells_what_is_there(seam):  # F3
    seam.ground.write(seam.path("file"), b"12345")
    seam.ground.link(seam.path("link"), "file")
    seam.ground.fifo(seam.path("pipe"))
    file = seam.stat(seam.at("file"))
    assert (file.type, file.size) == ("file", 5), file
    assert seam.stat(seam.at("link")) == file
    assert seam.lstat("link", cwd=seam.folder).type == "symlink"
    assert seam.lstat("file", cwd=seam.folder).type == "file"
    assert seam.stat(seam.resolve(seam.folder)).type == "directory"
    assert seam.stat(seam.at("pipe")).type == "other"


def test_a_link_to_nothing_stands_for_what_it_leads_to(seam):  # F4
    seam.ground.link(seam.path("dangling"), "later/made")
    target = seam.at("dangling")
    assert target.key == seam.at("later/made").key
    assert target.display == seam.path("dangling")
    assert seam.stat(target) is None
    assert seam.lstat("dangling", cwd=seam.folder).type == "symlink"
    seam.write(target, "through", ("createIfAbsent",))
    assert seam.ground.text(seam.path("later/made")) == "through"
    assert seam.ground.at(seam.path("dangling")).is_symlink()


def test_a_link_to_nothing_is_fenced_where_it_leads_to(seam):  # F4 2.6 E
    seam.ground.folder(seam.path("inside"))
    seam.ground.link(seam.path("inside/dangling"), "../outside")
    with fails("FS_SANDBOX_DENIED"):
        seam.write(seam.at("inside/dangling"), "escaped", policy=Policy("workspace-write", seam.path("inside")))
    assert seam.ground.names(seam.folder) == ["inside"]


def test_below_a_file_nothing_is_found(seam):  # F4
    seam.ground.write(seam.path("file"))
    for below in ("file/below", "file/below/deeper"):
        with fails("FS_NOT_FOUND"):
            seam.at(below)


def test_links_in_a_circle_are_an_error_and_hold_nobody_up(seam):  # F4
    seam.ground.link(seam.path("one"), "other")
    seam.ground.link(seam.path("other"), "one")
    with fails("FS_IO_ERROR"):
        seam.at("one")
    assert seam.lstat("one", cwd=seam.folder).type == "symlink"


NAMES = ["with\nnewline", "\n", " leading and trailing ", "ünïcödé", "日本語", "emoji-\U0001f600", "-rf", "tab\t", "quote'\"", "back\\slash",
         "*"]


def test_names_of_every_kind_survive(seam):  # F5
    for name in NAMES:
        seam.write(seam.at(name), name)
    assert seam.ground.names(seam.folder) == sorted(NAMES)
    listed = {entry.name: entry for entry in seam.list(seam.resolve(seam.folder))}
    assert sorted(listed) == sorted(NAMES)
    for name in NAMES:
        assert seam.read_text(listed[name].target) == name
        assert seam.at(name).display == seam.path(name)


def test_a_name_that_is_no_text_can_be_read_and_changed(seam):  # F5
    seam.ground.write(seam.path("bad-\udcff-name"), b"old")
    entry, = seam.list(seam.resolve(seam.folder))
    assert seam.read_text(entry.target) == "old"
    seam.write(entry.target, "new")
    assert seam.ground.text(seam.path("bad-\udcff-name")) == "new"
    assert len(seam.ground.names(seam.folder)) == 1


@not_through("executor", "agentd", why="A URI is made by the client; the protocol knows paths.")
def test_a_uri_has_each_byte_of_a_name_that_is_not_plain_encoded(seam):  # F6
    target = seam.at("ä b", "50%#?.txt")
    assert seam.file_url(target) == f"file://{seam.folder}/%C3%A4%20b/50%25%23%3F.txt"
    assert seam.process_path(target) == seam.path("ä b", "50%#?.txt")


@not_through("executor", "agentd", why="What contains what is judged by the client; the protocol knows paths.")
def test_a_folder_contains_what_is_below_it_by_whole_names(seam):  # F6
    folder = seam.at("a/b")
    for inside in ("a/b", "a/b/c", "a/b/c/d"):
        assert seam.contains(folder, seam.at(inside))
    for outside in ("a/bc", "a", "b", "a/B"):
        assert not seam.contains(folder, seam.at(outside))
    assert seam.contains(seam.resolve("/"), folder)
