"""The chart on a real node, by the commands that people type; for tests that run in the network of scripts/cluster."""

import json
import pathlib
import re
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / each) for each in ("support", "kubernetes")]
import world  # noqa: E402

CHART = world.REPO / "charts/sandfleet"
SPACE = "sandfleet"
# The programs under test have sanitizers, which want more memory than a release.
LARGER = """\
controller:
  resources: {requests: {cpu: 10m, memory: 64Mi}, limits: {memory: 1Gi}}
  extraEnv: [{name: ASAN_OPTIONS, value: "detect_leaks=0:quarantine_size_mb=16"}]
agentd:
  resources: {requests: {cpu: 10m, memory: 64Mi}, limits: {memory: 1Gi}}
  extraEnv: [{name: ASAN_OPTIONS, value: "detect_leaks=0:quarantine_size_mb=16"}]
"""
ON_KUBERNETES = re.compile(r"^## On Kubernetes$(.*?)^## ", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(*command, given=None, deadline_s=150):
    done = subprocess.run([str(word) for word in command], input=given, capture_output=True, text=True, timeout=deadline_s)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}\n{story()}"
    return done.stdout


def story():
    """What went on in the cluster, for a failed test."""
    told = []
    for command in (["get", "pods,sandboxes,sandboxproviders", "-A", "-o", "wide"], ["get", "events", "-A"],
                    ["-n", SPACE, "describe", "pods"],
                    ["-n", SPACE, "logs", "-l", "app.kubernetes.io/component=agentd", "--tail=60", "--prefix"],
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
    """The blocks of its section on Kubernetes."""
    return BLOCK.findall(ON_KUBERNETES.search((world.REPO / "README.md").read_text()).group(1))


def image_named_in_readme(made="controller"):
    return re.search(rf"^scripts/image {made} (?:\S+ )?--name (\S+)", "\n".join(typed_in_readme()), re.MULTILINE).group(1)


def harness_image():
    return image_named_in_readme("file")


def of_the_programs_under_test(pod):
    """A harness's pod, which has sanitizers then; one of them wants to trace."""
    env = '      env:\n        - {name: ASAN_OPTIONS, value: "detect_leaks=0"}\n'
    return pod.replace("      env:\n", env)
