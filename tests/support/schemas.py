"""Programs that judge documents by their official schemas: those of tests/support/schemas.txt."""

import os
import pathlib
import sys

import world


def run_among_them():
    """Starts this program again with their Python, where it has not been yet."""
    folder = world.where("schemas")
    if pathlib.Path(sys.prefix) != folder:
        python = str(folder / "bin/python")  # It knows by its own name where its libraries are.
        os.execv(python, [python, "-B", *sys.argv])
