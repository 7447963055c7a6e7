"""The controller in a real cluster: controllers, API server, provider and boxes as processes, and what crashes, cuts
and refusals do to them. Run one test: controller_test.py NAME; without a name: their names."""

import contextlib
import datetime
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster_world import (CLUSTER_RULES, GROUP, OWN, OWN_RULES, READ_SECRETS, TEAM, USER, WRITES, Wire,  # noqa: E402
                           cluster_world, world)
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
            here.wait_for("the second one acts", second.acts, 30)
            bound = here.status("box").get("sandboxID")
            assert bound, "the create was not finished: " + here.story()
            assert here.wait_ready("box")["box"] == bound
            assert len(here.created()) == 1, here.calls()
            here.remove("box")
            here.wait_gone()


def test_shards_are_shared_and_taken_over():  # I-ONE, I-RESYNC
    with cluster_world() as here:
        here.create(f"{GROUP}/sandboxproviders", {"metadata": {"name": "other"}, "spec": here.provider_spec()})
        # Together, as who comes late finds both shards taken.
        pair = [here.replica(name, "--lease-seconds", "9", "--shards", "2").launch() for name in ("first", "second")]
        here.wait_for("each has a shard", lambda: all(each.ready.exists() and each.acts() for each in pair))
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
        def reason():
            return here.provider_condition("CredentialsValid").get("reason")

        here.wait_for("accepted", lambda: reason() == "CredentialsAccepted")
        here.secret(OWN, "e2b-key", apiKey="wrong")
        here.wait_for("refused", lambda: reason() == "CredentialsRejected")
        here.sandbox("box")
        here.secret(OWN, "e2b-key", apiKey=here.provider.key + "\n")  # As it is made of a file.
        here.wait_ready("box")
        assert reason() == "CredentialsAccepted"
        here.remove("box")
        here.wait_gone()


def test_what_was_given_up_is_tried_once_more_when_asked_for():  # I-4XX
    # The first lease is longer than this provider lets a sandbox run.
    with cluster_world("--max-run-seconds", "60") as here, here.replica("one"):
        here.wait_for("the provider", lambda: here.provider_condition("Ready").get("status") == "True")
        here.sandbox("box")
        here.wait_for("it is given up", lambda: here.condition("box", "Stalled").get("reason") == "RejectedByProvider")
        polled = len(here.calls("GET"))
        here.wait_for("two more polls", lambda: len(here.calls("GET")) >= polled + 2)
        assert len(here.created()) == 1, here.calls()
        here.annotate("box", "sandfleet.dev/reconcile-requested-at", "now")
        here.wait_for("another try", lambda: len(here.created()) == 2)
        here.remove("box")
        here.wait_gone()


def test_cuts_on_the_way_to_the_api_server_lose_nothing():  # I-ONE, I-STALE
    with cluster_world() as here, Wire(here.cluster.port) as wire:
        names = [f"box-{number}" for number in range(4)]
        with here.replica("one", "--lease-seconds", "6", wire=wire):
            for name in names:
                here.sandbox(name)
                wire.drop()
            here.wait_ready(*names)
            # The server's memory goes while nobody can ask it: a watch from before is too old.
            assert wire.cut() > 0
            here.remove(names[0])
            here.cluster.api_server.kill()
            here.cluster.compact()
            here.cluster.start_api_server()
            here.sandbox("late")
            wire.mend()
            here.wait_ready("late", *names[1:])
            here.wait_for("the deleted one gone", lambda: here.look(names[0]) is None)
            assert len(here.created()) == len(names) + 1, here.calls()
            here.remove("late", *names[1:])
            here.wait_gone()


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


def in_any_second(events):
    """The most of these audit events that came within one second."""
    times = [datetime.datetime.fromisoformat(each["requestReceivedTimestamp"]).timestamp() for each in events]
    return max((sum(begin <= time < begin + 1 for time in times) for begin in times), default=0)


def test_an_api_server_that_is_long_away_costs_no_sandbox_and_meets_no_storm_when_back():  # I-HB, I-LEAD
    """Ten minutes in small: three times as long as a controller's lease lasts, and longer than a sandbox lives by itself."""
    names = [f"box-{number}" for number in range(4)]
    paused, removed, longer, quiet = names
    lease_s, away_s = 15, 18
    with cluster_world() as here, Wire(here.cluster.port) as wire, contextlib.ExitStack() as controllers:
        replicas = [controllers.enter_context(here.replica(each, "--lease-seconds", "6", wire=wire)) for each in ("first", "second")]
        for name in names:
            here.sandbox(name, keepAlive={"timeoutSeconds": lease_s, "heartbeatSeconds": 5})
        boxes = here.wait_ready(*names)
        done, written, asked = len(here.calls("POST", "DELETE")), here.writes(quiet), wire.turned_away
        wire.cut()
        back = time.monotonic() + away_s
        # The controllers are cut off from it; people are not, and then it is gone for them too, with all its past.
        here.change(paused, desiredState="Paused")
        here.remove(removed)
        here.change(longer, keepAlive={"timeoutSeconds": 60})
        here.sandbox("late")
        here.cluster.api_server.kill()
        here.cluster.compact()
        here.cluster.start_api_server()
        while time.monotonic() < back:
            running = {box for box, each in here.provider.sandboxes().items() if each["state"] == "running"}
            assert running == set(boxes.values()), here.story()
            time.sleep(0.5)
        assert not any(each.acts() for each in replicas), here.story()
        meanwhile = here.calls("POST", "DELETE")[done:]
        assert len(meanwhile) >= len(names) * 3 and all(call.endswith("/refreshes") for call in meanwhile), meanwhile
        # Who waits for it asks a few times a second: leases last 6 s here, of which each asks for one.
        assert 0 < wire.turned_away - asked < 5 * away_s * len(replicas), wire.turned_away - asked

        assert any(world.sum_of(each.series(), "leader_election_slowpath_total", name="sandfleet-0-of-1") > 0 for each in replicas)

        before = len(here.cluster.requests(USER))
        wire.mend()
        here.wait_for("paused", lambda: here.condition(paused, "Paused").get("status") == "True")
        here.wait_ready("late", longer, quiet)
        here.wait_for("the removed one gone", lambda: here.look(removed) is None)
        here.wait_for("the longer lease", lambda: here.status(longer)["observedGeneration"] == 2)
        requests = here.cluster.requests(USER)[before:]
        ours = [each for each in requests if each["objectRef"].get("apiGroup") == "sandfleet.dev"]
        # Each controller asks how far the server is, and then, as its past is gone, for each collection once more.
        assert sum(each["verb"] == "list" for each in ours) <= 6 * len(replicas), ours
        watches = {each["auditID"] for each in ours if each["verb"] == "watch"}  # Its beginning and its end are two events.
        assert len(watches) <= 6 * len(replicas), ours
        changed = [each for each in ours if each["verb"] in WRITES]
        assert len(changed) <= 20, changed
        assert here.writes(quiet) == written, here.writes(quiet)
        assert in_any_second(requests) <= 60, in_any_second(requests)
        assert {name: here.status(name)["sandboxID"] for name in (paused, longer, quiet)} == {
            name: boxes[name] for name in (paused, longer, quiet)}
        assert len(here.created()) == len(names) + 1, here.calls()
        here.remove("late", paused, longer, quiet)
        here.wait_gone()


def test_rights_that_are_taken_away_are_named_and_those_given_back_are_used():
    with cluster_world() as here, here.replica("one", "--lease-seconds", "6") as replica:
        here.sandbox("box", keepAlive={"timeoutSeconds": 15, "heartbeatSeconds": 5})
        box = here.wait_ready("box")["box"]

        # One of them.
        without_status = [each for each in CLUSTER_RULES if "sandboxes/status" not in each["resources"]]
        here.regrant("clusterroles/controller", without_status)
        here.change("box", desiredState="Paused")
        here.wait_for("it is said", lambda: replica.warned("a status was not written") > 0)
        assert replica.warned('cannot patch resource \\"sandboxes/status\\"') > 0, replica.program.output()
        # What is not on record is not done.
        assert here.provider.sandboxes()[box]["state"] == "running"
        here.regrant("clusterroles/controller", CLUSTER_RULES)
        here.wait_for("paused", lambda: here.condition("box", "Paused").get("status") == "True")
        here.change("box", desiredState="Running")
        here.wait_ready("box")

        # All of them: its watches go on until they end; a cut ends them.
        done, before = len(here.calls("POST", "DELETE")), len(here.cluster.requests(USER))
        here.regrant("clusterroles/controller", [])
        here.regrant(f"namespaces/{OWN}/roles/own", [])
        here.cluster.api_server.kill()
        here.cluster.start_api_server()
        here.wait_for("it holds no lease", lambda: not replica.acts())
        for words in ("A lease cannot be read", 'cannot get resource \\"leases\\"', "The mirror of a collection was cut off",
                      'cannot list resource \\"sandboxes\\"', "the right to list sandboxes.sandfleet.dev in the whole cluster is missing"):
            here.wait_for(words, lambda: replica.warned(words) > 0)
        until = time.monotonic() + 18  # Longer than the box lives by itself.
        while time.monotonic() < until:
            assert here.provider.sandboxes()[box]["state"] == "running", replica.program.output()
            time.sleep(0.5)
        refused = [each for each in here.cluster.requests(USER)[before:] if each.get("responseStatus", {}).get("code") == 403]
        assert refused and in_any_second(refused) <= 10, in_any_second(refused)
        assert all(call.endswith("/refreshes") for call in here.calls("POST", "DELETE")[done:]), here.calls()[done:]
        assert replica.warned("A lease cannot be read") < 5, "said over and over"
        here.regrant("clusterroles/controller", CLUSTER_RULES)
        here.regrant(f"namespaces/{OWN}/roles/own", OWN_RULES)
        here.remove("box")
        here.wait_gone()


WRONG_SECRETS = (  # What the Secret holds, and what is said of it.
    (None, "CredentialsMissing", "there is no Secret sandfleet-system/keys; create it: kubectl -n sandfleet-system create secret "
     "generic keys --from-literal=apiKey=..."),
    ({"token": "x"}, "CredentialsMissing", 'the Secret sandfleet-system/keys has no key "apiKey", but token; add it, or refer to '
     "another key"),
    ({"apiKey": ""}, "CredentialsInvalid", "Secret sandfleet-system/keys (apiKey) holds no API key"),
    ({"apiKey": " \n"}, "CredentialsInvalid", "Secret sandfleet-system/keys (apiKey) holds no API key"),
    ({"apiKey": "CANARY\nx"}, "CredentialsInvalid", "the API key in Secret sandfleet-system/keys (apiKey) has a line break after its "
     "first 6 characters, and no key has one: it is one line"),
)


def test_a_secret_that_is_wrong_is_named_with_what_to_do():
    with cluster_world() as here:
        for each in range(len(WRONG_SECRETS)):
            here.create(f"{GROUP}/sandboxproviders", {"metadata": {"name": f"p-{each}"}, "spec": here.provider_spec(
                credentialsSecretRef={"name": f"keys-{each}"})})
            here.sandbox(f"box-{each}", providerRef={"name": f"p-{each}"})
            if WRONG_SECRETS[each][0] is not None:
                here.secret(OWN, f"keys-{each}", **WRONG_SECRETS[each][0])
        with here.replica("one"):
            for each, (_, reason, words) in enumerate(WRONG_SECRETS):
                words = words.replace("keys", f"keys-{each}")
                for look in (lambda: here.condition(f"box-{each}"), lambda: here.provider_condition("Ready", f"p-{each}"),
                             lambda: here.provider_condition("CredentialsValid", f"p-{each}")):
                    told = here.wait_for(words, lambda: look() if look().get("reason") == reason else None)
                    assert (told["status"], told["message"]) == ("False", words), told
            assert not here.created()
            # All of them are put right by what was said.
            for each in range(len(WRONG_SECRETS)):
                here.secret(OWN, f"keys-{each}", apiKey=here.provider.key)
            names = [f"box-{each}" for each in range(len(WRONG_SECRETS))]
            here.wait_ready(*names)
            here.remove(*names)
            here.wait_gone()


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
