"""How a command is started."""

from seam import Outcome, fails


def test_an_argument_reaches_the_program_as_it_is(seam):  # P3
    typed = ["$HOME", "a b", "*", "`id`", "'\"", "x\ny", ""]
    outcome, shown = seam.run("printf", "%s|", *typed)
    assert outcome == Outcome(0, None), outcome
    assert shown == "".join(f"{each}|" for each in typed), shown


def test_a_command_that_cannot_be_started_says_so_when_it_is_waited_for(seam):  # P2
    for argv, cwd in ((["/no/such/program"], None), (["true"], seam.path("no-such-folder"))):
        command = seam.spawn(argv, cwd=cwd)
        with fails("SPAWN_FAILED", "ENOENT"):
            command.done()
        assert command.pid == -1
        assert command.wait_for_exit() is True
