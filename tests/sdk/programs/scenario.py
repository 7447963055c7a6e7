"""The official SDK for Python, unmodified, through a sandbox's whole life. What it expects is what
E2B's contract says."""

import datetime
import os
import re
import sys
import threading
import time

from e2b import (
    AuthenticationException,
    CommandExitException,
    FileType,
    NotFoundException,
    Sandbox,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)

KEY = f"k{os.getpid()}"
AWKWARD = {"owner": "a b&c=d", KEY: "ü/%", "plain": "yes"}


def until(what, check, deadline_s=60):
    end = time.monotonic() + deadline_s
    while not check():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        time.sleep(0.05)


def refused(kind, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"{call} was to fail with {kind}")


def listed(metadata=None, state=None):
    pages, ids = Sandbox.list(query=SandboxQuery(metadata=metadata, state=state), limit=1), []
    while pages.has_next:
        ids += [item.sandbox_id for item in pages.next_items()]
    return ids


def create_and_look():
    sandbox = Sandbox.create("base", timeout=120, metadata=AWKWARD, envs={"GREETING": "hello there"})
    assert re.fullmatch("[a-z0-9]+", sandbox.sandbox_id)
    info = sandbox.get_info()
    assert info.sandbox_id == sandbox.sandbox_id
    assert info.state == SandboxState.RUNNING and info.metadata == AWKWARD
    assert re.fullmatch(r"\d+\.\d+\.\d+", info.envd_version)
    assert info.cpu_count > 0 and info.memory_mb > 0
    assert 115 < (info.end_at - info.started_at).total_seconds() < 130
    assert sandbox.is_running()
    return sandbox


def create_once_per_key(_):
    key = os.urandom(16).hex()
    ask = dict(timeout=60, metadata={KEY: "once"}, idempotency_key=key)
    first, again = Sandbox.create("base", **ask), Sandbox.create("base", **ask)
    try:
        assert first.sandbox_id == again.sandbox_id
        assert listed({KEY: "once"}) == [first.sandbox_id]
    finally:
        first.kill()


def run_commands(sandbox):
    run = sandbox.commands.run
    out = run('echo out; echo err >&2; printf "$GREETING"')
    assert (out.exit_code, out.stdout, out.stderr) == (0, "out\nhello there", "err\n")
    assert run("whoami; pwd").stdout == "user\n/home/user\n"
    assert run("id -u", user="root").stdout == "0\n"
    assert run("pwd; echo $EXTRA", cwd="/tmp", envs={"EXTRA": "x y"}).stdout == "/tmp\nx y\n"
    assert refused(CommandExitException, run, "exit 7").exit_code == 7
    assert refused(CommandExitException, run, "no-such-program").exit_code == 127
    assert len(run("head -c 300000 /dev/zero | tr '\\0' x").stdout) == 300_000
    refused(TimeoutException, run, "sleep 30", timeout=0.5)


def feed_and_kill(sandbox):
    seen = []
    cat = sandbox.commands.run("cat", background=True, stdin=True)
    reader = threading.Thread(
        target=lambda: refused(CommandExitException, cat.wait, on_stdout=seen.append), daemon=True)
    reader.start()
    sandbox.commands.send_stdin(cat.pid, "ping\n")
    until("the echo", lambda: "".join(seen) == "ping\n")
    running = lambda: cat.pid in [each.pid for each in sandbox.commands.list()]
    assert running()
    assert sandbox.commands.kill(cat.pid) is True
    reader.join(20)
    assert not reader.is_alive()
    until("its end", lambda: not running())
    assert sandbox.commands.kill(cat.pid) is False


def files(sandbox):
    files = sandbox.files
    files.write("notes/deep/a.txt", "first")
    assert files.read("/home/user/notes/deep/a.txt") == "first"
    files.write("notes/deep/a.txt", "second and longer")
    assert files.read("notes/deep/a.txt") == "second and longer"
    blob = bytes((index * 7) % 256 for index in range(200_000))
    files.write("/tmp/blob.bin", blob)
    assert bytes(files.read("/tmp/blob.bin", format="bytes")) == blob
    files.write("/tmp/packed.bin", blob, gzip=True)
    assert bytes(files.read("/tmp/packed.bin", format="bytes")) == blob
    files.write("/tmp/octets.bin", blob, use_octet_stream=True)
    assert bytes(files.read("/tmp/octets.bin", format="bytes")) == blob
    files.write_files([{"path": "many/one.txt", "data": "1"}, {"path": "many/two.txt", "data": "22"}])
    assert sorted((each.type, each.name) for each in files.list("many")) == [
        (FileType.FILE, "one.txt"), (FileType.FILE, "two.txt")]
    info = files.get_info("many/two.txt")
    assert (info.size, info.owner, info.path) == (2, "user", "/home/user/many/two.txt")
    assert files.make_dir("many/sub") is True and files.make_dir("many/sub") is False
    assert files.rename("many/one.txt", "many/sub/moved.txt").name == "moved.txt"
    assert not files.exists("many/one.txt") and files.exists("many/sub/moved.txt")
    files.remove("many")
    assert not files.exists("many")
    refused(NotFoundException, files.read, "no/such/file")
    refused(NotFoundException, files.list, "/no/such/folder")


def watch(sandbox):
    sandbox.files.make_dir("watched")
    handle, names = sandbox.files.watch_dir("watched"), set()
    sandbox.files.write("watched/new.txt", "x")

    def seen():
        names.update(event.name for event in handle.get_new_events())
        return "new.txt" in names

    until("the write", seen)
    handle.stop()


def list_and_lease(sandbox):
    assert listed(AWKWARD, [SandboxState.RUNNING]) == [sandbox.sandbox_id]
    assert listed(AWKWARD, [SandboxState.PAUSED]) == []
    assert sandbox.sandbox_id in listed(state=[SandboxState.RUNNING, SandboxState.PAUSED])
    sandbox.set_timeout(300)
    left = sandbox.get_info().end_at - datetime.datetime.now(datetime.timezone.utc)
    assert 290 < left.total_seconds() < 310, left


def pause_and_connect(sandbox):
    counter = sandbox.commands.run(
        "i=0; while true; do i=$((i+1)); echo $i > /tmp/count; sleep 0.02; done",
        background=True, timeout=0)
    until("counting", lambda: sandbox.files.exists("/tmp/count"))
    counter.disconnect()
    assert sandbox.pause() is True
    assert sandbox.get_info().state == SandboxState.PAUSED
    assert sandbox.pause() is False
    assert sandbox.is_running() is False
    assert listed(AWKWARD, [SandboxState.PAUSED]) == [sandbox.sandbox_id]

    again = Sandbox.connect(sandbox.sandbox_id, timeout=120)
    assert again.get_info().state == SandboxState.RUNNING
    assert counter.pid in [each.pid for each in again.commands.list()]
    count = lambda: int(again.files.read("/tmp/count") or 0)
    until("a count", lambda: count() > 0)
    first = count()
    until("counting on", lambda: count() > first)
    assert again.commands.kill(counter.pid) is True


def wrong_key(sandbox):
    wrong = "e2b_" + "0" * 40
    refused(AuthenticationException, Sandbox.create, "base", api_key=wrong)
    refused(AuthenticationException, Sandbox.get_info, sandbox.sandbox_id, api_key=wrong)
    refused(AuthenticationException, Sandbox.kill, sandbox.sandbox_id, api_key=wrong)
    assert sandbox.get_info().state == SandboxState.RUNNING


def kill_once(sandbox):
    assert sandbox.kill() is True
    assert Sandbox.kill(sandbox.sandbox_id) is False
    assert sandbox.is_running() is False
    refused(NotFoundException, Sandbox.get_info, sandbox.sandbox_id)
    refused(NotFoundException, Sandbox.connect, sandbox.sandbox_id)
    assert listed(AWKWARD) == []


def main():
    sandbox = create_and_look()
    try:
        for step in (create_once_per_key, run_commands, feed_and_kill, files, watch,
                     list_and_lease, pause_and_connect, wrong_key, kill_once):
            began = time.monotonic()
            step(sandbox)
            print(f"ok {step.__name__} ({(time.monotonic() - began) * 1000:.0f} ms)", flush=True)
    finally:
        Sandbox.kill(sandbox.sandbox_id)
    print("all steps hold")


main()
# All that is judged has been. The SDK's native HTTP threads sometimes abort while the interpreter is
# being taken down around them, so it is not taken down.
sys.stdout.flush()
os._exit(0)
