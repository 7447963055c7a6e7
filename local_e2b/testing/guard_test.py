"""sandfleet-local-e2b as a process, with real boxes: what neither a caller nor a sandbox may break. Run
one test: guard_test.py NAME; without a name: their names."""

import contextlib
import http.client
import json
import socket
import time

from provider import create, provider_with, run_named
from world import run_inside


def ask_envd(provider, box, method, message):
    """(status, JSON) of one unary call of envd."""
    token = provider.ask("GET", f"/sandboxes/{box}")[1]["envdAccessToken"]
    connection = http.client.HTTPConnection("127.0.0.1", provider.ports[1], timeout=30)
    with contextlib.closing(connection):
        connection.request("POST", f"/{method}", json.dumps(message), {
            "Content-Type": "application/json", "X-Access-Token": token,
            "E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "49983"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_what_a_sandbox_stands_on_is_not_removed():
    with provider_with() as provider:
        box = create(provider, templateID="base-executor")
        assert run_inside(provider, box, "echo kept >kept; ln -s / way")[0] == 0
        for path, code in (("/", "invalid_argument"), ("//", "invalid_argument"), ("/.", "invalid_argument"),
                           ("/home/..", "invalid_argument"), ("/usr", "failed_precondition"),
                           ("/run", "failed_precondition"), ("way/usr", "failed_precondition"),
                           ("/opt/sandfleet", "failed_precondition")):
            status, told = ask_envd(provider, box, "filesystem.Filesystem/Remove", {"path": path})
            assert (status, told.get("code")) == (400, code), (path, status, told)
        look = "cat kept; ls -A /run/sandfleet /opt/sandfleet/bin; test -e /usr/bin/env && echo whole"
        assert run_inside(provider, box, look)[1].split() == [
            "kept", "/opt/sandfleet/bin:", "sandfleet-executor", "sandfleet-executor.sha256", "/run/sandfleet:", "envd",
            "whole"]
        assert ask_envd(provider, box, "filesystem.Filesystem/Remove", {"path": "way"}) == (200, {})


def half_sent_head(port, open_until_the_end):
    connection = open_until_the_end.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
    with contextlib.suppress(ConnectionError):  # It may have had to make room already.
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: ha")


def test_a_flood_of_half_sent_heads_keeps_nobody_out():
    with provider_with(descriptors=(128, 1024)) as provider, contextlib.ExitStack() as flood:
        box = create(provider)
        assert run_inside(provider, box, "ulimit -n") == (0, "128\n"), "what the server was started with"
        for _ in range(400):
            for port in provider.ports:
                half_sent_head(port, flood)
        began = time.monotonic()
        assert run_inside(provider, box, "echo in") == (0, "in\n")
        assert time.monotonic() - began < 9, "sooner than half-sent heads are given up"


if __name__ == "__main__":
    run_named(globals())
