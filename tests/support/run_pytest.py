"""`run_pytest.py FILE`: one file of tests by pytest, with the client for Python beside them."""

import os
import subprocess
import sys

import world


def main(file):
    command = [world.where("pytest") / "bin/pytest", "-q", "-p", "no:cacheprovider", file]
    environment = {**os.environ, "PYTHONPATH": str(world.REPO / "clients/python/src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environment).returncode


sys.exit(main(*sys.argv[1:]))
