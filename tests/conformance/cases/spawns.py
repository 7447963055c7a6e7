"""How a command is started."""

from mark import Mark
from seam import Outcome, fails, not_through

NOT_STARTED = ("INVALID", None)  # Over the wire, and thrown by dsh's provider.


def test_what_cannot_be_right_is_refused_before_anything_is_started(seam):  # P1
    mark = Mark(seam)
    asleep = ["sleep", "1000"]
    for argv, grace_ms in (([], 1_000), ([""], 1_000), (asleep, 0), (asleep, -1), (asleep, 2_147_483_648)):
        with fails(*NOT_STARTED):
            seam.spawn(argv, grace_ms=grace_ms, env=mark.env)
    mark.assert_none_left()
    assert seam.spawn(["true"], grace_ms=2_147_483_647).done() == Outcome(0, None)


@not_through("executor", "agentd", why="JSON has no such number.")
def test_a_time_of_grace_that_is_no_number_is_refused(seam):  # P1
    for grace_ms in ("NaN", "Infinity", "-Infinity"):
        with fails(None):
            seam.spawn(["true"], grace_ms=grace_ms)


@not_through("executor", "agentd", why="Who has given up before asking asks nothing over the wire.")
def test_a_command_that_is_given_up_before_it_is_asked_for_is_not_started(seam):  # P1
    mark = Mark(seam)
    stdio = {"stdin": "ignore", "stdout": {"maxBytes": 10}, "stderr": {"maxBytes": 10}}
    with fails("ABORT_ERR", 20, None):
        seam.begin_aborted("spawn", argv=["sleep", "1000"], cwd=seam.folder, stdio=stdio, graceMs=1_000, env=mark.env).result()
    assert seam.stat(seam.resolve(seam.folder))
    mark.assert_none_left()


def test_arguments_and_names_that_cannot_be_are_refused(seam):  # P1 4.3
    with fails(*NOT_STARTED):
        seam.spawn(["echo", "a\0b"])
    for env in ({"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"A": "x\0"}):
        with fails(*NOT_STARTED):
            seam.spawn(["true"], env=env)


@not_through("executor", "agentd", why="Over the wire a session that ends takes nothing more; there is no state between.")
def test_while_a_harness_ends_nothing_is_started(seam):  # P1 W5
    mine = seam.another()
    mine.end_processes()
    with fails(None):
        mine.spawn(["true"], cwd=seam.folder)
    mine.close()
    seam.ground.remove(mine.folder)


def test_a_command_that_cannot_be_started_says_so_when_it_is_waited_for(seam):  # P2 E
    seam.ground.write(seam.path("not-executable"))
    seam.ground.write(seam.path("no-interpreter"), b"#!/no/such/interpreter\n", mode=0o755)
    programs = ["/no/such/program", "no-such-program", seam.path("not-executable"), seam.path("no-interpreter")]
    folders = [seam.path("no-such-folder"), seam.path("not-executable")]
    for argv, cwd in [([each], None) for each in programs] + [(["true"], each) for each in folders]:
        command = seam.spawn(argv, cwd=cwd)
        with fails("SPAWN_FAILED", "ENOENT", "EACCES", "ENOTDIR"):
            command.done()
        assert command.pid == -1, argv
        assert command.wait_for_exit() is True, argv


def test_a_command_that_was_started_has_a_pid(seam):  # P2
    command = seam.spawn(["sh", "-c", "echo $$"])
    assert command.done() == Outcome(0, None)
    assert command.read_from().text == f"{command.pid}\n"
    assert command.pid > 1


def test_an_argument_reaches_the_program_as_it_is(seam):  # P3
    typed = ["$HOME", "a b", "*", "`id`", "'\"", "x\ny", "", "-n", "ünï", "\U0001f600"]
    outcome, shown = seam.run("printf", "%s|", *typed)
    assert outcome == Outcome(0, None), outcome
    assert shown == "".join(f"{each}|" for each in typed), shown


def test_a_program_is_not_looked_for_by_a_shell(seam):  # P3
    for argv in (["echo x"], ["echo;id"], ["cd", "/"]):
        with fails("SPAWN_FAILED", "ENOENT"):
            seam.spawn(argv).done()


def test_what_is_typed_at_once_is_not_lost(seam):  # P3
    command = seam.spawn(["cat"], stdin="pipe", stdout="pipe")
    command.write(b"typed before ")
    command.write(b"it ran")
    command.end_input()
    assert command.output() == b"typed before it ran"
    assert command.done() == Outcome(0, None)
