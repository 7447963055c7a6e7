"""`run_pytest.py FILE`: one file of tests by pytest, with the client for Python beside them."""

import os
import pathlib
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parents[2]


def main(file):
    found = subprocess.run([REPO / "scripts/bootstrap", "where", "pytest"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr + "run scripts/bootstrap test first"
    command = [pathlib.Path(found.stdout.strip()) / "bin/pytest", "-q", "-p", "no:cacheprovider", file]
    environment = {**os.environ, "PYTHONPATH": str(REPO / "clients/python/src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environment).returncode


sys.exit(main(*sys.argv[1:]))
