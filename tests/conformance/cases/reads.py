"""Reading files."""

import threading

from seam import fails, fails_without, not_through

EURO = "€uro "


def test_a_file_that_is_absent_is_not_found(seam):  # R1
    for read in (seam.read_text, seam.read_bytes, lambda target: next(seam.stream_text(target))):
        with fails("FS_NOT_FOUND"):
            read(seam.at("none"))


def test_what_is_no_regular_file_is_refused_and_nobody_waits_for_a_pipe(seam):  # R1
    seam.ground.fifo(seam.path("pipe"))
    seam.ground.listening_socket(seam.path("s"))
    for path in (seam.folder, seam.path("pipe"), seam.path("s"), "/dev/null", "/dev/zero"):
        for read in (seam.read_text, seam.read_bytes):
            with fails("FS_NOT_REGULAR_FILE"):
                read(seam.resolve(path))


def test_a_file_that_may_not_be_read_is_denied(seam):  # R1
    seam.ground.write(seam.path("shut"), b"secret", mode=0o000)
    with fails("FS_PERMISSION_DENIED"):
        seam.read_text(seam.at("shut"))
    seam.ground.folder(seam.path("locked"), mode=0o000)
    with fails("FS_PERMISSION_DENIED"):
        seam.read_text(seam.at("locked/file"))


def test_bytes_that_are_no_text_are_told_as_such(seam):  # R2
    for content in (b"\xff", b"ok \xc3\x28 ok", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80\x80\x80", b"cut \xe2\x82"):
        seam.ground.write(seam.path("file"), content)
        with fails("FS_NOT_TEXT"):
            seam.read_text(seam.at("file"))
        assert seam.read_bytes(seam.at("file")) == content


def test_a_zero_byte_near_the_beginning_is_no_text(seam):  # R2
    for position in (0, 4_000, 8_191):
        seam.ground.write(seam.path("file"), b"a" * position + b"\0" + b"b" * 10_000)
        with fails("FS_NOT_TEXT"):
            seam.read_text(seam.at("file"))


def test_a_zero_byte_far_from_the_beginning_is_a_character(seam):  # R2 E
    content = b"a" * 8_192 + b"\0b"
    seam.ground.write(seam.path("file"), content)
    assert seam.read_text(seam.at("file")) == content.decode()


def test_text_is_read_as_it_is_stored(seam):  # R3 E
    text = "lf\ncrlf\r\nlone\rend\n\r\n\ttab €\U0001f600\u2028\u0085 \u0007"
    seam.ground.write(seam.path("file"), text.encode())
    assert seam.read_text(seam.at("file")) == text
    assert "".join(seam.stream_text(seam.at("file"))) == text
    seam.ground.write(seam.path("file"), b"")
    assert seam.read_text(seam.at("file")) == ""


def test_a_byte_order_mark_does_not_show(seam):  # R3
    seam.ground.write(seam.path("file"), "\ufeffone\ufefftwo".encode())
    assert seam.read_text(seam.at("file")) == "one\ufefftwo"
    assert "".join(seam.stream_text(seam.at("file"))) == "one\ufefftwo"
    assert seam.read_bytes(seam.at("file")).startswith(b"\xef\xbb\xbfone")


def test_an_edit_keeps_the_byte_order_mark_out_of_sight(seam):  # R3
    seam.ground.write(seam.path("file"), "\ufeffone two".encode())
    edited = seam.edit(seam.at("file"), "one", "three")
    assert (edited.before, edited.after) == ("one two", "three two"), edited
    assert seam.ground.read(seam.path("file")) == "\ufeffthree two".encode()


def test_a_streamed_text_comes_whole_in_pieces_that_are_text(seam):  # R4
    for shift in range(3):  # So that borders of pieces fall on each byte of a character.
        text = "x" * shift + EURO * 150_000
        seam.ground.write(seam.path("file"), text.encode())
        pieces = list(seam.stream_text(seam.at("file")))
        assert len(pieces) > 1 and all(pieces)
        assert not any("\ufffd" in piece or any(0xD800 <= ord(each) < 0xE000 for each in piece) for piece in pieces)
        assert "".join(pieces) == text


def test_bytes_that_are_no_text_fail_after_what_is_good_before(seam):  # R4
    good = EURO * 100_000
    for bad in (b"\xff after", b"\xe2\x82"):  # One in the middle, a character that is cut off at the end.
        seam.ground.write(seam.path("file"), good.encode() + bad)
        pieces = []
        with fails("FS_NOT_TEXT"):
            for piece in seam.stream_text(seam.at("file")):
                pieces.append(piece)
        assert "".join(pieces) == good


@fails_without("closing")
def test_who_leaves_off_ends_the_reading_in_the_sandbox(seam):  # R4
    path = seam.ground.write(seam.path("file"), EURO.encode() * 2_000_000)
    stream = seam.stream_text(seam.at("file"))
    assert next(stream).startswith(EURO)
    seam.wait_until("the file is open in the sandbox", lambda: seam.ground.holders(path))
    stream.close()
    seam.wait_until("nobody has it open any more", lambda: not seam.ground.holders(path))
    assert seam.stat(seam.at("file")).size == len(EURO.encode()) * 2_000_000


def test_a_bound_on_bytes_is_inclusive(seam):  # R5
    seam.ground.write(seam.path("file"), b"12345")
    assert seam.read_bytes(seam.at("file"), 5) == b"12345"
    assert seam.read_bytes(seam.at("file"), 6) == b"12345"
    for fewer in (0, 4):
        with fails("FS_TOO_LARGE"):
            seam.read_bytes(seam.at("file"), fewer)


def test_an_empty_file_is_no_bytes(seam):  # R5
    seam.ground.write(seam.path("file"))
    assert seam.read_bytes(seam.at("file"), 0) == b""
    assert seam.read_bytes(seam.at("file"), 100) == b""


def test_a_file_that_is_longer_than_it_says_is_never_cut(seam):  # R5 E
    content = seam.read_bytes(seam.resolve("/proc/self/status"), 1 << 20)  # Its size is said to be 0.
    assert content.startswith(b"Name:") and content.count(b"\n") > 20
    with fails("FS_TOO_LARGE"):
        seam.read_bytes(seam.resolve("/proc/self/status"), 100)
    assert seam.read_text(seam.resolve("/proc/self/status")).startswith("Name:")


def test_a_file_that_grows_meanwhile_is_never_cut(seam):  # R5 E
    path, size = seam.path("file"), 1 << 20
    seam.ground.write(path, b"a" * size)
    stop = threading.Event()

    def grow():
        with open(seam.ground.at(path), "r+b") as file:
            while not stop.is_set():
                file.truncate(size)
                file.seek(size)
                file.write(b"b")
                file.flush()
    growing = threading.Thread(target=grow)
    growing.start()
    try:
        for _ in range(6):
            try:
                assert seam.read_bytes(seam.at("file"), size) == b"a" * size
            except Exception as failure:
                assert getattr(failure, "code", None) == "FS_TOO_LARGE", failure
    finally:
        stop.set()
        growing.join()


@not_through("executor", "agentd", why="Who has given up before asking asks nothing over the wire.")
def test_what_is_given_up_before_it_is_asked_is_aborted(seam):  # R6
    target = seam.at("file")
    seam.ground.write(seam.path("file"), b"x")
    raw = {"targetKey": target.key, "displayPath": target.display}
    for what, more in (("stat", {}), ("readText", {}), ("streamText", {}), ("readBytes", {"maxBytes": 10}), ("listDir", {})):
        with fails("FS_ABORTED"):
            seam.begin_aborted(what, target=raw, **more).result()
    with fails("FS_ABORTED"):
        seam.begin_aborted("resolve", path=seam.folder).result()


@fails_without("closing")
def test_a_read_that_is_given_up_is_aborted_and_ends_in_the_sandbox(seam):  # R6
    path = seam.ground.write(seam.path("file"), EURO.encode() * 8_000_000)
    target = seam.at("file")
    for begin in (lambda: seam.begin_read_bytes(target, 1 << 30), lambda: seam.begin_read_text(target)):
        read = begin()
        if seam.way != "dsh":  # Whose providers take all that comes: the end of the reading may be a matter of luck.
            seam.wait_until("the file is open in the sandbox", lambda: seam.ground.holders(path))
        read.abort()
        with fails("FS_ABORTED"):
            read.result()
    seam.wait_until("nobody has it open any more", lambda: not seam.ground.holders(path))
    assert seam.stat(target).size == len(EURO.encode()) * 8_000_000


@not_through("executor", "agentd", why="Over the wire a stream is stopped, and nothing more is heard of it.")
def test_a_stream_that_is_given_up_says_that_it_is_aborted(seam):  # R6 R4
    path = seam.ground.write(seam.path("file"), EURO.encode() * 2_000_000)
    target = seam.at("file")
    asked = seam.begin("streamText", target={"targetKey": target.key, "displayPath": target.display})
    stream = asked.result()
    assert seam.bridge.call("nextText", stream=stream).startswith(EURO)
    asked.abort()
    with fails("FS_ABORTED"):
        while seam.bridge.call("nextText", stream=stream) is not None:
            pass
    seam.wait_until("nobody has it open any more", lambda: not seam.ground.holders(path))


@fails_without("noLinks")
def test_a_folder_that_was_swapped_for_a_link_leads_to_no_other_file(seam):  # R7
    for folder in ("folder", "other"):
        seam.ground.folder(seam.path(folder))
        seam.ground.write(seam.path(folder, "file"), folder.encode())
    file, folder = seam.at("folder/file"), seam.at("folder")
    seam.ground.move(seam.path("folder"), seam.path("aside"))
    seam.ground.link(seam.path("folder"), "other")
    for read in (seam.read_text, seam.read_bytes, lambda target: next(seam.stream_text(target))):
        with fails("FS_IO_ERROR"):
            read(file)
    with fails("FS_IO_ERROR", "FS_NOT_DIRECTORY"):
        seam.list(folder)


def test_a_file_that_was_swapped_for_a_link_leads_to_no_other_file(seam):  # R7
    seam.ground.write(seam.path("file"), b"mine")
    seam.ground.write(seam.path("other"), b"other")
    target = seam.at("file")
    seam.ground.at(seam.path("file")).unlink()
    seam.ground.link(seam.path("file"), "other")
    for read in (seam.read_text, seam.read_bytes):
        with fails("FS_IO_ERROR", "FS_NOT_REGULAR_FILE"):
            read(target)
