"""Programs that judge documents by their official schemas: those of tests/support/schemas.txt."""

import os
import pathlib
import subprocess
import sys

import world


def run_among_them():
    """Starts this program again with their Python, where it has not been yet."""
    found = subprocess.run([world.REPO / "scripts/bootstrap", "where", "schemas"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr + "run scripts/bootstrap test first"
    folder = pathlib.Path(found.stdout.strip())
    if pathlib.Path(sys.prefix) != folder:
        python = str(folder / "bin/python")  # It knows by its own name where its libraries are.
        os.execv(python, [python, "-B", *sys.argv])
