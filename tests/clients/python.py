"""The client for Python: `python.py test SUITE` runs one file of its tests, `python.py types` looks at its types and its layout."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import world  # noqa: E402

SOURCE = world.REPO / "clients/python"


def commands(what, *more):
    if what == "test":
        return [["pytest", "-q", f"tests/{more[0]}"]]
    return [["mypy", "--cache-dir", os.devnull], ["ruff", "check", "--no-cache"], ["ruff", "format", "--no-cache", "--check"]]


def main(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    for command, *more in commands(*arguments):
        code = subprocess.run([world.where("pytest") / "bin" / command, *more], cwd=SOURCE, env=environment).returncode
        if code:
            return code
    return 0


sys.exit(main(*sys.argv[1:]))
