"""The chart on a real node, with our image and our provider: installed in a namespace as strict as can be, upgraded by what
that one does not allow, agentd and its socket, used by pods, rolled back, uninstalled and installed again, and its sandboxes
all the while. Runs in the network of scripts/cluster."""

import http.client
import json
import os
import socket
import ssl
import sys

import chart
from chart import CHART, SPACE, helm, kubectl, run, sandbox, story, wait_ready, world
import node

VALUES = """\
image: {{repository: {image[0]}, tag: "{image[1]}", pullPolicy: Never}}
controller: {{pollSeconds: 2}}
agentd: {{enabled: false}}
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
        run(world.REPO / "scripts/image", "file", world.programs_folder() / "sandfleet", "--name", chart.HARNESS, "--output", harness)
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


def harness(name, *command, group=65532):
    """Its pod, of the example, made; its account is of its name."""
    pod = yaml_of_the_example()[-1].replace("[sandfleet, exec, default/hello, --, uname, -a]",
                                            json.dumps(["sandfleet", "exec", "default/hello", "--", *command]))
    # The program under test has sanitizers; one of them wants to trace.
    pod = pod.replace("      env:\n", '      env:\n        - {name: ASAN_OPTIONS, value: "detect_leaks=0"}\n')
    pod = pod.replace("name: harness\nspec:\n  serviceAccountName: harness\n", f"name: {name}\nspec:\n  serviceAccountName: {name}\n")
    pod = pod.replace("supplementalGroups: [65532]", f"supplementalGroups: [{group}]")
    kubectl("apply", "-f", "-", given=pod.replace("registry.example.com/your/harness", chart.HARNESS))


def yaml_of_the_example():
    return (world.REPO / "examples/kubernetes/harness.yaml").read_text().split("---\n")


def work_through_agentd(provider, box):
    """Pods on agentd's node: one whose account may attach, also while agentd is exchanged, one whose account may not, and one
    whose group the socket does not let in."""
    account, right, _ = yaml_of_the_example()
    kubectl("apply", "-f", "-", given=f"{account}---\n{right}")
    for refused in ("stranger", "outsider"):
        kubectl("create", "serviceaccount", refused)
    harness("stranger", "true")
    harness("outsider", "true", group=65531)
    harness("harness", "sh", "-c", "mkfifo /tmp/gate; echo begun; cat /tmp/gate; echo done")
    wait_ready("pod/harness")
    world.wait_until(lambda: f"a command in the sandbox\n{story()}", lambda: kubectl("logs", "harness") == "begun\n", 90)
    kubectl("-n", SPACE, "rollout", "restart", "daemonset/sandfleet-agentd")
    kubectl("-n", SPACE, "rollout", "status", "daemonset/sandfleet-agentd", "--timeout=120s")
    assert world.run_inside(provider, box, "echo through > /tmp/gate")[0] == 0
    said, code = ended("harness", "Succeeded")
    assert (said, code) == ("begun\nthrough\ndone\n", 0), f"{said}\n{story()}"
    said, code = ended("stranger", "Failed")
    assert code == 125 and "system:serviceaccount:default:stranger may not create sandboxes/attach" in said, said
    said, code = ended("outsider", "Failed")
    assert code == 125 and "/run/sandfleet/agentd.sock: Permission denied" in said, said
    kubectl("delete", "pod", "harness", "stranger", "outsider", "--grace-period=1")


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
