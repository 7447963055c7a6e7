"""Promises of the controller that only a real API server can put to the test: what it does when it may not write, when
others take its place in the middle, and when its records go. Nothing runs in these sandboxes. Run one test:
guarantee_test.py NAME; without a name: their names."""

import collections
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster_world import BOOKS, CLUSTER_RULES, GROUP, GROUPS, MERGE, TEAM, USER, cluster_world, world  # noqa: E402

ROLE = "clusterroles/controller"


def allow_all_but_patches_of(here, resource):
    """Afterwards a patch of that is refused to controllers, which then run: none would begin."""
    rules = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "patch" or resource not in rule["resources"]]}
             for rule in CLUSTER_RULES]
    here.regrant(ROLE, [rule for rule in rules if rule["verbs"]])
    path = f"{GROUP}/namespaces/{TEAM}/sandboxes/nobody" + ("/status" if resource.endswith("/status") else "")
    world.wait_until("it to hold", lambda: here.cluster.ask("PATCH", path, {}, MERGE, user=USER, groups=GROUPS).status == 403)


def allow_all(here):
    here.regrant(ROLE, CLUSTER_RULES)


def refused(here, name):
    return sum(each.endswith("403") for each in here.writes(name))


class Observer:
    """Looks all the time whether any Sandbox has two E2B sandboxes."""

    def __init__(self, provider):
        self.provider, self.looks, self.doubles, self.ending = provider, 0, [], False
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self):
        while not self.ending:
            owners = collections.Counter(each["metadata"].get("sandfleet.uid") for each in self.provider.sandboxes().values())
            self.doubles += [uid for uid, count in owners.items() if count > 1]
            self.looks += 1
            time.sleep(0.02)

    def end(self):
        assert self.thread.is_alive(), "it stopped looking"
        self.ending = True
        self.thread.join()
        assert self.looks > 10 and not self.doubles, (self.looks, self.doubles)


def test_without_the_right_to_write_an_intent_nothing_is_created():  # I-FIN, I-INTENT
    with cluster_world(BOOKS) as here:
        with here.replica("one"):
            allow_all_but_patches_of(here, "sandboxes")
            here.sandbox("box")
            here.wait_for("two tries", lambda: refused(here, "box") >= 2)
            assert not here.created() and not here.provider.sandboxes(), here.calls()
            allow_all(here)
            here.wait_ready("box")
            assert len(here.created()) == 1, here.calls()
            here.remove("box")
            here.wait_gone()


def test_what_cannot_be_bound_for_a_while_is_bound_and_not_made_again():  # I-BIND, I-ONE
    with cluster_world(BOOKS) as here:
        first = here.replica("first", "--lease-seconds", "6").start()
        here.wait_for("a leader", first.acts)
        with here.replica("second", "--lease-seconds", "6"):
            allow_all_but_patches_of(here, "sandboxes/status")
            here.sandbox("box")
            here.wait_for("two tries", lambda: refused(here, "box") >= 2)
            made = list(here.provider.sandboxes())
            assert len(made) == 1, made
            first.program.kill()  # Who comes next knows of it by the provider's list alone.
            before = refused(here, "box")
            here.wait_for("a try of the next", lambda: refused(here, "box") > before)
            allow_all(here)
            assert here.wait_ready("box") == {"box": made[0]}
            assert len(here.created()) == 1, here.calls()
            here.remove("box")
            here.wait_gone()


def test_controllers_that_crash_in_turn_make_one_sandbox_each():  # I-ONE, I-AMBIG, I-RESYNC
    with cluster_world(BOOKS, "--fault", "create:lost-reply:p=0.3", "--fault", "create:latency:ms=100") as here:
        pair = [here.replica(name, "--lease-seconds", "3").start() for name in ("first", "second")]
        observer = Observer(here.provider)
        names = [f"box-{number}" for number in range(24)]
        for turn in range(4):
            for name in names[6 * turn:6 * turn + 6]:
                here.sandbox(name)
            leader = here.wait_for("a leader", lambda: next((each for each in pair if each.program.alive() and each.acts()), None))
            here.wait_for("work under way", lambda: leader.said("action=Create") > 0)
            leader.program.kill()
            (leader.folder / "log").unlink()
            leader.start()
        boxes = here.wait_ready(*names)
        observer.end()
        assert set(boxes.values()) == set(here.provider.sandboxes()), (boxes, here.provider.sandboxes())
        here.remove(*names)
        here.wait_gone()
        assert len(here.created()) >= len(names)


def test_a_name_that_is_used_again_gets_a_sandbox_of_its_own():  # I-UID, I-ORPH, I-FOREIGN
    with cluster_world(BOOKS) as here:
        others = [here.provider.ask("POST", "/v2/sandboxes", {"templateID": "base", "metadata": metadata})[1]["sandboxID"]
                  for metadata in ({}, {"sandfleet.fleet": "another", "sandfleet.uid": "uid-1"})]
        replica = here.replica("one", "--sweep-seconds", "1", "--grace-seconds", "1", "--lease-seconds", "3").start()
        here.sandbox("box")
        old = here.wait_ready("box")["box"]
        # Gone without a word to anybody, and there again.
        replica.program.kill()
        path = f"{GROUP}/namespaces/{TEAM}/sandboxes/box"
        assert here.cluster.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE).status == 200
        here.remove("box")
        here.sandbox("box")
        with replica:
            new = here.wait_ready("box")["box"]
            assert new != old
            here.wait_for("the orphan to be killed", lambda: old not in here.provider.sandboxes())
            assert set(here.provider.sandboxes()) == {new, *others}, here.provider.sandboxes()
            here.remove("box")
            here.wait_for("its end", lambda: not here.names() and set(here.provider.sandboxes()) == set(others))


def test_what_is_deleted_while_it_is_made_leaves_nothing():  # I-DELRACE
    # The API server may remove an object that had no finalizer in the moment in which it takes one: then it is the sweep
    # that ends what was made.
    sweeping = ("--sweep-seconds", "1", "--grace-seconds", "1")
    with cluster_world(BOOKS, "--fault", "create:latency:ms=400") as here, here.replica("one", *sweeping):
        names = [f"box-{number}" for number in range(10)]
        for name in names:
            here.sandbox(name)
        for name in names:  # At ten moments of ten creates.
            here.remove(name)
            time.sleep(0.08)
        here.wait_gone()
        killed = [call for call in here.calls("DELETE") if "/sandboxes/" in call]
        assert len(here.created()) <= len(names) and len(killed) >= len(here.created()), here.calls()


def test_a_sandbox_that_outlives_its_kill_keeps_its_object():  # I-DEL
    with cluster_world(BOOKS, "--fault", "kill:late-effect:ms=5000:count=3") as here, here.replica("one"):
        here.sandbox("box")
        here.wait_ready("box")
        here.remove("box")
        here.wait_for("its end", lambda: here.look("box") is None)
        assert not here.provider.sandboxes(), "the object went first: " + here.story()


def test_what_finds_no_room_waits_without_a_stir_and_comes_when_there_is():  # I-429Q, I-NOFLAP
    with cluster_world(BOOKS, "--max-sandboxes", "2") as here, here.replica("one"):
        names = [f"box-{number}" for number in range(5)]
        for name in names:
            here.sandbox(name)
        ready = lambda: [name for name in here.names() if here.condition(name).get("status") == "True"]  # noqa: E731
        here.wait_for("as many as there is room for", lambda: len(ready()) == 2)
        waiting = [name for name in names if name not in ready()]
        here.wait_for("it is said", lambda: all(here.condition(name).get("reason") == "ProviderQuotaExceeded" for name in waiting))
        before, asked = sum(len(here.writes(name)) for name in waiting), len(here.created())
        quiet_until = time.monotonic() + 5
        while time.monotonic() < quiet_until:
            written = sum(len(here.writes(name)) for name in waiting) - before
            assert written <= len(waiting), [here.writes(name) for name in waiting]
            time.sleep(0.2)
        assert len(here.created()) - asked <= 1, here.calls("POST")
        removed = ready()[0]
        here.remove(removed)
        # By the hold of the provider alone, it would take half a minute.
        here.wait_for("the next one", lambda: removed not in here.names() and len(ready()) == 2, deadline_s=20)
        here.remove(*here.names())
        here.wait_gone()


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
