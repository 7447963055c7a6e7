"""That tests can rely on a Kubernetes of their own: several at once, crashes of its parts, users, and nothing
left behind. Run one test: control_plane_test.py NAME; without a name: their names."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from control_plane import WRITES, ControlPlane, tools, world  # noqa: E402
from world import wait_until  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"


@contextlib.contextmanager
def folder_that_is_left_alone():
    with world.temporary_folder("kubernetes") as folder:
        yield folder
        assert not world.processes_of(folder), f"processes left: {world.processes_of(folder)}"


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def create(cluster, name):
    made = cluster.ask("POST", MAPS, config_map(name))
    assert made.status == 201, made
    return made.body["metadata"]


def names(cluster, path):
    listed = cluster.ask("GET", path)
    assert listed.status == 200, listed
    return {item["metadata"]["name"] for item in listed.body["items"]}


def helm(kubeconfig, *arguments):
    """A client of Kubernetes' own making, as the file's user: (exit code, what it printed)."""
    done = subprocess.run([tools() / "helm", "--kubeconfig", kubeconfig, *arguments], capture_output=True, text=True,
                          env={**os.environ, "HOME": str(kubeconfig.parent)}, timeout=30)
    return done.returncode, done.stdout + done.stderr


def test_two_run_at_once_and_leave_nothing_behind():
    with folder_that_is_left_alone() as folder:
        with ControlPlane(folder / "one") as one, ControlPlane(folder / "two") as two:
            create(one, "only-here")
            assert "only-here" in names(one, MAPS) and "only-here" not in names(two, MAPS)
            assert one.ask("GET", "/version").body["gitVersion"].startswith("v1.")
            assert len(world.processes_of(folder)) == 4, world.processes_of(folder)


def test_killed_parts_come_back_with_their_data():
    with folder_that_is_left_alone() as folder, ControlPlane(folder / "cluster") as cluster:
        kubeconfig, url = cluster.kubeconfig(), cluster.url
        first = create(cluster, "before")
        cluster.api_server.kill()
        cluster.start_api_server()
        assert cluster.url == url and "before" in names(cluster, MAPS)
        assert helm(kubeconfig, "list")[0] == 0
        cluster.etcd.kill()
        cluster.start_etcd()
        cluster.wait_ready()
        assert cluster.ask("GET", f"{MAPS}/before").body["metadata"]["uid"] == first["uid"]
        create(cluster, "after")


def test_compacted_history_is_gone_after_a_restart():
    with folder_that_is_left_alone() as folder, ControlPlane(folder / "cluster") as cluster:
        old = create(cluster, "one")["resourceVersion"]
        new = create(cluster, "two")["resourceVersion"]
        watch_from_old = f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={old}"
        seen = cluster.ask("GET", watch_from_old).body  # One event, so one JSON document.
        assert (seen["type"], seen["object"]["metadata"]["name"]) == ("ADDED", "two"), seen
        assert cluster.compact() >= int(new)
        cluster.api_server.kill()
        cluster.start_api_server()
        told = cluster.ask("GET", watch_from_old).body
        assert (told["type"], told["object"]["code"]) == ("ERROR", 410), told


def test_everybody_has_a_kubeconfig_and_their_writes_are_counted():
    with folder_that_is_left_alone() as folder, ControlPlane(folder / "cluster") as cluster:
        assert helm(cluster.kubeconfig(), "list", "--all-namespaces")[0] == 0
        code, said = helm(cluster.kubeconfig("alice", groups=["readers"]), "list")
        assert code != 0 and 'User "alice" cannot list' in said, said
        assert cluster.ask("GET", MAPS, user="alice", groups=["readers"]).status == 403
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        assert cluster.ask("POST", "/api/v1/namespaces/default/serviceaccounts", account).status == 201
        code, said = helm(cluster.account_kubeconfig("default", "robot"), "list")
        assert code != 0 and 'User "system:serviceaccount:default:robot" cannot list' in said, said
        before = len(cluster.requests("admin", WRITES))
        create(cluster, "counted")
        names(cluster, MAPS)
        written = [(event["verb"], event["objectRef"]["name"]) for event in cluster.requests("admin", WRITES)[before:]]
        assert written == [("create", "counted")], written
        assert cluster.requests("alice") and not cluster.requests("alice", WRITES)
        assert 'apiserver_request_total{' in cluster.metrics()


def test_controllers_work_where_they_are_asked_for():
    with folder_that_is_left_alone() as folder, ControlPlane(folder / "cluster", controllers=True) as cluster:
        made = cluster.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        assert made.status == 201, made
        wait_until("the account of a namespace", lambda: "default" in names(cluster, "/api/v1/namespaces/team/serviceaccounts"))
        owner = create(cluster, "owner")
        owned = config_map("owned")
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}]
        assert cluster.ask("POST", MAPS, owned).status == 201
        assert cluster.ask("DELETE", f"{MAPS}/owner").status == 200
        wait_until("what it owned to go too", lambda: "owned" not in names(cluster, MAPS))
        assert cluster.ask("DELETE", "/api/v1/namespaces/team").status == 200
        wait_until("the namespace to go", lambda: "team" not in names(cluster, "/api/v1/namespaces"))


def test_it_ends_with_whoever_started_it():
    with folder_that_is_left_alone() as folder:
        script = ("import signal, sys; from control_plane import ControlPlane; "
                  "ControlPlane(sys.argv[1]); print('ready', flush=True); signal.pause()")
        owner = subprocess.Popen([sys.executable, "-B", "-c", script, folder / "cluster"], stdout=subprocess.PIPE,
                                 env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent)})
        with owner:
            assert owner.stdout.readline() == b"ready\n"
            assert len(world.processes_of(folder)) == 3, world.processes_of(folder)
            owner.send_signal(signal.SIGKILL)
        wait_until(lambda: f"all to end: {world.processes_of(folder)}", lambda: not world.processes_of(folder))


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
