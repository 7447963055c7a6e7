"""Runs one of our test programs against a real API server, and does for it what only the owner of a control plane
can: on_a_server.py PROGRAM [--gtest_filter=...]."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from control_plane import ControlPlane, world  # noqa: E402

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
    with world.temporary_folder("kubernetes") as folder, ControlPlane(folder / "cluster") as cluster:
        cluster.install_definitions()
        program = subprocess.Popen(
            [world.programs_folder() / sys.argv[1], *sys.argv[2:]], stdin=subprocess.PIPE,
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
