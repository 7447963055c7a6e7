"""The chart on a real node, with our image and our provider: installed in a namespace as strict as can be, used, upgraded,
rolled back, uninstalled and installed again, and its sandboxes all the while. Runs in the network of scripts/cluster."""

import http.client
import json
import os
import socket
import ssl
import sys

import chart
from chart import CHART, SPACE, helm, kubectl, run, sandbox, wait_ready, world
import node

VALUES = """\
image: {{repository: {image[0]}, tag: "{image[1]}", pullPolicy: Never}}
controller: {{pollSeconds: 2}}
networkPolicy: {{egressPorts: [443, 6443, {ports[0]}, {ports[1]}]}}
provider:
  api: {{url: "http://{node}:{ports[0]}"}}
  data: {{url: "http://{node}:{ports[1]}", routing: Header}}
  credentialsSecretRef: {{name: e2b}}
  settleSeconds: 5
"""
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


def test_image():
    """Ours, made of the programs under test, on the node."""
    with world.temporary_folder("e2e-image") as folder:
        tar = folder / "controller.tar"
        run(world.REPO / "scripts/image", "controller", "--bin", world.programs_folder(), "--name", chart.image_named_in_readme(),
            "--output", tar)
        run(world.REPO / "scripts/cluster", "load", "--dir", os.environ["CLUSTER"], tar)


def ask_for_the_way_in(name):
    """As a harness in the sandbox's namespace does, by the words of the chart's notes."""
    kubectl("create", "serviceaccount", "harness")
    kubectl("create", "rolebinding", "attach", f"--clusterrole={SPACE}-sandfleet-attach", "--serviceaccount=default:harness")
    token = kubectl("create", "token", "harness", "--audience=sandfleet.dev/attach").strip()
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


def story_of_a_release(folder, provider):
    (folder / "larger.yaml").write_text(chart.LARGER)
    (folder / "values.yaml").write_text(VALUES.format(
        image=chart.image_named_in_readme().split(":"), node=node.ADDRESS, ports=provider.ports))
    values = ["-f", folder / "larger.yaml", "-f", folder / "values.yaml"]
    kubectl("create", "namespace", SPACE)
    kubectl("label", "namespace", SPACE, RESTRICTED)
    kubectl("-n", SPACE, "create", "secret", "generic", "e2b", f"--from-literal=apiKey={provider.key}")
    helm("install", CHART, *values, "--wait")
    helm("upgrade", CHART, *values, "--set", "provider.create=true", "--wait")
    wait_ready("sandboxproviders.sandfleet.dev/default")
    kubectl("apply", "-f", world.REPO / "examples/sandbox.yaml")
    wait_ready("sandboxes.sandfleet.dev/hello")
    live = sandbox("hello")["status"]["sandboxID"]
    assert set(provider.sandboxes()) == {live}, provider.sandboxes()
    assert ask_for_the_way_in("hello")["sandboxID"] == live

    # To before there was a provider: other pods, and what has live sandboxes stays.
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
