"""Who works in a sandbox of a real cluster, and for how long: rights and accounts that go, sandboxes that another takes the
name of, and controllers that go while harnesses work. Run one test: access_test.py NAME; without a name: their names."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

import attach_test
from agentd_test import BOX, agentd_in, refusal
from attach_test import ask, door, harness_that_may_attach, port_of, published, wait_for_way_in
from cluster_world import GROUP, OWN, TEAM, cluster_world, world
from direct import refusal_of
from harness import Closed, Harness, Proxy, new_handle
from world import run_inside, sum_of

PODS = f"/api/v1/namespaces/{TEAM}/pods"


def account_that_may_attach(here, name):
    account = attach_test.Harness(here, name)
    account.may_attach()
    return account


def pod_of(here, account):
    here.create(PODS, {"metadata": {"name": account.name}, "spec": {
        "serviceAccountName": account.name, "containers": [{"name": "harness", "image": "none"}]}})


def expect_to_work(harness):
    assert harness.call("fs.stat", {"path": "/"})["info"]["type"] == "directory"


def test_who_may_no_longer_attach_is_sent_away_at_the_next_look():
    with cluster_world() as here, door(here, "one") as replica:
        stays = harness_that_may_attach(here)
        unbound, deleted, ended = (account_that_may_attach(here, name) for name in ("unbound", "deleted", "ended"))
        pod_of(here, ended)
        here.sandbox("box")
        here.wait_ready("box")
        tokens = {"stays": stays.token(), "unbound": unbound.token(), "deleted": deleted.token(), "ended": ended.token(pod="ended")}
        with agentd_in(here, port_of(here, replica), "--check-seconds", "1") as agentd, contextlib.ExitStack() as links:
            at_work = {name: links.enter_context(Harness(agentd.socket, BOX, token)) for name, token in tokens.items()}
            for harness in at_work.values():
                expect_to_work(harness)
            unbound.may_not_attach()
            for gone in (deleted.account, f"{PODS}/ended?gracePeriodSeconds=0"):
                assert here.cluster.ask("DELETE", gone).status == 200, gone
            for name, why in (("unbound", f"system:serviceaccount:{TEAM}:unbound may not create sandboxes/attach"),
                              ("deleted", "token"), ("ended", "token")):
                sent_away, at_the_door = at_work[name].end_of_link(), refusal(agentd, tokens[name])
                assert (sent_away.reason, at_the_door.reason) == ("expired", "denied"), name
                assert why in sent_away.message and why in at_the_door.message, (sent_away, at_the_door)
            expect_to_work(at_work["stays"])
            assert len(at_work["stays"].welcomes) == 1, at_work["stays"].welcomes
        here.remove("box")
        here.wait_gone()


def places_in(here, agentd, replica):
    """{where: bytes} of all that is written down or shown, but for what is a secret by its place."""
    kinds = [f"/api/v1/namespaces/{space}/{kind}" for space in (TEAM, OWN) for kind in ("pods", "configmaps")]
    kinds += [f"{GROUP}/{kind}" for kind in ("sandboxes", "sandboxproviders")] + ["/apis/events.k8s.io/v1/events"]
    found = {kind: json.dumps(here.cluster.ask("GET", kind).body).encode() for kind in kinds}
    found |= {"agentd's metrics": agentd.ask("/metrics")[1].encode(), "the controller's metrics": replica.metrics().encode()}
    for pid in (entry.name for entry in os.scandir("/proc") if entry.name.isdigit()):
        with contextlib.suppress(OSError):
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"sandfleet" in command:
                found[f"what process {pid} was started with"] = command + pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    for path, folders, files in os.walk(here.folder):
        folders[:] = [each for each in folders if not os.path.ismount(os.path.join(path, each))]
        for file in (pathlib.Path(path, each) for each in files):
            with contextlib.suppress(OSError):  # A socket, or what was removed meanwhile.
                found[str(file)] = file.read_bytes()
    return found


def expect_to_be_nowhere(tokens, found):
    for known in ("/agentd.log", "/one/log", "/audit.log", "/provider.log"):
        assert any(place.endswith(known) for place in found), list(found)
    where = {place for place, content in found.items() for token in tokens for part in token.split(".")[1:] if part.encode() in content}
    assert not where, where


def not_taken(harness, token):
    try:
        taken = harness.renew(token)
    except Closed as told:
        return told
    raise AssertionError(f"taken: {taken}")


def test_a_token_ends_and_its_session_waits_for_the_next():
    with cluster_world() as here, door(here, "one") as replica:
        account, other = harness_that_may_attach(here), account_that_may_attach(here, "other")
        pod_of(here, account)
        here.sandbox("box")
        here.wait_ready("box")
        with agentd_in(here, port_of(here, replica), "--check-seconds", "1") as agentd, contextlib.ExitStack() as links:
            at_its_end = account.token_ending(-45)  # In a quarter of a minute nobody takes it.
            good, of_its_pod, of_another = account.token(), account.token(pod=account.name), other.token()
            for_all = account.token(audience=None)
            ends, renews, mistaken, sly = (links.enter_context(Harness(agentd.socket, BOX, token))
                                           for token in (at_its_end, at_its_end, good, good))
            handle = new_handle()
            ends.call("process.spawn", {"handle": handle, "argv": ["sleep", "600"], "graceMs": 3000, "stdin": "ignore",
                                        "stdout": "discard", "stderr": "discard"}, mutating=True)
            assert ends.welcomes[0]["expiresMs"] == 1, "it has ended, but for what the API server lets pass"
            assert renews.renew(of_its_pod)["expiresMs"] > 50 * 60 * 1000

            # A next one that is no good ends the link, and says why. Who comes back by a good one has its session again.
            for harness, next_one, why in ((mistaken, for_all, "token"), (sly, of_another, "another's")):
                told = not_taken(harness, next_one)
                assert told.reason == "denied" and why in told.message, (told.reason, told.message)
                harness.token = good
                assert harness.connect().welcomes[0]["resumed"]

            told = ends.end_of_link()
            assert told.reason == "expired" and "token" in told.message, (told.reason, told.message)
            assert refusal(agentd, at_its_end).reason == "denied"
            ends.token = good
            assert ends.connect().welcomes[0]["resumed"], "its session waits for as long as its lease"
            assert not ends.call("process.wait", {"handle": handle, "until": "exit", "timeoutMs": 0})["reached"]
            expect_to_work(renews)
            assert len(renews.welcomes) == 1, renews.welcomes
            way = ask(port_of(here, replica), good, published(here)).body["token"]
            expect_to_be_nowhere((at_its_end, good, of_its_pod, of_another, for_all, way), places_in(here, agentd, replica))
        here.remove("box")
        here.wait_gone()


def exec_in(here, agentd, token, *command):
    """`sandfleet exec` as a pod has it."""
    file = here.folder / "token"
    file.write_text(token)
    return subprocess.Popen([world.programs_folder() / "sandfleet", "exec", "--socket", agentd.socket, "--token-file", file, BOX,
                             "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_nobody_gets_into_another_sandbox_of_the_same_name():
    with cluster_world() as here, door(here, "one") as replica:
        token, port, trust = harness_that_may_attach(here).token(), port_of(here, replica), published(here)
        here.sandbox("box")
        before = here.wait_ready("box")["box"]
        held = wait_for_way_in(here, port, token, trust).body
        assert refusal_of(held) is None
        with agentd_in(here, port) as agentd, Harness(agentd.socket, BOX, token) as harness, \
                exec_in(here, agentd, token, "sh", "-c", "echo begun; exec sleep 600") as command:
            assert command.stdout.readline() == "begun\n"
            handle = new_handle()
            harness.call("process.spawn", {"handle": handle, "argv": ["sleep", "600"], "graceMs": 3000, "stdin": "ignore",
                                           "stdout": "discard", "stderr": "discard"}, mutating=True)
            harness.ask("process.wait", {"handle": handle, "until": "exit"})
            here.remove("box")
            here.wait_for("the object to go", lambda: here.look("box") is None)
            here.sandbox("box")
            after = here.wait_ready("box")["box"]
            assert after != before
            said, errors = command.communicate(timeout=60)
            assert command.returncode == 255 and said == "", (command.returncode, said, errors)
            assert f"Sandbox {BOX}" in errors, errors  # What is said of it depends on when agentd asks.
            way = ask(port, token, trust).body
            assert refusal_of({**way, "token": held["token"]}) == "token refused: it is for another executor"
            assert refusal_of(way) is None
            assert harness.end_of_link().reason == "denied"
            for _ in range(2):
                with contextlib.suppress(Closed):
                    raise AssertionError(f"let in: {harness.dial().welcomes}")
            asked = sum_of(agentd.metrics(), "sandfleet_agentd_dials_total", result="welcome")
            with Harness(agentd.socket, BOX, token) as newcomer:
                expect_to_work(newcomer)
            assert sum_of(agentd.metrics(), "sandfleet_agentd_dials_total", result="welcome") == asked + 1 == 3
            assert run_inside(here.provider, after, "! grep -l sleep /proc/[0-9]*/comm")[0] == 0
        here.remove("box")
        here.wait_gone()


def brisk_door(here, name):
    """One that takes over within seconds."""
    return door(here, name, "--attach-name", "127.0.0.1", "--lease-seconds", "3")


def test_harnesses_work_on_while_controllers_come_and_go():
    with cluster_world() as here, brisk_door(here, "first") as first:
        account = harness_that_may_attach(here)
        here.wait_for("a leader", first.acts)
        here.sandbox("box")
        here.wait_ready("box")
        with brisk_door(here, "second") as second, contextlib.closing(Proxy(port_of(here, first), port_of(here, second))) as service, \
                agentd_in(here, service.port, "--check-seconds", "1") as agentd, \
                Harness(agentd.socket, BOX, account.token()) as harness:
            expect_to_work(harness)
            held, late = ask(port_of(here, first), account.token(), published(here)).body, account.token()
            first.program.kill()
            asked = answers(agentd)
            expect_to_work(harness)
            with Harness(agentd.socket, BOX, account.token()) as newcomer:
                expect_to_work(newcomer)
            assert refusal_of(held) is None, "what the first one signed is good"
            here.wait_for("the other to vouch for the first link", lambda: answers(agentd)["Way"] > asked["Way"] + 2)

            # One that is asked to end serves until it does.
            here.wait_for("a leader", second.acts)
            with brisk_door(here, "third") as third:
                service.to = (port_of(here, second), port_of(here, third))
                second.program.process.terminate()
                while second.program.alive():
                    expect_to_work(harness)
                    with Harness(agentd.socket, BOX, account.token()) as newcomer:
                        expect_to_work(newcomer)
                here.wait_for("a leader", third.acts)

                # Without an API server nobody can say yes or no; without a controller nobody can be asked.
                here.cluster.api_server.kill()
                work_unvouched(agentd, harness, late)
                here.cluster.start_api_server()
                third.program.kill()
                work_unvouched(agentd, harness, late)
            with brisk_door(here, "fourth") as fourth:
                service.to = (port_of(here, fourth),)
                with Harness(agentd.socket, BOX, account.token()) as newcomer:
                    expect_to_work(newcomer)
                expect_to_work(harness)
                assert len(harness.welcomes) == 1, harness.welcomes
                here.remove("box")
                here.wait_gone()


def answers(agentd):
    """{what was answered: how often} to agentd's questions."""
    metrics = agentd.metrics()
    return {each: sum_of(metrics, "sandfleet_agentd_asks_total", result=each) for each in ("Way", "Denied", "Unavailable")}


def work_unvouched(agentd, harness, late):
    """Silence is no refusal: who is in works on, and who would come in is told to come later."""
    before, told = answers(agentd), refusal(agentd, late)
    assert told.reason == "busy" and told.retry_after_ms, told
    world.wait_until(lambda: f"silence: {answers(agentd)}", lambda: answers(agentd)["Unavailable"] > before["Unavailable"] + 2, 40)
    assert answers(agentd)["Denied"] == before["Denied"], answers(agentd)
    expect_to_work(harness)


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
