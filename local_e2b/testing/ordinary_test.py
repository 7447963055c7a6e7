"""sandfleet-local-e2b as a process of somebody who is not root, with real boxes. Run one test:
ordinary_test.py NAME; without a name: their names."""

import contextlib
import http.client
import json
import os
import pathlib

from provider import boxes_on_disk, create, provider_with, run_named, world
from world import run_inside, wait_until


def ask_inside(provider, box, method, path, body, content_type):
    """(status, body) of a request to envd."""
    token = provider.ask("GET", f"/sandboxes/{box}")[1]["envdAccessToken"]
    connection = http.client.HTTPConnection("127.0.0.1", provider.ports[1], timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "49983",
                                                "X-Access-Token": token, "Content-Type": content_type})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_an_ordinary_user_has_sandboxes_that_leave_nothing():
    with provider_with(ordinary=True) as provider:
        assert list(provider.cannot()) == ["pause"], provider.cannot()
        box = create(provider, envVars={"GREETING": "hello"})
        other = create(provider, templateID="base-executor")
        assert run_inside(provider, box, "echo $GREETING; pwd; id -un; echo $USER") == (
            0, "hello\n/home/user\nroot\nuser\n")
        form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nwritten\r\n--x--\r\n'
        status, told = ask_inside(provider, box, "POST", "/files?path=notes/f", form, "multipart/form-data; boundary=x")
        assert status == 200, told
        assert ask_inside(provider, box, "GET", "/files?path=notes/f", None, "") == (200, b"written")
        status, told = ask_inside(provider, box, "POST", "/filesystem.Filesystem/ListDir", '{"path":"/home/user/notes"}',
                                  "application/json")
        assert status == 200 and [each["path"] for each in json.loads(told)["entries"]] == ["/home/user/notes/f"], told
        pid = run_inside(provider, box, "exec sleep 1000", background=True)
        for asked in (("POST", f"/sandboxes/{box}/pause"),
                      ("POST", "/v2/sandboxes", {"templateID": "base", "autoPause": True})):
            status, told = provider.ask(*asked)
            assert status == 400 and provider.cannot()["pause"] in told["message"], told
        provider.program.kill()
        provider.start()
        assert set(provider.sandboxes()) == {box, other}
        assert run_inside(provider, box, f"kill -0 {pid} && cat notes/f") == (0, "written")
        assert provider.ask("DELETE", f"/sandboxes/{box}")[0] == 204
        assert boxes_on_disk(provider) == {other}
        assert not [line for line in world.processes_of(provider.folder).values() if "sleep" in line]


@contextlib.contextmanager
def cgroup_of_a_test():
    group = world.cgroup2() / f"test-of-sandfleet-{os.getpid()}"  # No name that a server gives.
    group.mkdir()
    try:
        yield group
    finally:
        world.wait_until("the test's cgroup to be empty", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_a_cgroup_delegated_to_an_ordinary_user_lets_him_pause():
    if os.geteuid() != 0:
        print("skipped: it takes root to delegate a cgroup")
        raise SystemExit(world.SKIPPED)
    with cgroup_of_a_test() as group, provider_with(ordinary=True, cgroup=group) as provider:
        assert provider.cannot() == {}
        box = create(provider)
        counting = "i=0; while :; do i=$((i+1)); echo $i >/tmp/count; sleep 0.01; done"
        run_inside(provider, box, counting, background=True)
        wait_until("a count", lambda: run_inside(provider, box, "cat /tmp/count 2>/dev/null")[1])
        assert provider.ask("POST", f"/sandboxes/{box}/pause")[0] == 204
        [its_group] = world.cgroups_named(box)
        # The kernel has said so once; while a command is born it may take that back for a moment.
        events = pathlib.Path(its_group) / "cgroup.events"
        wait_until("it to stand still", lambda: "frozen 1" in events.read_text())
        assert provider.ask("POST", f"/v2/sandboxes/{box}/connect")[0] == 201
        before = int(run_inside(provider, box, "cat /tmp/count")[1] or 0)
        wait_until("the count to go on", lambda: int(run_inside(provider, box, "cat /tmp/count")[1] or 0) > before)

        # Where nothing is delegated to the next server, what has a cgroup is still paused and removed.
        provider.program.kill()
        provider.user.cgroup = None
        provider.start()
        assert list(provider.cannot()) == ["pause"]
        bare = create(provider)
        assert provider.ask("POST", f"/sandboxes/{bare}/pause")[0] == 400
        assert provider.ask("POST", f"/sandboxes/{box}/pause")[0] == 204
        assert provider.ask("DELETE", f"/sandboxes/{box}")[0] == 204
        assert not world.cgroups_named(box), world.cgroups_named(box)


if __name__ == "__main__":
    run_named(globals(), need_root=False)
