"""How the end of a command is told."""

from harness import Closed
from mark import Mark
from seam import Collect, Outcome, fails, not_through

HOLDS_OUTPUT = "sleep 1000 & echo out; exit 3"


def until_read(session, command, size):
    """The stream of a pipe, once so many bytes of it are here."""
    stream = session.streams[command.streams["stdout"]]
    session.wait(lambda: len(stream.content) >= size)
    return stream


def test_an_exit_code_is_the_one_that_was_given(seam):  # X1
    for code in (0, 1, 2, 126, 127, 255):
        assert seam.spawn(["sh", "-c", f"exit {code}"]).done() == Outcome(code, None)


def test_who_dies_of_a_signal_has_no_exit_code(seam):  # X1
    for name in ("KILL", "TERM", "INT", "HUP", "SEGV", "ABRT", "USR1", "PIPE"):
        assert seam.spawn(["sh", "-c", f"ulimit -c 0; kill -{name} $$"]).done() == Outcome(None, f"SIG{name}")


def test_a_code_that_looks_like_a_signal_is_a_code(seam):  # X1 X3
    assert seam.spawn(["sh", "-c", "exit 137"]).done() == Outcome(137, None)
    assert seam.spawn(["sh", "-c", "sh -c 'kill -9 $$'"]).done() == Outcome(137, None)


def test_who_ends_by_itself_when_it_is_terminated_says_how(seam):  # X3
    command = seam.spawn(["sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done"], grace_ms=20_000)
    command.until_written("ready")
    command.terminate()
    assert command.done() == Outcome(7, None)


def test_who_had_ended_before_it_was_terminated_says_so(seam):  # X3
    command = seam.spawn(["sh", "-c", "exit 5"])
    assert command.done() == Outcome(5, None)
    command.terminate()
    assert command.done() == Outcome(5, None)
    assert command.wait_for_exit()


def test_who_minds_no_signal_is_told_to_have_been_killed(seam):  # X3 T1
    command = seam.spawn(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.02; done"], grace_ms=100)
    command.until_written("ready")
    command.terminate()
    assert command.done() == Outcome(None, "SIGKILL")


def test_an_output_that_somebody_holds_is_waited_for_no_longer_than_the_grace(seam):  # X2
    mark = Mark(seam)
    command = seam.spawn(["sh", "-c", HOLDS_OUTPUT], grace_ms=200, env=mark.env)
    assert command.done() == Outcome(3, None)
    assert command.read_from(0).text == "out\n"
    mark.until(("sleep", 1))
    command.terminate()
    assert command.wait_for_exit()
    mark.assert_none_left()


def test_within_the_grace_an_output_is_waited_for(seam):  # X2
    command = seam.spawn(["sh", "-c", "(sleep 0.5; echo late) & echo early"], grace_ms=60_000)
    assert command.done() == Outcome(0, None)
    assert command.read_from(0).text == "early\nlate\n"


def test_a_spill_whose_end_was_missed_is_withheld(seam):  # X2 O3
    command = seam.spawn(["sh", "-c", "head -c 5000 /dev/zero; sleep 1000 & exit 0"], stdout=Collect(100, 10_000), grace_ms=200)
    assert command.done() == Outcome(0, None)
    read = command.read_from(0)
    assert (read.spill_path, read.next, read.lossy) == (None, 5000, True)
    command.terminate()
    assert command.wait_for_exit()


def test_what_is_written_to_a_settled_output_neither_blocks_nor_kills(seam):  # X2
    script = "(sleep 0.6; head -c 1000000 /dev/zero && echo yes > written) & echo early"
    command = seam.spawn(["sh", "-c", script], grace_ms=100)
    assert command.done() == Outcome(0, None)
    assert command.wait_for_exit()
    assert seam.ground.read(seam.path("written")) == b"yes\n"
    assert command.read_from(0).text == "early\n"


def test_a_pipe_is_waited_for_to_its_own_end(seam):  # X2
    command = seam.spawn(["sh", "-c", "(sleep 0.6; echo late) & echo early; exit 4"], stdout="pipe", grace_ms=100)
    assert command.output() == b"early\nlate\n"
    assert command.done() == Outcome(4, None)


@not_through("dsh", why="A stream in Node ends only when its end has come.")
def test_an_output_ends_by_its_end_mark_alone(seam):  # X4
    command = seam.spawn(["sh", "-c", "echo ready; read -r line"], stdin="pipe", stdout="pipe")
    stream = until_read(seam.session, command, 6)
    seam.session.call("fs.stat", {"path": "/"})
    assert not stream.ended
    command.end_input()
    assert command.output() == b"ready\n" and stream.error is None


@not_through("dsh", why="Nobody attaches to what dsh's provider has started.")
def test_a_reader_whose_stream_is_taken_over_is_told_that_it_has_not_ended(seam):  # X4
    command = seam.spawn(["sh", "-c", "echo ready; read -r line"], stdin="pipe", stdout="pipe")
    until_read(seam.session, command, 6)
    newer = seam.session.new_stream()
    args = {"handle": command.handle, "stdout": {"stream": newer, "from": 6}}
    seam.session.call("process.attach", args, mutating=True, streams=[newer])
    with fails("CONFLICT"):
        command.output()
    command.end_input()
    assert seam.session.body_of(newer) == b""


@not_through("agentd", "dsh", why="The executor of the stage's sandbox serves all cases.")
def test_an_output_whose_executor_crashes_never_comes_to_an_end(seam):  # X4 W4 4.7
    with seam.own_executor() as (executor, mine):
        command = mine.spawn(["sh", "-c", "echo ready; sleep 1000"], stdout="pipe")
        stream = until_read(mine.session, command, 6)
        executor.crash()
        assert why_it_is_over(lambda: mine.session.wait(lambda: stream.ended)) is None, "the link is cut"
        mine.session.address = tuple(executor.address)
        assert why_it_is_over(mine.session.connect) == "lost"
        assert bytes(stream.content) == b"ready\n" and not stream.ended


def why_it_is_over(step):
    try:
        step()
    except Closed as closed:
        return closed.reason
    raise AssertionError("its session goes on")
