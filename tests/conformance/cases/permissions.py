"""What a call may change that is held to less than its session."""

import secrets

from harness import Closed

from seam import Failure, Policy, fails, fails_without, not_through


def test_to_read_only_nothing_changes_and_all_is_read(seam):  # 2.6
    seam.ground.write(seam.path("file"), b"old")
    read_only = Policy("read-only", seam.folder)
    with fails("FS_SANDBOX_DENIED"):
        seam.write(seam.at("file"), "new", policy=read_only)
    with fails("FS_SANDBOX_DENIED"):
        seam.write(seam.at("new"), "new", policy=read_only)
    with fails("FS_SANDBOX_DENIED"):
        seam.write(seam.resolve(f"/tmp/{secrets.token_hex(8)}"), "new", policy=read_only)
    assert seam.read_text(seam.at("file")) == "old"
    assert seam.ground.names(seam.folder) == ["file"]


def test_below_the_workspace_all_may_be_changed(seam):  # 2.6
    seam.ground.folder(seam.path("inside"))
    policy = Policy("workspace-write", seam.path("inside"))
    seam.write(seam.at("inside/deep/file"), "one", policy=policy)
    seam.edit(seam.at("inside/deep/file"), "one", "two", policy=policy)
    assert seam.ground.text(seam.path("inside/deep/file")) == "two"


def test_below_the_temporary_folders_all_may_be_changed(seam):  # 2.6
    path = f"/tmp/conformance-{secrets.token_hex(8)}"
    try:
        seam.write(seam.resolve(path), "one", policy=Policy("workspace-write", seam.folder))
        assert seam.ground.text(path) == "one"
    finally:
        seam.ground.at(path).unlink(missing_ok=True)


@fails_without("fence")
def test_beside_the_workspace_nothing_is_changed_however_it_is_spelled(seam):  # 2.6 E
    for folder in ("inside", "inside-too", "outside"):
        seam.ground.folder(seam.path(folder))
    seam.ground.write(seam.path("outside/file"), b"old")
    seam.ground.link(seam.path("inside/to-folder"), "../outside")
    seam.ground.link(seam.path("inside/to-file"), seam.path("outside/file"))
    policy = Policy("workspace-write", seam.path("inside"))
    for path in ("outside/file", "inside/../outside/file", "inside/to-folder/file", "inside/to-folder/new", "inside/to-file",
                 "inside-too/new"):
        with fails("FS_SANDBOX_DENIED"):
            seam.write(seam.at(path), "new", policy=policy)
    for path in ("outside/file", "inside/to-folder/file", "inside/to-file"):
        with fails("FS_SANDBOX_DENIED"):
            seam.edit(seam.at(path), "old", "new", policy=policy)
    assert seam.ground.text(seam.path("outside/file")) == "old"
    assert seam.ground.names(seam.path("outside")) == ["file"]
    assert seam.ground.names(seam.path("inside-too")) == []


def test_a_link_that_leads_inside_may_be_written_through(seam):  # 2.6
    seam.ground.folder(seam.path("inside"))
    seam.ground.write(seam.path("inside/file"), b"old")
    seam.ground.link(seam.path("from-outside"), "inside/file")
    seam.write(seam.at("from-outside"), "new", policy=Policy("workspace-write", seam.path("inside")))
    assert seam.ground.text(seam.path("inside/file")) == "new"


def test_what_is_led_outside_after_it_was_resolved_is_not_changed(seam):  # 2.6 R7 E
    for folder in ("inside", "outside"):
        seam.ground.folder(seam.path(folder))
    seam.ground.folder(seam.path("inside/folder"))
    seam.ground.write(seam.path("inside/folder/file"), b"mine")
    seam.ground.write(seam.path("outside/file"), b"theirs")
    targets = [seam.at("inside/folder/file"), seam.at("inside/folder/new")]
    seam.ground.move(seam.path("inside/folder"), seam.path("inside/aside"))
    seam.ground.link(seam.path("inside/folder"), "../outside")
    for target in targets:
        with fails("FS_SANDBOX_DENIED", "FS_IO_ERROR"):
            seam.write(target, "escaped", policy=Policy("workspace-write", seam.path("inside")))
    assert seam.ground.names(seam.path("outside")) == ["file"]
    assert seam.ground.text(seam.path("outside/file")) == "theirs"


@not_through("executor", "agentd", why="A request with a mode that is none of the protocol's is refused with its link.")
def test_a_mode_that_nobody_knows_permits_nothing(seam):  # 2.6
    for mode in ("", "anything", "Danger-Full-Access", "constructor"):
        with fails("FS_SANDBOX_DENIED"):
            seam.write(seam.at("file"), "x", policy=Policy(mode, seam.folder))
    assert seam.ground.names(seam.folder) == []


def test_without_a_fence_all_may_be_changed(seam):  # 2.6
    seam.write(seam.at("file"), "x", policy=Policy("danger-full-access", seam.path("elsewhere")))
    assert seam.ground.text(seam.path("file")) == "x"


@not_through("dsh", why="Reads have no mode to be given there.")
def test_reads_pass_in_each_mode(seam):  # 2.6
    seam.ground.write(seam.path("file"), b"content")
    for mode in ("ReadOnly", "WorkspaceWrite", "DangerFullAccess"):
        held = {"permissionMode": mode, "workspaceRoot": seam.path("elsewhere")}
        assert seam.session.call("fs.stat", {"path": seam.path("file")}, **held)["info"]["size"] == 7
        number = seam.session.ask("fs.readText", {"path": seam.path("file")}, down=True, **held)
        assert (seam.session.reply_to(number)["size"], seam.session.body_of(number)) == (7, b"content")
        assert len(seam.session.call("fs.listDir", {"path": seam.folder}, **held)["entries"]) == 1


@not_through("executor", "agentd", why="It is what the providers say of the session; the protocol has it in the welcome.")
def test_a_session_without_a_fence_says_that_it_never_confines(seam):  # 2.6
    assert seam.sandbox_mode() is None


@not_through("dsh", why="Its providers refuse a mode that nobody knows, and never send one.")
def test_a_request_with_a_mode_that_is_none_ends_its_link_and_changes_nothing(seam):  # 2.6
    mine = seam.another()
    try:
        mine.write(seam.at("file"), "x", policy=Policy("Anything", seam.folder))
        raise AssertionError("it was written")
    except Closed as closed:
        assert closed.reason == "protocol" and "permissionMode" in closed.message, closed
    assert seam.ground.names(seam.folder) == []
    seam.ground.remove(mine.folder)


@not_through("executor", "agentd", why="A root of the host is put in the sandbox's words by the client.")
def test_a_root_that_the_sandbox_does_not_have_leaves_the_sandboxs_own(seam):  # 2.6 E
    policy = Policy("workspace-write", "/a/workspace/of/the/host")
    seam.write(seam.at("file"), "x", policy=policy)
    assert seam.ground.text(seam.path("file")) == "x"
    for elsewhere in ("/var/lib/outside", "/a/workspace/of/the/host/file"):
        with fails("FS_SANDBOX_DENIED"):
            seam.write(seam.resolve(elsewhere), "x", policy=policy)


def test_a_confined_command_changes_nothing_that_its_mode_forbids_or_is_refused(seam):  # 2.6
    seam.ground.folder(seam.path("inside"))
    script = "echo x > inside/file; echo x > outside; cat readable; exit 7"
    for mode, written in (("read-only", []), ("workspace-write", ["file"])):
        seam.ground.write(seam.path("readable"), b"read")
        try:
            told = seam.run_confined(["sh", "-c", script], Policy(mode, seam.path("inside")))
        except Failure as failure:  # A kernel that cannot hold it to the mode.
            assert failure.code == "CONFINEMENT_UNAVAILABLE", failure
        else:
            assert told == (7, "read"), (mode, told)
            assert seam.ground.names(seam.path("inside")) == written, mode
        assert seam.ground.names(seam.folder) == ["inside", "readable"], mode


@not_through("dsh", why="Its surface has no other operations that change files.")
def test_each_operation_that_changes_something_is_held_to_the_mode(seam):  # 2.6
    seam.ground.write(seam.path("file"), b"content")
    changes = {"fs.mkdir": {"path": seam.path("new")}, "fs.remove": {"path": seam.path("file")},
               "fs.rename": {"from": seam.path("file"), "to": seam.path("new")},
               "fs.copy": {"from": seam.path("file"), "to": seam.path("new")},
               "archive.extract": {"path": seam.path("new")}}
    for operation, args in changes.items():
        upload = b"" if operation == "archive.extract" else None
        with fails("FS_SANDBOX_DENIED"):
            seam.session.call(operation, args, mutating=True, upload=upload, permissionMode="ReadOnly")
    assert seam.ground.names(seam.folder) == ["file"]
