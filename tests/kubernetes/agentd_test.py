"""agentd on a node of a real cluster: harnesses get in by their own tokens, over HTTPS, and its own account may only look at
Sandboxes. Run one test: agentd_test.py NAME; without a name: their names."""

import contextlib
import sys

import attach_test
from attach_test import door, harness_that_may_attach, port_of, published
from cluster_world import RBAC, TEAM, cluster_world, world
from harness import Agentd, Closed, Harness
from world import run_inside

NODE = "agentd"  # Whom the API server takes it for.
BOX = f"{TEAM}/box"


@contextlib.contextmanager
def agentd_in(here, port, *arguments):
    """With no more rights than it needs; the attach service is behind that port."""
    rules = [{"apiGroups": ["sandfleet.dev"], "resources": ["sandboxes"], "verbs": ["get", "list", "watch"]}]
    here.create(f"{RBAC}/clusterroles", {"metadata": {"name": NODE}, "rules": rules})
    here.create(f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": NODE}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NODE},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": NODE}]})
    bundle = here.folder / "attach-ca.crt"
    bundle.write_text(published(here))
    with Agentd(here.folder / "agentd", None, "--kubeconfig", here.cluster.kubeconfig(NODE, ()),
                "--attach-url", f"https://127.0.0.1:{port}", "--attach-ca", bundle, *arguments) as agentd:
        yield agentd


def refusal(agentd, token):
    with contextlib.closing(Harness(agentd.socket, BOX, token)) as harness:
        try:
            harness.dial()
        except Closed as closed:
            return closed
    raise AssertionError("let in")


def test_a_harness_gets_in_by_its_own_token():
    with cluster_world() as here, door(here, "one") as replica:
        account = harness_that_may_attach(here)
        stranger = attach_test.Harness(here, "stranger")
        here.sandbox("box")
        box, token = here.wait_ready("box")["box"], account.token()
        with agentd_in(here, port_of(here, replica)) as agentd:
            with Harness(agentd.socket, BOX, token) as harness:
                assert harness.welcomes[0]["uid"] == here.look("box")["metadata"]["uid"], harness.welcomes
                harness.call("fs.mkdir", {"path": "a/b", "parents": True}, mutating=True)
                assert run_inside(here.provider, box, "ls -d $HOME/a/b")[0] == 0
                harness.end()
            for nobody in (None, "nonsense", stranger.token(), account.token(audience=None)):
                assert refusal(agentd, nobody).reason == "denied", nobody
            log = agentd.program.output()
            assert token not in log and token.split(".")[2] not in log, "a token in the log"
        asked = {(each["verb"], each["objectRef"]["resource"]) for each in here.cluster.requests(NODE)}
        assert ("watch", "sandboxes") in asked and asked <= {(verb, "sandboxes") for verb in ("get", "list", "watch")}, asked
        here.remove("box")
        here.wait_gone()


def test_a_harness_goes_on_after_a_pause_that_the_watch_told_of():
    with cluster_world() as here, door(here, "one") as replica:
        account = harness_that_may_attach(here)
        here.sandbox("box")
        here.wait_ready("box")
        with agentd_in(here, port_of(here, replica)) as agentd, Harness(agentd.socket, BOX, account.token()) as harness:
            harness.call("fs.mkdir", {"path": "kept", "parents": True}, mutating=True)
            here.change("box", desiredState="Paused")
            here.wait_for("paused", lambda: here.condition("box", "Paused").get("status") == "True")
            here.change("box", desiredState="Running")
            harness.wait(lambda: len(harness.welcomes) == 2 and harness.open)
            assert harness.call("fs.stat", {"path": "kept"})["info"]["type"] == "directory"
            assert here.status("box")["run"] == 2
            harness.end()
        here.remove("box")
        here.wait_gone()


def test_whoever_attaches_by_any_replica_wakes_what_idles():
    """Also at one that does not act: what it writes, the one that acts is told of."""
    with cluster_world() as here, door(here, "one") as first, door(here, "two") as second:
        here.wait_for("one that acts", lambda: first.acts() or second.acts())
        answers = second if first.acts() else first
        account = harness_that_may_attach(here)
        here.sandbox("box", lifecycle={"idleSeconds": 1, "wakeOnAttach": True})
        here.wait_ready("box")

        def wait_idle():
            here.wait_for("it to idle", lambda: here.condition("box", "Paused").get("reason") == "Idle")
            status = here.status("box")
            assert (status["pausedBy"], status["state"]) == ("Idle", "Paused"), status
            assert here.look("box")["spec"]["desiredState"] == "Running"
        token = account.token()
        with agentd_in(here, port_of(here, answers)) as agentd:
            with Harness(agentd.socket, BOX, token) as harness:
                harness.call("fs.mkdir", {"path": "kept", "parents": True}, mutating=True)
                for again in range(2):  # By a session that is open.
                    wait_idle()
                    made = harness.ask("fs.mkdir", {"path": f"kept/{again}"}, mutating=True)
                    harness.wait(lambda made=made: made in harness.replies)
                    assert harness.replies[made]["ok"]["created"], harness.replies
                harness.end()
            wait_idle()
            before = here.status("box")["run"]
            with Harness(agentd.socket, BOX, token) as harness:  # By one that is new.
                assert harness.call("fs.stat", {"path": "kept/1"})["info"]["type"] == "directory"
                assert here.status("box")["run"] > before and here.status("box")["incarnation"] == 1, here.status("box")
                harness.end()
        reasons = set(here.events("box"))
        assert {"Idle", "Waking"} <= reasons and "PausedUnderUs" not in reasons, reasons
        here.remove("box")
        here.wait_gone()


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
