"""sandfleet-local-e2b --bookkeeping as a process: sandboxes that are only written down keep their manners. Run one
test: bookkeeping_test.py NAME; without a name: their names."""

import contextlib
import http.client
import os
import pathlib
import signal

from provider import create, provider_with, run_named, state_of, world
from server_test import refusal
from world import wait_until


def children_of(pid):
    """{pid: command line} of a process's own children."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return found


def inside(provider, box, port):
    """Status of GET /health at a port inside."""
    connection = http.client.HTTPConnection("127.0.0.1", provider.ports[1], timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/health", None, {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": str(port)})
        return connection.getresponse().status


def test_a_sandbox_in_the_books_lives_without_processes():
    with provider_with("--bookkeeping", "--max-sandboxes", 5000) as provider:
        assert not provider.cannot()
        boxes = [create(provider, metadata={"number": str(number)}) for number in range(150)]
        assert set(provider.sandboxes()) == set(boxes), "over several pages"
        shared = children_of(provider.program.pid)
        assert list(shared.values()) == ["sandfleet-executor stand-in"], shared
        box, other = boxes[:2]
        assert (inside(provider, box, 49983), inside(provider, box, 24984), inside(provider, box, 80)) == (204, 401, 502)
        assert provider.ask("POST", f"/sandboxes/{box}/pause", {})[0] == 204
        assert provider.ask("POST", f"/sandboxes/{box}/pause", {})[0] == 409
        assert (state_of(provider, box), inside(provider, box, 49983), inside(provider, other, 49983)) == ("paused", 502, 204)
        assert provider.ask("POST", f"/v2/sandboxes/{box}/connect", {"timeout": 60})[0] == 201
        assert inside(provider, box, 49983) == 204
        assert provider.ask("POST", f"/sandboxes/{other}/timeout", {"timeout": 1})[0] == 204
        wait_until("the lease to end", lambda: state_of(provider, other) == 404)
        assert provider.ask("DELETE", f"/sandboxes/{box}")[0] == 204
        assert (state_of(provider, box), inside(provider, box, 49983)) == (404, 502)


def test_the_books_outlive_a_server_that_is_killed():
    with provider_with("--bookkeeping") as provider:
        running, paused = create(provider), create(provider)
        assert provider.ask("POST", f"/sandboxes/{paused}/pause")[0] == 204
        before = provider.sandboxes()
        left = children_of(provider.program.pid)
        provider.program.kill()
        wait_until("its executor to end", lambda: not any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in left))
        provider.start()
        assert provider.sandboxes() == before
        assert (inside(provider, running, 49983), inside(provider, paused, 49983)) == (204, 502)


def test_sandboxes_in_the_books_die_with_their_executor():
    with provider_with("--bookkeeping") as provider:
        create(provider)
        os.kill(next(iter(children_of(provider.program.pid))), signal.SIGKILL)
        wait_until("its sandboxes to be gone", lambda: not provider.sandboxes())
        status, told = provider.ask("POST", "/v2/sandboxes", {"templateID": "base"})
        assert status == 500 and "has ended" in told["message"], (status, told)


def test_books_are_kept_apart_from_real_sandboxes():
    with world.temporary_folder("local-e2b") as folder:
        (folder / "boxes" / "iabc").mkdir(parents=True)
        code, told = refusal("--state", folder, "--bookkeeping")
        assert code == 2 and "a state folder of its own" in told, (code, told)
        code, told = refusal("--state", folder, "--max-sandboxes", 4097)
        assert code == 2 and "except with --bookkeeping" in told, (code, told)


if __name__ == "__main__":
    run_named(globals(), need_root=False)
