"""Editing files."""

from seam import Policy, fails


def edited(seam, content, old, new, replace_all=False):
    """The bytes of a file after its edit, and what was told of it."""
    seam.ground.write(seam.path("file"), content if isinstance(content, bytes) else content.encode())
    told = seam.edit(seam.at("file"), old, new, replace_all)
    return seam.ground.read(seam.path("file")).decode(), told


def test_an_edit_of_what_is_absent_is_stale(seam):  # 2.4 E
    version = seam.write(seam.at("file"), "x").version
    for guard in (None, version):
        with fails("FS_STALE_VERSION"):
            seam.edit(seam.at("none"), "x", "y", version=guard)
    assert seam.ground.names(seam.folder) == ["file"]


def test_an_edit_of_no_regular_file_is_refused(seam):  # 2.4
    seam.ground.fifo(seam.path("pipe"))
    for target in (seam.resolve(seam.folder), seam.at("pipe"), seam.resolve("/dev/null")):
        for version in (None, "no such version"):
            with fails("FS_NOT_REGULAR_FILE"):
                seam.edit(target, "x", "y", version=version)


def test_an_edit_of_another_version_is_stale_before_its_text_is_looked_for(seam):  # 2.4
    version = seam.write(seam.at("file"), "one").version
    seam.ground.write(seam.path("file"), b"\xff\0")
    with fails("FS_STALE_VERSION"):
        seam.edit(seam.at("file"), "nothing", "x", version=version)
    with fails("FS_STALE_VERSION"):
        seam.edit(seam.at("file"), "", "x", version=version)


def test_an_edit_of_no_text_is_refused(seam):  # 2.4 R2
    for content in (b"x\0", b"x" * 20_000 + b"\0", b"x\xff", b"x\xe2\x82"):
        seam.ground.write(seam.path("file"), content)
        with fails("FS_NOT_TEXT"):
            seam.edit(seam.at("file"), "x", "y", True)
        assert seam.ground.read(seam.path("file")) == content


def test_an_edit_that_finds_nothing_says_so(seam):  # 2.4
    seam.ground.write(seam.path("file"), b"content")
    for old in ("", "other", "Content", "contents"):
        for replace_all in (False, True):
            with fails("FS_EDIT_NOT_FOUND"):
                seam.edit(seam.at("file"), old, "x", replace_all)
    assert seam.ground.text(seam.path("file")) == "content"


def test_an_edit_that_finds_more_than_one_is_ambiguous(seam):  # 2.4
    seam.ground.write(seam.path("file"), b"one two one")
    with fails("FS_AMBIGUOUS_EDIT"):
        seam.edit(seam.at("file"), "one", "x")
    assert seam.ground.text(seam.path("file")) == "one two one"
    assert edited(seam, "one two one", "one", "x", True)[0] == "x two x"


def test_an_edit_that_is_denied_changes_nothing(seam):  # 2.4 2.6
    seam.ground.write(seam.path("file"), b"one")
    with fails("FS_SANDBOX_DENIED"):
        seam.edit(seam.at("file"), "one", "x", policy=Policy("read-only", seam.folder))
    assert seam.ground.text(seam.path("file")) == "one"


def test_an_edit_tells_what_was_and_what_is(seam):  # 2.4 A6 A7
    version = seam.write(seam.at("file"), "one\r\ntwo\r\n").version
    told = seam.edit(seam.at("file"), "two", "three", version=version)
    assert (told.before, told.after) == ("one\ntwo\n", "one\nthree\n"), told
    assert told.version == seam.stat(seam.at("file")).version != version


def test_an_edit_finds_its_text_whatever_the_line_ends(seam):  # D1
    for content in ("a\r\nb\r\nc\r\n", "a\nb\nc\n"):
        for old in ("a\r\nb", "a\nb"):
            after, _ = edited(seam, content, old, "x\ny")
            end = "\r\n" if "\r" in content else "\n"
            assert after == f"x{end}y{end}c{end}", (content, old, after)


def test_a_lone_carriage_return_is_a_character(seam):  # D1 E
    assert edited(seam, "a\rb\nc\n", "b", "x")[0] == "a\rx\nc\n"
    assert edited(seam, "a\rb\nc\n", "a\rb", "x\ry")[0] == "x\ry\nc\n"
    seam.ground.write(seam.path("file"), b"a\rb")
    with fails("FS_EDIT_NOT_FOUND"):
        seam.edit(seam.at("file"), "a\nb", "x")


def test_places_do_not_overlap(seam):  # D1
    assert edited(seam, "aaa", "aa", "b")[0] == "ba"
    assert edited(seam, "aaaaa", "aa", "b", True)[0] == "bba"
    seam.ground.write(seam.path("file"), b"aaaa")
    with fails("FS_AMBIGUOUS_EDIT"):
        seam.edit(seam.at("file"), "aa", "b")


def test_a_file_keeps_the_line_ends_that_most_of_it_has(seam):  # D2 E
    assert edited(seam, "a\r\nb\r\nc\n", "b", "x\ny")[0] == "a\r\nx\r\ny\r\nc\r\n"
    assert edited(seam, "a\r\nb\nc\n", "b", "x\r\ny")[0] == "a\nx\ny\nc\n"
    assert edited(seam, "a\r\nb\n", "b", "x")[0] == "a\nx\n", "as many of each"
    assert edited(seam, "one line", "line", "x\r\ny")[0] == "one x\ny"


def test_the_line_ends_of_the_first_4096_characters_count(seam):  # D2
    far = "é" * 4_096
    assert edited(seam, f"\r\n{far}\n\n\n", far, "x")[0] == "\r\nx\r\n\r\n\r\n"
    assert edited(seam, f"\n{far}\r\n\r\n\r\n", far, "x")[0] == "\nx\n\n\n"
    near = "é" * 4_000  # Of two bytes each: what comes then is beyond 4,096 bytes, and not beyond 4,096 characters.
    assert edited(seam, f"\n{near}\r\n\r\n\r\n", near, "x")[0] == "\r\nx\r\n\r\n\r\n"


PATTERNS = ["$&", "$$", "$'", "$`", "$1", "$<name>", "\\1", "\\n", "%s", "{0}", "$& $$ $'"]


def test_the_new_text_is_taken_as_it_is_typed(seam):  # D3 E
    for pattern in PATTERNS:
        assert edited(seam, "a OLD b", "OLD", pattern)[0] == f"a {pattern} b"
        assert edited(seam, "OLD OLD", "OLD", pattern, True)[0] == f"{pattern} {pattern}"


def test_the_old_text_is_no_pattern(seam):  # D3
    for old in (".*", "[a]", "(", "^a", "$", "a|b", "\\"):
        assert edited(seam, f"aXb {old} c", old, "new")[0] == "aXb new c"


def test_an_edit_may_take_all_away(seam):  # D3
    after, told = edited(seam, "gone", "gone", "")
    assert (after, told.before, told.after) == ("", "gone", ""), (after, told)
