"""sandfleet-local-e2b as a process, with real boxes: how sandboxes live and end. Run one test:
server_test.py NAME; without a name: their names."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import time

from provider import boxes_on_disk, create, provider_with, run_named, state_of, world
from world import run_inside, wait_until


def test_a_sandbox_lives_and_leaves_nothing():
    with provider_with() as provider:
        box = create(provider, envVars={"GREETING": "hello"})
        assert run_inside(provider, box, "echo $GREETING; whoami") == (0, "hello\nuser\n")
        pid = run_inside(provider, box, "while :; do date +%s%N >/tmp/beat; sleep 0.01; done", background=True)
        wait_until("a heart beat", lambda: run_inside(provider, box, "cat /tmp/beat 2>/dev/null")[1])
        assert provider.ask("POST", f"/sandboxes/{box}/pause", {})[0] == 204
        assert provider.ask("POST", f"/sandboxes/{box}/pause", {})[0] == 409
        assert state_of(provider, box) == "paused"
        assert provider.ask("POST", f"/v2/sandboxes/{box}/connect", {"timeout": 60})[0] == 201
        code, output = run_inside(provider, box, f"kill -0 {pid} && echo $GREETING")
        assert (code, output) == (0, "hello\n"), "its processes and environment outlive a pause"
        assert provider.ask("DELETE", f"/sandboxes/{box}")[0] == 204
        assert provider.ask("DELETE", f"/sandboxes/{box}")[0] == 404
        assert not world.cgroups_named(box), world.cgroups_named(box)


def test_sandboxes_outlive_a_server_that_is_killed():
    with provider_with() as provider:
        running, paused = create(provider), create(provider)
        ending = create(provider, timeout=2)
        pid = run_inside(provider, running, "exec sleep 1000", background=True)
        assert provider.ask("POST", f"/sandboxes/{paused}/pause")[0] == 204
        before = provider.sandboxes()
        provider.program.kill()
        provider.start()
        after = provider.sandboxes()
        assert after[running] == before[running] and after[paused] == before[paused], (before, after)
        assert run_inside(provider, running, f"kill -0 {pid}")[0] == 0
        assert provider.ask("POST", f"/v2/sandboxes/{paused}/connect")[0] == 201
        assert run_inside(provider, paused, "echo back")[1] == "back\n"
        wait_until("the lease to go on over the crash", lambda: state_of(provider, ending) == 404)


def test_a_server_killed_while_it_works_leaks_nothing():
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    with provider_with() as provider:
        for _ in range(5):
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for _ in range(4):
                    pool.submit(provider.ask, "POST", "/v2/sandboxes", {"templateID": "base"})
                for box in list(provider.sandboxes()):
                    pool.submit(provider.ask, "DELETE", f"/sandboxes/{box}")
                time.sleep(chance.uniform(0.0, 0.6))  # The moment of the crash, not a wait.
                provider.program.kill()
            provider.start()
            listed = set(provider.sandboxes())
            assert boxes_on_disk(provider) == listed, (boxes_on_disk(provider), listed)
            for box in listed:
                assert run_inside(provider, box, "echo alive")[1] == "alive\n"


def create_with_key(provider, key):
    body, headers = json.dumps({"templateID": "base"}), {"X-API-Key": provider.key, "Idempotency-Key": key}
    connection = http.client.HTTPConnection("127.0.0.1", provider.ports[0], timeout=100)
    with contextlib.closing(connection):
        connection.request("POST", "/v2/sandboxes", body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_what_came_of_a_key_in_a_crash_is_not_known():
    with world.temporary_folder("silent-executor") as folder:
        silent = folder / "executor"
        silent.write_text("#!/bin/sh\nexec sleep 1000\n")
        silent.chmod(0o755)
        with provider_with("--executor", silent) as provider, concurrent.futures.ThreadPoolExecutor(1) as pool:
            lost = pool.submit(create_with_key, provider, "k1")
            wait_until("a box that is being made", lambda: boxes_on_disk(provider))
            assert create_with_key(provider, "k1")[1]["error_code"] == "idempotency_in_progress"
            provider.program.kill()
            assert isinstance(lost.exception(), (ConnectionError, http.client.HTTPException)), lost
            for _ in range(2):
                provider.start()
                status, told = create_with_key(provider, "k1")
                assert (status, told["error_code"]) == (422, "idempotency_outcome_unknown"), told
                assert not provider.sandboxes() and not boxes_on_disk(provider)
                provider.program.kill()


def test_sigterm_leaves_sandboxes_unless_told_otherwise():
    with provider_with() as provider:
        box = create(provider)
        provider.program.kill()
        provider.kill_on_exit = False
        provider.start()
        assert provider.program.stop() == 0
        provider.start()
        assert run_inside(provider, box, "echo still here")[1] == "still here\n"
        assert provider.program.stop() == 0
        provider.kill_on_exit = True
        provider.start()
        assert state_of(provider, box) == "running"
        assert provider.program.stop() == 0
        assert not boxes_on_disk(provider)
        assert not world.cgroups_named(box)
        provider.start()
        assert not provider.sandboxes()


def members_of(box):
    """The pids in a box's control group; None when that is gone."""
    groups = world.cgroups_named(box)
    return [pid for group in groups for pid in open(f"{group}/cgroup.procs").read().split()] if groups else None


def test_boxes_end_when_their_server_and_its_folder_are_gone():
    with world.temporary_folder("vanishing") as folder:
        provider = world.Provider(folder / "provider")
        with contextlib.ExitStack() as unless_all_is_well:
            unless_all_is_well.callback(provider.close)
            running, paused = create(provider), create(provider)
            assert provider.ask("POST", f"/sandboxes/{paused}/pause")[0] == 204
            provider.program.kill()
            assert members_of(running) and members_of(paused), "a server's death alone ends no sandbox"
            unless_all_is_well.pop_all()
        shutil.rmtree(provider.folder)
    wait_until("the running one to end", lambda: not members_of(running))
    assert members_of(paused), "it stands still until somebody looks for it"
    with provider_with():
        assert members_of(paused) is None
    for group in world.cgroups_named(running):  # Empty; a server takes it along once it is a minute old.
        os.rmdir(group)
        os.rmdir(os.path.dirname(group))


def test_time_that_is_over_kills_or_pauses_at_once():
    with provider_with() as provider:
        killed, paused = create(provider), create(provider, autoPause=True)
        for box in (killed, paused):
            assert provider.ask("POST", f"/sandboxes/{box}/timeout", {"timeout": 1})[0] == 204
        wait_until("the kill", lambda: state_of(provider, killed) == 404)
        wait_until("the pause", lambda: provider.ask("GET", f"/sandboxes/{paused}")[1].get("pauseMode"))
        detail = provider.ask("GET", f"/sandboxes/{paused}")[1]
        assert detail["lifecycle"] == {"autoResume": False, "onTimeout": "pause"}, detail


def stream_of(provider, box):
    """A raw connection over which a command in the box prints without end."""
    connection = socket.create_connection(("127.0.0.1", provider.ports[1]), timeout=30)
    token = provider.ask("GET", f"/sandboxes/{box}")[1]["envdAccessToken"]
    body = b'{"process":{"cmd":"/bin/sh","args":["-c","while :; do echo x; sleep 0.01; done"]}}'
    envelope = b"\0" + len(body).to_bytes(4, "big") + body
    connection.sendall(
        (f"POST /process.Process/Start HTTP/1.1\r\nHost: 49983-{box}.localhost\r\n"
         f"X-Access-Token: {token}\r\nContent-Type: application/connect+json\r\n"
         f"Content-Length: {len(envelope)}\r\n\r\n").encode() + envelope)
    return connection


def idle_connection(provider, box):
    """A raw connection that has carried one request and waits for the next."""
    connection = socket.create_connection(("127.0.0.1", provider.ports[1]), timeout=30)
    connection.sendall(f"GET /health HTTP/1.1\r\nHost: 49983-{box}.localhost\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 204"), answer
    return connection


def assert_reset(connection):
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return
    raise AssertionError("the connection ended in peace")


def test_a_pause_resets_every_connection():
    with provider_with() as provider:
        box = create(provider)
        with stream_of(provider, box) as busy, idle_connection(provider, box) as idle:
            assert busy.recv(100).startswith(b"HTTP/1.1 200")
            assert provider.ask("POST", f"/sandboxes/{box}/pause")[0] == 204
            assert_reset(busy)
            assert_reset(idle)
        connection = http.client.HTTPConnection("127.0.0.1", provider.ports[1], timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/health", None, {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "49983"})
            answer = connection.getresponse()
            assert answer.status == 502 and box in answer.read().decode()


def test_the_log_of_a_sandbox_is_bounded():
    with provider_with() as provider:
        log = provider.state / "boxes" / create(provider) / "envd.log"
        with open(log, "ab") as file:
            file.write(b"x" * (2 << 20))
        wait_until("the log to be cut", lambda: log.stat().st_size < 1 << 20)


def test_both_sides_tell_one_envd_version():
    with provider_with() as provider:
        box = create(provider)
        connection = http.client.HTTPConnection("127.0.0.1", provider.ports[1], timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/health", None, {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "49983"})
            inside = connection.getresponse().getheader("X-Envd-Version")
        assert inside and inside == provider.sandboxes()[box]["envdVersion"], inside
        assert inside == provider.ask("GET", f"/sandboxes/{box}")[1]["envdVersion"]


def refusal(*arguments):
    """(exit code, stderr) of a server that does not start."""
    done = subprocess.run([world.programs_folder() / "sandfleet-local-e2b", *map(str, arguments)],
                          capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr


def test_bad_flags_are_named_with_their_cure():
    with world.temporary_folder("local-e2b") as folder:
        keys = folder / "keys"
        keys.write_text("# none\n")
        cases = [
            ([], "--state is required"),
            (["--state", folder, "--api-port", "70000"], "--api-port"),
            (["--state", folder, "--listen", "0.0.0.0"], "or --listen-any if that is meant"),
            (["--state", folder, "--fault", "fly:latency"], "the operations are all, create"),
            (["--state", folder, "--executor", folder / "none"], "name it with --executor"),
            (["--state", folder, "--api-key-file", keys], "there is no API key in it"),
            (["--state", folder, "--log-level", "loud"], "--log-level"),
        ]
        for arguments, expected in cases:
            code, told = refusal(*arguments)
            assert code == 2 and expected in told, (arguments, code, told)


def test_one_server_works_in_a_state_folder():
    with provider_with() as provider:
        code, told = refusal("--state", provider.state)
        assert code == 2 and "locked by another process" in told, (code, told)


if __name__ == "__main__":
    run_named(globals())
