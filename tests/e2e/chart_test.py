"""The chart on a real node, with our image, our provider and the commands that people type: installed, used, upgraded,
rolled back, tested, uninstalled and installed again. Runs in the network of scripts/cluster."""

import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / each) for each in ("support", "kubernetes")]
import node  # noqa: E402
import world  # noqa: E402

CHART = world.REPO / "charts/sandfleet"
SPACE = "sandfleet"
# The programs under test have sanitizers, which want more memory than a release.
VALUES = """\
image: {{repository: sandfleet.test/controller, pullPolicy: Never}}
controller:
  resources: {{requests: {{cpu: 10m, memory: 64Mi}}, limits: {{memory: 1Gi}}}}
  extraEnv: [{{name: ASAN_OPTIONS, value: "detect_leaks=0:quarantine_size_mb=16"}}]
  pollSeconds: 2
networkPolicy: {{egressPorts: [443, 6443, {ports[0]}, {ports[1]}]}}
provider:
  api: {{url: "http://{node}:{ports[0]}"}}
  data: {{url: "http://{node}:{ports[1]}", routing: Header}}
  credentialsSecretRef: {{name: e2b}}
  settleSeconds: 5
"""
MAKE_IMAGE = "scripts/image controller --name "
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


def run(*command, given=None, deadline_s=150):
    done = subprocess.run([str(word) for word in command], input=given, capture_output=True, text=True, timeout=deadline_s)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}\n{story()}"
    return done.stdout


def story():
    """What went on in the cluster, for a failed test."""
    told = []
    for command in (["get", "pods,sandboxes,sandboxproviders", "-A", "-o", "wide"], ["get", "events", "-A"],
                    ["-n", SPACE, "describe", "pods"],
                    ["-n", SPACE, "logs", "-l", "app.kubernetes.io/component=controller", "--tail=60", "--prefix"]):
        done = subprocess.run(["kubectl", *command], capture_output=True, text=True)
        told.append(f"$ kubectl {' '.join(command)}\n{done.stdout}{done.stderr}"[-12000:])
    return "\n".join(told)


def kubectl(*arguments, **options):
    return run("kubectl", *arguments, **options)


def helm(verb, *arguments):
    return run("helm", "-n", SPACE, verb, "sandfleet", *arguments)


def wait_ready(name):
    kubectl("wait", "--for=condition=Ready", "--timeout=120s", name)


def sandbox(name):
    return json.loads(kubectl("get", "sandboxes.sandfleet.dev", name, "-o", "json"))


def typed_in_readme():
    """The commands of its section on the chart, one a line."""
    text = (world.REPO / "README.md").read_text()
    block = re.search(r"^## Installing it on a cluster$.*?^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL).group(1)
    return block.replace("\\\n", "").splitlines()


def image_named_in_readme():
    return next(line for line in typed_in_readme() if line.startswith(MAKE_IMAGE)).removeprefix(MAKE_IMAGE)


def test_image():
    """Ours, made of the programs under test, on the node."""
    with world.temporary_folder("e2e-image") as folder:
        tar = folder / "controller.tar"
        run(world.REPO / "scripts/image", "controller", "--bin", world.programs_folder(), "--name", image_named_in_readme(),
            "--output", tar)
        run(world.REPO / "scripts/cluster", "load", "--dir", os.environ["CLUSTER"], tar)


def install_as_readme_says():
    """Types what it says, but for what the tests have made already in their own way: programs, cluster and image."""
    typed = typed_in_readme()
    for line, beginning in zip(typed, ("scripts/bootstrap ", "scripts/cluster start", MAKE_IMAGE, "scripts/cluster load ")):
        assert line.startswith(beginning), line
    assert len(typed) > 4
    for line in typed[4:]:
        assert line.startswith("scripts/cluster exec "), line
        run("sh", "-c", "cd $0 && exec " + line.removeprefix("scripts/cluster exec "), world.REPO)


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
    values = folder / "values.yaml"
    values.write_text(VALUES.format(node=node.ADDRESS, ports=provider.ports))
    install_as_readme_says()
    kubectl("label", "namespace", SPACE, RESTRICTED)
    kubectl("-n", SPACE, "create", "secret", "generic", "e2b", f"--from-literal=apiKey={provider.key}")
    helm("upgrade", CHART, "-f", values, "--set", "provider.create=true", "--wait")
    wait_ready("sandboxproviders.sandfleet.dev/default")
    kubectl("apply", "-f", world.REPO / "examples/sandbox.yaml")
    wait_ready("sandboxes.sandfleet.dev/hello")
    live = sandbox("hello")["status"]["sandboxID"]
    assert set(provider.sandboxes()) == {live}, provider.sandboxes()
    helm("test")
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
    helm("install", CHART, "-f", values, "--wait", "--timeout=100s")
    kubectl("delete", "sandboxes.sandfleet.dev", "hello", "--timeout=60s")
    assert not provider.sandboxes(), provider.sandboxes()


def test_release():
    with world.temporary_folder("e2e") as folder:
        with world.Provider(folder / "provider", "--listen", "0.0.0.0", "--listen-any") as provider:
            story_of_a_release(folder, provider)


world.run_test_named_by(sys.argv[1:], globals())
