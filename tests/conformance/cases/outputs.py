"""What a command writes, and who reads it when."""

import os
import pathlib
import secrets

from seam import Collect, Outcome, not_through
from world import wait_until

NUMBERS = "".join(f"{number}\n" for number in range(200_000))
COUNT = ["seq", "0", "199999"]


def test_an_offset_counts_from_the_first_byte_and_reading_takes_nothing_away(seam):  # O1
    command = seam.spawn(["printf", "abcdef"])
    assert command.done() == Outcome(0, None)
    for _ in range(2):
        for start in range(7):
            read = command.read_from(start)
            assert (read.text, read.next, read.lossy, read.spill_path) == ("abcdef"[start:], 6, False, None), (start, read)


def test_each_reader_goes_on_where_he_was(seam):  # O1
    command = seam.spawn(["cat"], stdin="pipe")
    command.write(b"one ")
    command.until_total(4)
    first = command.read_from(0)
    command.write(b"two ")
    command.until_total(8)
    assert command.read_from(first.next).text == "two "
    assert command.read_from(0).text == "one two "
    command.write(b"three")
    command.end_input()
    assert command.done() == Outcome(0, None)
    assert command.read_from(8).text == "three"
    assert command.read_from(first.next).text == "two three"


def test_the_two_outputs_have_offsets_of_their_own(seam):  # O1
    command = seam.spawn(["sh", "-c", "printf out; printf error >&2"])
    command.done()
    assert [command.read_from(1, name).text for name in ("stdout", "stderr")] == ["ut", "rror"]
    assert [command.read_from(0, name).next for name in ("stdout", "stderr")] == [3, 5]


def test_as_many_bytes_as_were_asked_for_have_lost_nothing(seam):  # O2
    for name, redirected in (("stdout", ""), ("stderr", " >&2")):
        command = seam.spawn(["sh", "-c", f"printf 0123456789{redirected}"], **{name: Collect(10, 1000)})
        command.done()
        read = command.read_from(0, name)
        assert (read.text, read.next, read.lossy, read.spill_path) == ("0123456789", 10, False, None), read


def test_one_byte_more_is_lossy_for_who_begins_before_the_tail_and_only_then(seam):  # O2
    command = seam.spawn(["printf", "0123456789a"], stdout=Collect(10))
    command.done()
    assert [(read.text, read.next, read.lossy) for read in (command.read_from(start) for start in (0, 1, 2, 11))] == [
        ("123456789a", 11, True), ("123456789a", 11, False), ("23456789a", 11, False), ("", 11, False)]


def test_the_tail_is_exactly_the_last_bytes_of_much(seam):  # O2
    command = seam.spawn(COUNT, stdout=Collect(64_000))
    assert command.done() == Outcome(0, None)
    read = command.read_from(0)
    assert read.text == NUMBERS[-64_000:] and read.next == len(NUMBERS) and read.lossy
    assert not command.read_from(len(NUMBERS) - 64_000).lossy
    assert command.read_from(len(NUMBERS) - 1).text == "\n"


def test_the_tail_of_what_still_runs_is_exact_too(seam):  # O2
    command = seam.spawn(["sh", "-c", "printf 0123456789; read -r line; printf abc"], stdin="pipe", stdout=Collect(8))
    command.until_total(10)
    assert command.read_from(0).text == "23456789"
    command.write(b"\n")
    command.done()
    assert (command.read_from(0).text, command.read_from(10).text) == ("56789abc", "abc")


def test_a_spill_is_all_of_it_from_the_first_byte_for_its_user_alone(seam):  # O3 E
    command = seam.spawn(COUNT, stdout=Collect(1000, 1 << 24))
    assert command.done() == Outcome(0, None)
    path = command.read_from(0).spill_path
    assert seam.ground.read(path).decode() == NUMBERS
    assert (seam.ground.mode(path), seam.ground.mode(os.path.dirname(path))) == (0o600, 0o700)
    assert seam.run("wc", "-c", path) == (Outcome(0, None), f"{len(NUMBERS)} {path}\n"), "it opens where commands are"
    assert seam.read_text(seam.resolve(path)) == NUMBERS


def test_the_name_of_a_spill_is_not_to_be_guessed(seam):  # O3
    paths = set()
    for _ in range(3):
        command = seam.spawn(["printf", "0123456789"], stdout=Collect(1, 1000))
        command.done()
        paths.add(command.read_from(0).spill_path)
    assert len(paths) == 3 and all(len(os.path.basename(path)) >= 16 for path in paths), paths


def test_where_nothing_was_dropped_no_spill_is_told_of(seam):  # O3 E
    command = seam.spawn(["printf", "0123456789"], stdout=Collect(10, 1 << 20), stderr=Collect(0, 1 << 20))
    command.done()
    assert [command.read_from(0, name).spill_path for name in ("stdout", "stderr")] == [None, None]


def test_a_spill_up_to_its_bound_is_whole_and_beyond_it_there_is_none(seam):  # O3
    paths = {}
    for written in (5_000, 5_001):
        command = seam.spawn(["sh", "-c", f"head -c {written} /dev/zero"], stdout=Collect(100, 5_000))
        command.done()
        paths[written] = command.read_from(0).spill_path
    assert seam.ground.read(paths[5_000]) == bytes(5_000)
    assert paths[5_001] is None


def test_of_a_spill_that_is_withheld_nothing_stays(seam):  # O3
    canary = secrets.token_hex(16)
    shown = seam.spawn(["printf", "0123456789"], stdout=Collect(1, 1000))
    shown.done()
    folder = os.path.dirname(shown.read_from(0).spill_path)
    command = seam.spawn(["sh", "-c", f"yes {canary} | head -c 500000"], stdout=Collect(100, 400_000))
    command.done()
    assert command.read_from(0).spill_path is None and command.wait_for_exit()

    def holds_it(name):
        try:
            return canary.encode() in seam.ground.read(f"{folder}/{name}")
        except FileNotFoundError:
            return False  # Of another case, that has ended meanwhile.
    wait_until("it to be removed", lambda: not any(holds_it(name) for name in seam.ground.names(folder)))


def test_a_spill_goes_with_its_session(seam):  # O3 W4
    with seam.another() as other:
        command = other.spawn(["printf", "0123456789"], stdout=Collect(1, 1000))
        command.done()
        path = command.read_from(0).spill_path
        assert seam.ground.read(path) == b"0123456789"
    wait_until("the spill to go", lambda: not seam.ground.at(path).exists())


LETTERS = "aé漢🙂"
# Byte by byte, so that a piece may end anywhere.
BY_BYTES = f"import os\nfor byte in '{LETTERS}'.encode() * 200: os.write(1, bytes([byte]))"


def test_no_letter_is_broken_by_where_a_piece_ends(seam):  # O4
    for output, read in (("pipe", lambda command: command.output().decode()), (Collect(1 << 20), lambda command: command.read_from(0).text)):
        command = seam.spawn(["python3", "-c", BY_BYTES], stdout=output)
        shown = read(command) if output == "pipe" else None
        assert command.done() == Outcome(0, None)
        assert (shown or read(command)) == LETTERS * 200


def test_who_reads_from_within_a_letter_gets_what_follows(seam):  # O4
    command = seam.spawn(["printf", LETTERS])
    command.done()
    assert command.read_from(3).text == "漢🙂"
    assert command.read_from(4).text.endswith("🙂")
    assert command.read_from(4).next == len(LETTERS.encode())


@not_through("executor", "agentd", why="What comes over the wire is bytes; letters are put together by the client.")
def test_who_reads_as_it_comes_never_gets_half_a_letter(seam):  # O4
    slowly = BY_BYTES.replace("os.write(1, bytes([byte]))", "os.write(1, bytes([byte])), select.select([], [], [], 0.0005)").replace("import os", "import os, select")
    command = seam.spawn(["python3", "-c", slowly])
    done, text, at, reads = command.begin_done(), "", 0, 0
    while at < len(LETTERS.encode()) * 200:
        read = command.read_from(at)
        reads += read.next > at
        text, at = text + read.text, read.next
    assert done.result() == Outcome(0, None)
    assert text == LETTERS * 200 and reads > 20, reads


def test_a_pipe_carries_bytes_of_any_kind_as_they_are(seam):  # O4 4.2
    content = os.urandom(1_000_000)
    seam.ground.write(seam.path("bytes"), content)
    command = seam.spawn(["cat", "bytes"], stdout="pipe")
    assert command.output() == content
    assert command.done() == Outcome(0, None)


def test_bytes_that_are_no_text_are_counted_as_they_are(seam):  # O4
    command = seam.spawn(["printf", r"a\377\376b"])
    command.done()
    read = command.read_from(0)
    assert read.next == 4 and read.text == "a��b", read
    assert command.read_from(3).text == "b"


def test_who_does_not_read_holds_nobody_back_that_is_collected(seam):  # O5
    command = seam.spawn(["head", "-c", "100000000", "/dev/zero"], stdout=Collect(1000))
    assert command.done() == Outcome(0, None)
    read = command.read_from(0)
    assert (len(read.text), read.next, read.lossy) == (1000, 100_000_000, True)


def resident_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@not_through("executor", "agentd", why="The client of these ways is the suite's own.")
def test_a_harness_does_not_come_to_hold_what_was_written(seam):  # O5 E
    commands = [seam.spawn(["head", "-c", "1000", "/dev/zero"], stdout=Collect(1000))]
    commands[0].done()
    before = resident_kib(seam.bridge.peer())
    commands += [seam.spawn(["head", "-c", "200000000", "/dev/zero"], stdout=Collect(1000)) for _ in range(3)]
    for command in commands[1:]:
        command.done()
        assert command.read_from(0).next == 200_000_000
    grown = resident_kib(seam.bridge.peer()) - before
    assert grown < 150_000, f"{grown} KiB after 600 MB of output"
