"""libs/kube against a real API server: runs the program kube_server_test, and does for it what only the owner
of a control plane can. Arguments are handed on (--gtest_filter=...)."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from control_plane import YAML, ControlPlane, world  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/sandfleet.dev/v1alpha1"


def install_definitions(cluster):
    for path in sorted((world.REPO / "crds").glob("*.yaml")):
        made = cluster.ask("POST", DEFINITIONS, path.read_text(), YAML)
        assert made.status == 201, made
        world.wait_until(path.stem, lambda: cluster.ask("GET", f"{GROUP}/{path.stem}").status == 200)


def restart_api_server(cluster):
    cluster.api_server.kill()
    cluster.start_api_server()


def restart_api_server_compacted(cluster):
    """Afterwards neither etcd nor what the server keeps in memory knows the past."""
    cluster.api_server.kill()
    cluster.compact()
    cluster.start_api_server()


DEEDS = {
    "restart-api-server": restart_api_server,
    "restart-api-server-compacted": restart_api_server_compacted,
}


def main():
    with world.temporary_folder("kubernetes-client") as folder, ControlPlane(folder / "cluster") as cluster:
        install_definitions(cluster)
        program = subprocess.Popen(
            [world.programs_folder() / "kube_server_test", *sys.argv[1:]], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1, env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig())})
        with program:
            for line in program.stdout:
                if not line.startswith("@"):
                    print(line, end="", flush=True)
                    continue
                DEEDS[line[1:].strip()](cluster)
                print("done", file=program.stdin)
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())
