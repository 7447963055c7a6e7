"""What runs is known by its handle: who may find it again, and who goes on where."""

import secrets

from mark import Mark
from seam import Collect, Outcome, fails, not_through
from world import wait_until

WHY = "Its provider keeps to its own session; a harness that comes back has a new one."


def attach(seam, handle, **args):
    return seam.session.call("process.attach", {"handle": handle, **args}, mutating=True,
                             streams=[each["stream"] for each in args.values() if isinstance(each, dict)],
                             incoming=[args["stdin"]] if "stdin" in args else [])


@not_through("dsh", why=WHY)
def test_who_attaches_goes_on_exactly_where_he_says(seam):  # 4.7
    with seam.another() as other:
        command = other.spawn(["cat"], stdin="pipe", stdout=Collect(1000))
        command.write(b"one two ")
        command.until_total(8)
        typed, shown = seam.session.new_stream(), seam.session.new_stream()
        ok = attach(seam, command.handle, stdin=typed, stdout={"stream": shown, "from": 4})
        assert (ok["stdinAt"], ok["stdout"]) == (8, {"from": 4, "lossy": False}), ok
        seam.session.outgoing[typed].content += b"three"
        seam.session.outgoing[typed].ended = True
        seam.session.send_on(typed)
        assert seam.session.body_of(shown) == b"two three"
        assert command.done() == Outcome(0, None)


@not_through("dsh", why=WHY)
def test_who_attaches_before_the_tail_is_told_from_where_on_and_that_it_is_lossy(seam):  # 4.7 O2
    command = seam.spawn(["sh", "-c", "printf 0123456789ab; read -r line"], stdin="pipe", stdout=Collect(10))
    command.until_total(12)
    for start, begins, lossy in ((0, 2, True), (1, 2, True), (2, 2, False), (12, 12, False)):
        shown = seam.session.new_stream()
        ok = attach(seam, command.handle, stdout={"stream": shown, "from": start})
        assert ok["stdout"] == {"from": begins, "lossy": lossy}, ok
        stream = seam.session.streams[shown]
        wanted = b"0123456789ab"[begins:]
        seam.session.wait(lambda: len(stream.content) == len(wanted))
        assert bytes(stream.content) == wanted
    command.terminate()


@not_through("dsh", why=WHY)
def test_a_link_that_breaks_ends_nothing_and_loses_no_byte(seam):  # 4.7 E
    command = seam.spawn(["sh", "-c", "seq 0 99999; cat; printf end"], stdin="pipe", stdout="pipe")
    stream = seam.session.streams[command.streams["stdout"]]
    for cut in range(5):
        seam.session.wait(lambda: len(stream.content) > cut * 100_000)
        seam.session.close()
        seam.session.connect()
        assert seam.session.welcomes[0]["resumed"]
    command.end_input()
    assert command.output() == "".join(f"{number}\n" for number in range(100_000)).encode() + b"end"
    assert command.done() == Outcome(0, None)


@not_through("dsh", why=WHY)
def test_what_nobody_listens_to_is_kept_for_who_comes_back(seam):  # 4.7 E
    command = seam.spawn(["sh", "-c", "until [ -e go ]; do sleep 0.02; done; printf meanwhile"], stdout="pipe")
    seam.session.close()
    seam.ground.write(seam.path("go"))
    with seam.another() as other:
        wait_until("its exit", lambda: other.session.call(
            "process.wait", {"handle": command.handle, "until": "exit", "timeoutMs": 0})["reached"])
    seam.session.connect()
    assert command.output() == b"meanwhile"
    assert command.done() == Outcome(0, None)


def session_of(seam, lease_seconds):
    other = seam.another()
    other.session.end()
    other.session.session, other.session.lease_seconds = None, lease_seconds
    other.session.last_id = other.session.last_seq = 0
    other.session.connect()
    return other


@not_through("dsh", why=WHY)
def test_what_a_session_has_started_ends_with_its_lease(seam):  # 4.7 W5
    mark, other = Mark(seam), session_of(seam, 1)
    assert other.session.welcomes[0]["leaseMs"] == 1000
    other.spawn(["sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1001; :"], grace_ms=100, env=mark.env)
    detached = secrets.token_hex(16)
    other.session.call("process.spawn", {"handle": detached, "argv": ["sleep", "1002"], "env": list(mark.env.items()), "graceMs": 100,
                                         "stdin": "ignore", "stdout": "discard", "stderr": "discard", "detached": True}, mutating=True)
    mark.until(("sleep", 3))
    other.session.close()
    mark.until(("sleep 1000", 0), ("sleep 1001", 0), ("sleep 1002", 1))
    seam.session.call("process.terminate", {"handle": detached}, mutating=True)
    seam.session.call("process.wait", {"handle": detached, "until": "empty"})
    mark.assert_none_left()
    other.ground.remove(other.folder)


@not_through("dsh", why=WHY)
def test_an_adopted_command_ends_with_who_adopted_it(seam):  # 4.7
    mark = Mark(seam)
    with seam.another() as other:
        command = other.spawn(["sleep", "1000"], grace_ms=100, env=mark.env)
        attach(seam, command.handle, adopt=True)
    listed = {each["handle"]: each for each in seam.session.call("process.list", {})["processes"]}
    assert listed[command.handle]["mine"] and not listed[command.handle]["state"]["exited"]
    mark.until(("sleep 1000", 1))
    seam.session.call("process.terminate", {"handle": command.handle}, mutating=True)
    seam.session.call("process.wait", {"handle": command.handle, "until": "empty"})


@not_through("dsh", why="Its surface has no list.")
def test_all_that_runs_and_what_became_of_the_rest_is_listed(seam):  # 4.7
    over = seam.spawn(["sh", "-c", "printf text; exit 5"])
    over.done()
    assert over.wait_for_exit()
    runs = seam.spawn(["sleep", "1000"])
    with seam.another() as other:
        others = other.spawn(["sleep", "1001"])
        listed, after = {}, None
        while True:
            page = seam.session.call("process.list", {"pageEntries": 2} | ({"after": after} if after else {}))
            listed |= {each["handle"]: each for each in page["processes"]}
            if not page["more"]:
                break
            after = page["processes"][-1]["handle"]
    assert [listed[each.handle]["mine"] for each in (over, runs, others)] == [True, True, False]
    assert listed[runs.handle]["argv"] == ["sleep", "1000"] and listed[runs.handle]["state"]["pid"] == runs.pid
    state = listed[over.handle]["state"]
    assert (state["exitCode"], state["empty"], state["stdout"]["bytes"]) == (5, True, 4), state
    assert list(listed) == sorted(listed)
    runs.terminate()


@not_through("dsh", why=WHY)
def test_a_handle_that_is_taken_or_not_known_is_said_to_be(seam):  # 4.7
    command = seam.spawn(["sleep", "1000"])
    again = {"handle": command.handle, "argv": ["true"], "graceMs": 1, "stdin": "ignore", "stdout": "discard", "stderr": "discard"}
    with fails("CONFLICT"):
        seam.session.call("process.spawn", again, mutating=True)
    unknown = secrets.token_hex(16)
    for op in ("process.wait", "process.read", "process.terminate", "process.attach", "process.release"):
        more = {"process.wait": {"until": "exit"}, "process.read": {"output": "stdout", "from": 0}}.get(op, {})
        with fails("NOT_FOUND"):
            seam.session.call(op, {"handle": unknown, **more}, mutating=op.split(".")[1] in ("terminate", "attach", "release"),
                              down=op == "process.read")
    command.terminate()


@not_through("dsh", why="Its provider releases what is over by itself.")
def test_what_is_released_is_gone_and_what_runs_is_not_released(seam):  # 4.7 O3
    command = seam.spawn(["sh", "-c", "printf 0123456789; read -r line"], stdin="pipe", stdout=Collect(1, 1000))
    command.until_total(10)
    with fails("CONFLICT"):
        seam.session.call("process.release", {"handle": command.handle}, mutating=True)
    command.end_input()
    command.done()
    path = command.read_from(0).spill_path
    assert command.wait_for_exit() and seam.ground.read(path) == b"0123456789"
    seam.session.call("process.release", {"handle": command.handle}, mutating=True)
    with fails("NOT_FOUND"):
        command.state()
    wait_until("the spill to go", lambda: not seam.ground.at(path).exists())
