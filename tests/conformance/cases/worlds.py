"""One world: what of it belongs to whom, and what is left when it ends."""

import contextlib
import os
import pathlib
import secrets

from mark import Mark
from own import own_sandbox
from seam import Failure, Outcome, fails, not_through

CANARY = "SANDFLEET_HOST_CANARY"  # As in stage.py.
STUBBORN = "trap '' TERM; setsid sleep 1000 & sleep 1000; :"  # What ignores SIGTERM, and one that left its group.
OWN_EXECUTOR = "The case kills an executor of its own; the sandbox of these ways is shared by all cases."
HOST_IS_ITS_SANDBOX = "The executor alone runs on the host itself; there is no second machine."


def test_files_and_commands_see_the_same_paths(seam):  # W1
    seam.write(seam.at("from-files"), "written")
    outcome, shown = seam.run("sh", "-c", "cat from-files; printf made > from-command; pwd")
    assert (outcome, shown) == (Outcome(0, None), f"written{seam.folder}\n"), (outcome, shown)
    assert seam.read_text(seam.at("from-command")) == "made"


def test_a_program_that_files_made_can_be_run(seam):  # W1
    program = seam.ground.write(seam.path("program"), b"#!/bin/sh\necho run: $0\n", mode=0o755)
    assert seam.resolve_executable(program) == program
    assert seam.run(program) == (Outcome(0, None), f"run: {program}\n")


def test_sessions_of_one_sandbox_see_each_others_files(seam):  # W1
    with seam.another() as other:
        seam.write(seam.at("file"), "shared")
        assert other.read_text(other.resolve(seam.path("file"))) == "shared"


def test_a_folder_to_work_in_confines_nobody(seam):  # W2
    seam.ground.folder(seam.path("work"))
    seam.ground.write(seam.path("beside"), b"reached")
    assert seam.read_text(seam.resolve("../beside", cwd=seam.path("work"))) == "reached"
    assert seam.read_text(seam.resolve(seam.path("beside"), cwd=seam.path("work"))) == "reached"
    outcome, shown = seam.run("sh", "-c", "cat ../beside; cd /; pwd", cwd=seam.path("work"))
    assert (outcome, shown) == (Outcome(0, None), "reached/\n"), (outcome, shown)


@not_through("executor", why=HOST_IS_ITS_SANDBOX)
def test_an_equal_path_of_the_host_is_another_file(seam):  # W2
    path = pathlib.Path(f"/tmp/conformance-host-{secrets.token_hex(8)}")
    path.write_text("the host's")
    try:
        assert seam.stat(seam.resolve(str(path))) is None
        seam.write(seam.resolve(str(path)), "the sandbox's")
        assert path.read_text() == "the host's"
        assert seam.ground.text(str(path)) == "the sandbox's"
        assert seam.run("cat", str(path))[1] == "the sandbox's"
    finally:
        path.unlink()
        seam.ground.at(str(path)).unlink(missing_ok=True)


@not_through("executor", why=HOST_IS_ITS_SANDBOX)
def test_nothing_of_the_hosts_environment_enters(seam):  # W3 E
    _, shown = seam.run("env")
    assert "PATH=" in shown and CANARY not in shown, shown
    assert seam.run("sh", "-c", f"tr '\\0' '\\n' < /proc/1/environ; echo ${CANARY}")[1].count("never-inside") == 0


def running(seam):
    """A command whose processes live, and their mark."""
    mark = Mark(seam)
    command = seam.spawn(["sh", "-c", STUBBORN], env=mark.env, grace_ms=300)
    mark.until(("sh", 1), ("sleep", 2))
    return command, mark


def test_a_new_session_finds_the_files_of_before_and_no_command(seam):  # W4
    before = seam.another()
    before.write(seam.at("file"), "of before")
    _, mark = running(before)
    before.close()
    mark.until_none_left()
    seam.ground.remove(before.folder)
    with seam.another() as after:
        assert after.read_text(after.at("..", os.path.basename(seam.folder), "file")) == "of before"


@not_through("dsh", why="A handle of dsh's is an object of one harness and cannot be handed to the next.")
def test_a_handle_of_a_session_that_has_ended_is_gone_and_not_empty(seam):  # W4
    before = seam.another()
    command = before.spawn(["sh", "-c", "echo shown; exec sleep 1000"])
    seam.wait_until("its output", lambda: command.read_from().text == "shown\n")
    before.close()
    seam.ground.remove(before.folder)

    def why_gone():
        try:
            seam.session.call("process.read", {"handle": command.handle, "output": "stdout", "from": 0}, down=True)
        except Failure as failure:
            return failure.code
    seam.wait_until("the handle is gone", lambda: why_gone() in ("NOT_FOUND", "LOST"))


def test_a_session_ends_after_what_it_runs(seam):  # W5 T6
    ending = seam.another()
    _, mark = running(ending)
    ending.close()
    if seam.way != "dsh":  # Where the end of a session is a word and not a call.
        mark.until_none_left()
    mark.assert_none_left()
    seam.ground.remove(ending.folder)


@not_through("executor", "agentd", why="It is made by the owner of dsh's session; over the wire there is fs.mkdir.")
def test_the_folder_to_work_in_is_made_where_it_is_missing(seam):  # W6
    with seam.another(cwd=seam.path("new/deep")) as mine:
        assert seam.ground.at(seam.path("new/deep")).is_dir()
        assert mine.resolve("file").key == seam.path("new/deep/file")


@not_through("executor", "agentd", why="The folder is dsh's; the executor's own is judged before it serves.")
def test_a_private_folder_that_is_a_link_or_open_to_others_is_refused(seam):  # W6
    seam.ground.folder(seam.path("elsewhere"), mode=0o700)
    for name in ("link", "open"):
        seam.ground.folder(seam.path(name))
        if name == "link":
            seam.ground.link(seam.path(name, ".dsh-e2b"), "../elsewhere")
        else:
            seam.ground.folder(seam.path(name, ".dsh-e2b"), mode=0o755)
        with seam.another(cwd=seam.path(name)) as mine:
            with fails(None) as refused:
                mine.private_folder()
            assert ".dsh-e2b" in str(refused[0]) and "only its user enters" in str(refused[0]), refused
    seam.ground.folder(seam.path("good"))
    with seam.another(cwd=seam.path("good")) as mine:
        assert mine.private_folder() == seam.path("good/.dsh-e2b")
        assert seam.ground.mode(seam.path("good/.dsh-e2b")) == 0o700


@not_through("dsh", why="Its providers wait for room themselves, so that nobody meets its end.")
def test_having_no_room_is_told_as_such(seam):  # W7
    asleep = seam.spawn(["sleep", "1000"])
    limit = seam.session.welcomes[0]["limits"]["requests"]
    waits = [asleep.begin_wait_for_exit() for _ in range(limit)]
    with fails("BUSY"):
        seam.stat(seam.resolve(seam.folder))
    for wait in waits:
        wait.abort()
    seam.wait_until("room again", lambda: succeeds(lambda: seam.stat(seam.resolve(seam.folder))))
    asleep.terminate()
    assert asleep.wait_for_exit() is True


def succeeds(step):
    with contextlib.suppress(Failure):
        return step() is not None
    return False


@not_through("executor", "agentd", why="There a client meets the limit and is told BUSY; see the case beside this one.")
def test_more_than_a_session_has_room_for_waits(seam):  # W7
    asleep = seam.spawn(["sleep", "1000"])
    waits = [asleep.begin_wait_for_exit() for _ in range(300)]
    looks = [seam.begin_stat(seam.resolve(seam.folder)) for _ in range(300)]
    assert all(look.result().type == "directory" for look in looks)
    asleep.terminate()
    assert all(wait.result() is True for wait in waits)


@not_through("executor", "agentd", why="What a loss proves is judged by the client; what the executor says of it is the case below.")
def test_that_nothing_is_left_is_believed_on_proof_alone(seam):  # W7 W4
    with own_sandbox(seam.stage) as own:
        mine, mark = seam.another(own.ground(), sandbox=own.title), Mark(seam)
        lost = mine.spawn(["sleep", "1000"], env=mark.env)
        mark.until(("sleep", 1))
        own.crash_executor()
        with fails("LOST", "NOT_FOUND"):
            lost.done()
        assert lost.wait_for_exit() is True
        mark.assert_none_left()
        spared = mine.spawn(["sleep", "1000"])
        seam.wait_until("another runs", lambda: spared.pid > 0)
        own.delete()
        with fails("UNAVAILABLE"):  # That it is being deleted proves nothing yet.
            spared.wait_for_exit()
        with fails(None) as told:
            mine.end_processes()
        assert "may still be there" in str(told[0]), told
        mine.close()


@not_through("agentd", "dsh", why=OWN_EXECUTOR)
def test_what_an_executor_had_started_is_gone_when_it_serves_again_and_is_told_as_gone(seam):  # W4 W7
    with seam.own_executor() as (executor, mine):
        command, mark = running(mine)
        executor.crash()
        mark.until_none_left()
        with mine.with_executor(executor) as again, fails("NOT_FOUND", "LOST"):
            again.session.call("process.wait", {"handle": command.handle, "until": "empty", "timeoutMs": 0})
