"""The client for Python: `python.py test SUITE` runs one file of its tests, `python.py types` looks at its types and its layout."""

import os
import pathlib
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parents[2]
SOURCE = REPO / "clients/python"


def tools():
    found = subprocess.run([REPO / "scripts/bootstrap", "where", "pytest"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr + "run scripts/bootstrap test first"
    return pathlib.Path(found.stdout.strip()) / "bin"


def commands(what, *more):
    if what == "test":
        return [["pytest", "-q", f"tests/{more[0]}"]]
    return [["mypy", "--cache-dir", os.devnull], ["ruff", "check", "--no-cache"], ["ruff", "format", "--no-cache", "--check"]]


def main(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    for command, *more in commands(*arguments):
        code = subprocess.run([tools() / command, *more], cwd=SOURCE, env=environment).returncode
        if code:
            return code
    return 0


sys.exit(main(*sys.argv[1:]))
