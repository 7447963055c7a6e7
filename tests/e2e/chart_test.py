"""The chart on a real node, with our image and our provider: installed in a namespace as strict as can be, upgraded by what
that one does not allow, agentd and its socket, used by pods, rolled back, uninstalled and installed again, and its sandboxes
all the while. Runs in the network of scripts/cluster."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import sys

import chart
from chart import CHART, SPACE, helm, kubectl, run, sandbox, story, wait_ready, world
import node

VALUES = """\
image: {{repository: {image[0]}, tag: "{image[1]}", pullPolicy: Never}}
controller: {{pollSeconds: 2}}
agentd: {{enabled: false, extraArgs: [--check-seconds=1]}}
networkPolicy: {{egressPorts: [443, 6443, {ports[0]}, {ports[1]}]}}
provider:
  api: {{url: "http://{node}:{ports[0]}"}}
  data: {{url: "http://{node}:{ports[1]}", routing: Header}}
  credentialsSecretRef: {{name: e2b}}
  settleSeconds: 5
"""
RESTRICTED, PRIVILEGED = (f"pod-security.kubernetes.io/enforce={each}" for each in ("restricted", "privileged"))


def test_image():
    """Ours, made of the programs under test, on the node."""
    with world.temporary_folder("e2e-image") as folder:
        ours, harness = folder / "controller.tar", folder / "harness.tar"
        run(world.REPO / "scripts/image", "controller", "--bin", world.programs_folder(), "--name", chart.image_named_in_readme(),
            "--output", ours)
        run(world.REPO / "scripts/image", "file", world.programs_folder() / "sandfleet", "--name", chart.harness_image(), "--output", harness)
        run(world.REPO / "scripts/cluster", "load", "--dir", os.environ["CLUSTER"], ours, harness)


def ask_for_the_way_in(name):
    """As whoever may attach in the sandbox's namespace does, by the words of the chart's notes."""
    kubectl("create", "serviceaccount", "visitor")
    kubectl("create", "rolebinding", "attach", f"--clusterrole={SPACE}-sandfleet-attach", "--serviceaccount=default:visitor")
    token = kubectl("create", "token", "visitor", "--audience=sandfleet.dev/attach").strip()
    trust = kubectl("-n", SPACE, "get", "configmap", "sandfleet-attach-ca", "-o", r"jsonpath={.data.ca\.crt}")
    address = kubectl("-n", SPACE, "get", "service", "sandfleet-attach", "-o", "jsonpath={.spec.clusterIP}")
    dialled = f"sandfleet-attach.{SPACE}.svc"
    connection = http.client.HTTPConnection(dialled)
    with socket.create_connection((address, 443), timeout=30) as bare, \
            ssl.create_default_context(cadata=trust).wrap_socket(bare, server_hostname=dialled) as connection.sock:
        connection.request("POST", "/v1/attach", json.dumps({"namespace": "default", "name": name}),
                           {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        assert answer.status == 200, f"{told}\n{story()}"
        return told


def ended(pod, phase):
    """What it said, and its exit code."""
    kubectl("wait", f"--for=jsonpath={{.status.phase}}={phase}", "--timeout=90s", f"pod/{pod}")
    code = kubectl("get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}")
    return kubectl("logs", pod), int(code)


def harness(name, *command, account=None, group=65532):
    """Its pod, of the example, made; its account is of its name unless given."""
    pod = yaml_of_the_example()[-1].replace("[sandfleet, exec, default/hello, --, uname, -a]",
                                            json.dumps(["sandfleet", "exec", "default/hello", "--", *command]))
    pod = chart.of_the_programs_under_test(pod)
    pod = pod.replace("name: harness\nspec:\n  serviceAccountName: harness\n", f"name: {name}\nspec:\n  serviceAccountName: {account or name}\n")
    pod = pod.replace("supplementalGroups: [65532]", f"supplementalGroups: [{group}]")
    kubectl("apply", "-f", "-", given=pod.replace("registry.example.com/your/harness", chart.harness_image()))


def yaml_of_the_example():
    return (world.REPO / "examples/kubernetes/harness.yaml").read_text().split("---\n")


def begin(name, account):
    """A harness's pod whose command is at work in the sandbox until somebody opens its gate."""
    harness(name, "sh", "-c", f"mkfifo /tmp/{name}; echo begun; cat /tmp/{name}; echo done", account=account)


def has_begun(name):
    wait_ready(f"pod/{name}")
    world.wait_until(lambda: f"a command in the sandbox\n{story()}", lambda: kubectl("logs", name) == "begun\n", 90)


def go_through(provider, box, name):
    assert world.run_inside(provider, box, f"echo through > /tmp/{name}")[0] == 0
    said, code = ended(name, "Succeeded")
    assert (said, code) == ("begun\nthrough\ndone\n", 0), f"{said}\n{story()}"


def exchange_agentd():
    kubectl("-n", SPACE, "rollout", "restart", "daemonset/sandfleet-agentd")
    kubectl("-n", SPACE, "rollout", "status", "daemonset/sandfleet-agentd", "--timeout=120s")


def pause_and_resume(name):
    for desired, condition in (("Paused", "Paused"), ("Running", "Ready")):
        kubectl("patch", "sandboxes.sandfleet.dev", name, "--type=merge", "-p", json.dumps({"spec": {"desiredState": desired}}))
        kubectl("wait", f"--for=condition={condition}", "--timeout=60s", f"sandboxes.sandfleet.dev/{name}")


def leader():
    """The pod that has the lease."""
    return kubectl("-n", SPACE, "get", "leases", "-o", "jsonpath={.items[0].spec.holderIdentity}").split("_")[0]


def kill_the_leader():
    """As a crash, and wait for the other one to take over."""
    before = leader()
    uid = kubectl("-n", SPACE, "get", "pod", before, "-o", "jsonpath={.metadata.uid}")
    killed = [pid for pid in pathlib.Path("/proc").glob("[0-9]*") if is_controller_of(pid, uid)]
    assert len(killed) == 1, (before, killed, story())
    os.kill(int(killed[0].name), signal.SIGKILL)
    world.wait_until(lambda: f"another leader than {before}\n{story()}", lambda: leader() not in ("", before), 60, 0.5)


def is_controller_of(process, pod_uid):
    with contextlib.suppress(OSError):
        of_pod = re.search(pod_uid.replace("-", "[-_]"), (process / "cgroup").read_text())
        return bool(of_pod) and (process / "comm").read_text().startswith("sandfleet-contr")
    return False


def work_through_agentd(provider, box):
    """Pods on agentd's node. Two whose account may attach work on while agentd is exchanged, their sandbox is paused and the
    leading controller killed, until one's right is taken away; others may not attach, or are of a group that the socket does not
    let in."""
    account, right, _ = yaml_of_the_example()
    kubectl("apply", "-f", "-", given=f"{account}---\n{right}")
    for another in ("stranger", "outsider", "guest"):
        kubectl("create", "serviceaccount", another)
    kubectl("create", "rolebinding", "guest", f"--clusterrole={SPACE}-sandfleet-attach", "--serviceaccount=default:guest")
    harness("stranger", "true")
    harness("outsider", "true", group=65531)
    begin("worker", account="harness")
    begin("visitor", account="guest")
    has_begun("worker")
    has_begun("visitor")
    exchange_agentd()
    pause_and_resume("hello")
    kill_the_leader()
    begin("latecomer", account="harness")
    has_begun("latecomer")
    for each in ("worker", "latecomer"):
        go_through(provider, box, each)
    kubectl("delete", "rolebinding", "guest")
    said, code = ended("visitor", "Failed")
    assert code == 255 and "system:serviceaccount:default:guest may not create sandboxes/attach" in said, f"{said}\n{story()}"
    said, code = ended("stranger", "Failed")
    assert code == 125 and "system:serviceaccount:default:stranger may not create sandboxes/attach" in said, said
    said, code = ended("outsider", "Failed")
    assert code == 125 and "/run/sandfleet/agentd.sock: Permission denied" in said, said
    kubectl("delete", "pod", "worker", "visitor", "latecomer", "stranger", "outsider", "--grace-period=1")


def story_of_a_release(folder, provider):
    (folder / "larger.yaml").write_text(chart.LARGER)
    (folder / "values.yaml").write_text(VALUES.format(
        image=chart.image_named_in_readme().split(":"), node=node.ADDRESS, ports=provider.ports))
    values = ["-f", folder / "larger.yaml", "-f", folder / "values.yaml"]
    kubectl("create", "namespace", SPACE)
    kubectl("label", "namespace", SPACE, RESTRICTED)
    kubectl("-n", SPACE, "create", "secret", "generic", "e2b", f"--from-literal=apiKey={provider.key}")
    helm("install", CHART, *values, "--wait")
    kubectl("label", "namespace", SPACE, PRIVILEGED, "--overwrite")
    helm("upgrade", CHART, *values, "--set", "provider.create=true,agentd.enabled=true", "--wait")
    wait_ready("sandboxproviders.sandfleet.dev/default")
    kubectl("apply", "-f", world.REPO / "examples/sandbox.yaml")
    wait_ready("sandboxes.sandfleet.dev/hello")
    live = sandbox("hello")["status"]["sandboxID"]
    assert set(provider.sandboxes()) == {live}, provider.sandboxes()
    assert ask_for_the_way_in("hello")["sandboxID"] == live
    work_through_agentd(provider, live)

    # To before there was a provider, and agentd: other pods, and what has live sandboxes stays.
    helm("rollback", "1", "--wait")
    wait_ready("sandboxes.sandfleet.dev/hello")
    wait_ready("sandboxproviders.sandfleet.dev/default")
    assert sandbox("hello")["status"]["sandboxID"] == live
    assert set(provider.sandboxes()) == {live}, "a roll-out replaced a sandbox"

    helm("uninstall", "--wait")
    kubectl("get", "crd", "sandboxes.sandfleet.dev", "sandboxproviders.sandfleet.dev")
    assert sandbox("hello")["status"]["sandboxID"] == live
    assert set(provider.sandboxes()) == {live}, "an uninstall touched a sandbox"

    # A release of the same name knows its sandboxes again.
    helm("install", CHART, *values, "--wait", "--timeout=100s")
    kubectl("delete", "sandboxes.sandfleet.dev", "hello", "--timeout=60s")
    assert not provider.sandboxes(), provider.sandboxes()


def test_release():
    with world.temporary_folder("e2e") as folder:
        with world.Provider(folder / "provider", "--listen", "0.0.0.0", "--listen-any") as provider:
            story_of_a_release(folder, provider)


world.run_test_named_by(sys.argv[1:], globals())
