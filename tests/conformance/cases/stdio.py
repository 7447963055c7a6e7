"""The ends of a command: what it reads and what it writes to."""

import hashlib
import os
import pathlib
import secrets

from mark import Mark
from seam import Collect, Outcome, not_through


def test_a_command_that_is_given_nothing_reads_nothing(seam):  # 4.2
    outcome, shown = seam.run("sh", "-c", "readlink /proc/self/fd/0; cat; echo over")
    assert (outcome, shown) == (Outcome(0, None), "/dev/null\nover\n")


def test_bytes_that_are_given_come_and_then_the_end(seam):  # 4.2
    given = "".join(f"{number}\n" for number in range(100_000)).encode()
    command = seam.spawn(["sha256sum"], stdin=given)
    assert command.done() == Outcome(0, None)
    assert command.read_from(0).text == f"{hashlib.sha256(given).hexdigest()}  -\n"
    command = seam.spawn(["wc", "-c"], stdin=b"")
    command.done()
    assert command.read_from(0).text == "0\n"


def test_that_nobody_reads_what_is_given_is_no_error(seam):  # 4.2
    command = seam.spawn(["true"], stdin=b"x" * 4_000_000)
    assert command.done() == Outcome(0, None)
    command = seam.spawn(["sh", "-c", "exec <&-; echo closed"], stdin=b"x" * 4_000_000)
    assert command.done() == Outcome(0, None)
    assert command.read_from(0).text == "closed\n"


def test_a_pipe_is_open_until_it_is_ended(seam):  # 4.2
    command = seam.spawn(["cat"], stdin="pipe", stdout="pipe")
    for number in range(50):
        command.write(f"{number}\n".encode() * 1000)
    command.end_input()
    assert command.output() == b"".join(f"{number}\n".encode() * 1000 for number in range(50))
    assert command.done() == Outcome(0, None)


def test_a_pipe_that_nobody_reads_holds_its_writer_back_and_loses_nothing(seam):  # 4.2
    script = "head -c 20000000 /dev/zero; echo done > written; printf end"
    command = seam.spawn(["sh", "-c", script], stdout="pipe")
    seam.run("sh", "-c", f"for n in $(seq 50); do cat /proc/{command.pid}/status > status; done")
    assert not seam.ground.at(seam.path("written")).exists(), "20 MB went somewhere that nobody reads"
    assert command.output() == bytes(20_000_000) + b"end"
    assert command.done() == Outcome(0, None)
    assert seam.ground.read(seam.path("written")) == b"done\n"


def test_one_pipe_that_is_not_read_holds_up_no_other_command(seam):  # 4.2 E
    held = seam.spawn(["cat", "/dev/zero"], stdout="pipe")
    assert seam.run("echo", "beside it") == (Outcome(0, None), "beside it\n")
    other = seam.spawn(["seq", "0", "99999"], stdout="pipe")
    assert other.output() == "".join(f"{number}\n" for number in range(100_000)).encode()
    held.terminate()
    assert held.wait_for_exit()


@not_through("dsh", why="A reader in Node has no word for it; who destroys it does the same.")
def test_who_wants_no_more_of_a_pipe_closes_it(seam):  # 4.2
    command = seam.spawn(["yes"], stdout="pipe")
    stream = seam.session.streams[command.streams["stdout"]]
    seam.session.wait(lambda: len(stream.content) > 0)
    seam.session.stop(command.streams["stdout"])
    assert command.done() == Outcome(None, "SIGPIPE")


@not_through("executor", "agentd", why="What a harness inherits is a pipe that its client copies.")
def test_what_is_inherited_goes_to_the_harness_s_own_output(seam):  # 4.2
    shown, errors = secrets.token_hex(16), secrets.token_hex(16)
    command = seam.spawn(["sh", "-c", f"echo {shown}; echo {errors} >&2"], stdout="inherit", stderr="inherit")
    assert command.done() == Outcome(0, None)
    log = pathlib.Path(seam.stage["dsh"]["socket"]).with_name("bridge.log")
    seam.wait_until("both to be there", lambda: all(each in log.read_text() for each in (shown, errors)))


def test_a_command_has_its_three_ends_and_no_descriptor_of_ours(seam):  # 4.2
    for how in ({"stdin": "pipe", "stdout": "pipe", "stderr": "pipe"}, {"stdin": b"x"}, {}):
        command = seam.spawn(["sh", "-c", "exec ls /proc/self/fd > ends"], **how)
        assert command.done() == Outcome(0, None)
        # The fourth is the folder that ls reads.
        assert sorted(seam.ground.read(seam.path("ends")).split()) == [b"0", b"1", b"2", b"3"]


def test_a_command_begins_with_no_signal_ignored_or_blocked(seam):  # 4.2
    outcome, shown = seam.run("sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status")
    assert (outcome, shown.split()) == (Outcome(0, None), ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16])


def test_a_command_begins_where_it_is_told_to(seam):  # W2 4.2
    seam.ground.folder(seam.path("way"))
    seam.ground.link(seam.path("alias"), "way")
    command = seam.spawn(["pwd", "-P"], cwd=seam.path("alias"))
    command.done()
    assert command.read_from(0).text == f"{seam.path('way')}\n"


def test_a_hundred_commands_at_once_are_kept_apart(seam):  # W1
    mark = Mark(seam)
    commands = [seam.spawn(["sh", "-c", f"cat > {number}; exit {number}"], stdin=f"for {number}".encode(), env=mark.env) for number in range(100)]
    for number, command in enumerate(commands):
        assert command.done() == Outcome(number, None)
        assert seam.ground.read(seam.path(str(number))) == f"for {number}".encode()
        assert command.wait_for_exit()
    mark.assert_none_left()


def test_output_that_comes_in_one_piece_and_in_many_is_the_same(seam):  # O4
    content = os.urandom(300_000)
    seam.ground.write(seam.path("bytes"), content)
    for script in ("cat bytes", "dd if=bytes bs=7 status=none", "dd if=bytes bs=300000 status=none"):
        command = seam.spawn(["sh", "-c", script], stdout="pipe", stderr=Collect(1000))
        assert command.output() == content, script
        assert command.done() == Outcome(0, None)
