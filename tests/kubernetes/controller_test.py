"""The controller in a real cluster: controllers, API server, provider and boxes as processes, and what crashes, cuts
and refusals do to them. Run one test: controller_test.py NAME; without a name: their names."""

import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster_world import GROUP, OWN, READ_SECRETS, TEAM, USER, WRITES, Wire, cluster_world, world  # noqa: E402
from world import run_inside  # noqa: E402


def test_a_sandbox_lives_by_three_writes_and_no_more():  # I-SPEC, I-NOFLAP, I-TAG
    with cluster_world() as here, here.replica("one") as replica:
        made = here.sandbox("box")
        box = here.wait_ready("box")["box"]
        assert run_inside(here.provider, box, "echo alive") == (0, "alive\n")
        here.wait_for("events", lambda: {"Created", "Ready"} <= set(here.events("box")))
        slow = here.events("box").count("SlowStep")  # On a busy machine each of these is told, too.
        assert here.writes("box") == ["patch 200"] + ["patch status 200"] * (2 + slow), (here.writes("box"), here.story())
        counted = replica.series()
        for resource in ("sandboxes", "sandboxes/status"):
            written = [each for each in here.cluster.requests(USER, {"patch"}) if each["responseStatus"]["code"] == 200 and
                       resource == "/".join(filter(None, (each["objectRef"]["resource"], each["objectRef"].get("subresource"))))]
            assert world.sum_of(counted, "sandfleet_api_writes_total", verb="patch", resource=resource, code="200") == len(written)
        assert world.sum_of(counted, "leader_election_slowpath_total", name="sandfleet-0-of-1") == 0
        seen = here.look("box")
        assert seen["spec"] == made["spec"] and seen["metadata"]["generation"] == 1, seen
        ours = [each for each in seen["metadata"]["managedFields"] if each["manager"] == "sandfleet-controller"]
        assert ours and not any("f:spec" in each["fieldsV1"] for each in ours), ours
        metadata = here.provider.sandboxes()[box]["metadata"]
        assert metadata["sandfleet.uid"] == made["metadata"]["uid"], metadata
        assert metadata["sandfleet.fleet"].endswith(f".{OWN}.sandfleet"), metadata

        # What runs well is not written about.
        before = len(here.cluster.requests(USER, WRITES))
        quiet_until = time.monotonic() + 5
        while time.monotonic() < quiet_until:
            written = [each for each in here.cluster.requests(USER, WRITES)[before:]
                       if each["objectRef"]["resource"] in ("sandboxes", "sandboxproviders")]
            assert not written, written
            time.sleep(0.2)

        here.change("box", desiredState="Paused")
        here.wait_for("paused", lambda: here.condition("box", "Paused").get("status") == "True")
        assert here.provider.sandboxes()[box]["state"] == "paused"
        here.change("box", desiredState="Running")
        assert here.wait_ready("box") == {"box": box}
        status = here.status("box")
        assert (status["epoch"], status["incarnation"], status["run"]) == (1, 1, 2), status
        here.remove("box")
        here.wait_gone()
        assert len(here.created()) == 1, here.calls()


def test_a_namespace_goes_also_when_the_controller_is_killed_meanwhile():  # I-NSDEL, I-RESYNC
    with cluster_world(controllers=True) as here:
        names = [f"box-{number}" for number in range(3)]
        replica = here.replica("one", "--lease-seconds", "6").start()
        for name in names:
            here.sandbox(name)
        here.wait_ready(*names)
        assert here.cluster.ask("DELETE", f"/api/v1/namespaces/{TEAM}").status == 200
        here.wait_for("a first kill", lambda: any(call.startswith("DELETE") for call in here.calls()))
        replica.program.kill()
        with replica:
            here.wait_gone()
            here.wait_for("the namespace gone", lambda: here.cluster.ask("GET", f"/api/v1/namespaces/{TEAM}").status == 404)
        assert len(here.created()) == len(names)


def test_who_was_stopped_past_his_lease_does_nothing_more():  # I-LEAD, I-STALE
    with cluster_world() as here:
        first, second = (here.replica(name, "--lease-seconds", "6") for name in ("first", "second"))
        first.start()
        here.wait_for("a leader", first.acts)
        with second:
            here.sandbox("before")
            before = here.wait_ready("before")["before"]
            # Something is to be done when it wakes up.
            first.program.process.send_signal(signal.SIGSTOP)
            here.sandbox("after")
            here.change("before", desiredState="Paused")
            here.wait_ready("after")
            here.wait_for("paused", lambda: here.condition("before", "Paused").get("status") == "True")
            asked = len(here.calls("POST", "DELETE"))
            first.program.process.send_signal(signal.SIGCONT)
            here.wait_for("the first one to end", lambda: not first.program.alive())
            assert first.program.process.returncode == 1
            assert first.said("holds the lease sandfleet-0-of-1 now") or first.said("was another's for a while"), first.program.output()
            late = [call for call in here.calls("POST", "DELETE")[asked:] if "/refreshes" not in call]
            assert not late, late
            assert here.provider.sandboxes()[before]["state"] == "paused"
            # It comes back, as a new process that waits for its turn.
            with first:
                here.sandbox("last")
                here.wait_ready("last")
                assert not here.condition("last").get("reason") == "Unknown"
            assert len(here.created()) == 3, here.calls()
            here.remove("before", "after", "last")
            here.wait_gone()


def test_who_is_asked_to_stop_finishes_and_hands_over_at_once():  # I-ONE, I-RESYNC
    with cluster_world("--fault", "create:latency:ms=3000") as here:
        # Nobody waits out a lease of a minute here.
        first, second = (here.replica(name, "--lease-seconds", "60") for name in ("first", "second"))
        first.start()
        here.wait_for("a leader", first.acts)
        with second:
            here.sandbox("box")
            here.wait_for("a create under way", lambda: here.look("box")["metadata"].get("finalizers"))
            here.wait_for("it was sent", lambda: first.said('action=Create') > 0)
            assert first.program.stop(60) == 0
            here.wait_for("the second one acts", second.acts, 15)
            bound = here.status("box").get("sandboxID")
            assert bound, "the create was not finished: " + here.story()
            assert here.wait_ready("box")["box"] == bound
            assert len(here.created()) == 1, here.calls()
            here.remove("box")
            here.wait_gone()


def test_shards_are_shared_and_taken_over():  # I-ONE, I-RESYNC
    with cluster_world() as here:
        here.create(f"{GROUP}/sandboxproviders", {"metadata": {"name": "other"}, "spec": here.provider_spec()})
        pair = [here.replica(name, "--lease-seconds", "15", "--shards", "2") for name in ("first", "second")]
        for each in pair:
            each.start()
        here.wait_for("each has a shard", lambda: all(each.acts() for each in pair))
        here.sandbox("one")
        here.sandbox("two", providerRef={"name": "other"})
        boxes = here.wait_ready("one", "two")
        pair[0].program.kill()
        for name in boxes:
            here.change(name, desiredState="Paused")
        here.wait_for("both paused by who is left",
                      lambda: all(here.condition(name, "Paused").get("status") == "True" for name in boxes))
        here.remove("one", "two")
        here.wait_gone()
        assert pair[1].program.stop() == 0
        assert len(here.created()) == 2, here.calls()


def test_a_tenants_secret_is_read_only_where_that_was_granted():  # I-SECRET
    with cluster_world() as here, here.replica("one") as replica:
        here.secret(TEAM, "token", value="CANARY-in-a-tenants-secret")
        here.sandbox("box", env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "value"}}}])
        here.wait_for("it is said", lambda: here.condition("box").get("reason") == "SecretForbidden")
        assert "cannot get resource" in here.condition("box")["message"], here.condition("box")
        assert not here.created()
        here.grant(TEAM, "read-secrets", READ_SECRETS)
        box = here.wait_ready("box")["box"]
        assert run_inside(here.provider, box, "echo $TOKEN") == (0, "CANARY-in-a-tenants-secret\n")
        asked = [each["verb"] for each in here.cluster.requests(USER) if each["objectRef"]["resource"] == "secrets"
                 and each["objectRef"].get("namespace") == TEAM]
        assert set(asked) == {"get"}, asked
        assert not replica.said("CANARY"), "a secret in the log"
        assert "CANARY" not in str(here.look("box")) + str(here.cluster.ask("GET", "/apis/events.k8s.io/v1/events").body)
        here.remove("box")
        here.wait_gone()


def test_a_providers_key_may_be_wrong_missing_and_changed():
    with cluster_world() as here, here.replica("one"):
        def provider_reason(kind):
            conditions = here.cluster.ask("GET", f"{GROUP}/sandboxproviders/default").body.get("status", {}).get("conditions", [])
            return next((each["reason"] for each in conditions if each["type"] == kind), "")

        here.wait_for("accepted", lambda: provider_reason("CredentialsValid") == "CredentialsAccepted")
        here.secret(OWN, "e2b-key", apiKey="wrong")
        here.wait_for("refused", lambda: provider_reason("CredentialsValid") == "CredentialsRejected")
        here.sandbox("box")
        here.secret(OWN, "e2b-key", apiKey=here.provider.key)
        here.wait_ready("box")
        assert provider_reason("CredentialsValid") == "CredentialsAccepted"
        here.remove("box")
        here.wait_gone()


def test_cuts_on_the_way_to_the_api_server_lose_nothing():  # I-ONE, I-STALE
    with cluster_world() as here:
        wire = Wire(here.cluster.port)
        names = [f"box-{number}" for number in range(4)]
        with here.replica("one", "--lease-seconds", "6", wire=wire):
            for name in names:
                here.sandbox(name)
                wire.cut()
            here.wait_ready(*names)
            # The server's memory goes while nobody can ask it: a watch from before is too old.
            wire.open = False
            assert wire.cut() > 0
            here.remove(names[0])
            here.cluster.api_server.kill()
            here.cluster.compact()
            here.cluster.start_api_server()
            here.sandbox("late")
            wire.open = True
            here.wait_ready("late", *names[1:])
            here.wait_for("the deleted one gone", lambda: here.look(names[0]) is None)
            assert len(here.created()) == len(names) + 1, here.calls()
            here.remove("late", *names[1:])
            here.wait_gone()
        wire.close()


def test_an_api_server_that_is_killed_again_and_again_leaves_one_box_each():  # I-ONE
    with cluster_world() as here, here.replica("one", "--lease-seconds", "6"):
        names = [f"box-{number}" for number in range(3)]
        for name in names:
            here.sandbox(name)
            here.cluster.api_server.kill()
            here.cluster.start_api_server()
        boxes = here.wait_ready(*names)
        assert set(boxes.values()) == set(here.provider.sandboxes()), (boxes, here.provider.sandboxes())
        assert len(here.created()) == len(names), here.calls()
        here.remove(*names)
        here.wait_gone()


def test_heartbeats_go_on_while_the_api_server_is_away():  # I-HB, I-LEAD
    with cluster_world() as here, here.replica("one", "--lease-seconds", "6") as replica:
        here.sandbox("box", keepAlive={"timeoutSeconds": 15, "heartbeatSeconds": 5})
        box = here.wait_ready("box")["box"]
        here.cluster.api_server.kill()
        before = len(here.calls("POST", "DELETE"))
        away_until = time.monotonic() + 18  # Longer than the box lives by itself.
        while time.monotonic() < away_until:
            assert here.provider.sandboxes()[box]["state"] == "running", replica.program.output()
            time.sleep(0.5)
        assert not replica.acts(), replica.program.output()
        done = here.calls("POST", "DELETE")[before:]
        assert len(done) >= 3 and all(call.endswith("/refreshes") for call in done), done
        here.cluster.start_api_server()
        here.change("box", desiredState="Paused")
        here.wait_for("caught up", lambda: here.condition("box", "Paused").get("status") == "True")
        assert replica.acts() and replica.program.alive()
        assert world.sum_of(replica.series(), "leader_election_slowpath_total", name="sandfleet-0-of-1") > 0
        here.remove("box")
        here.wait_gone()


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
