"""Runs the program named by its argument against a provider of its own."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import world  # noqa: E402

world.need_root()
with world.temporary_folder("clients") as folder:
    with world.Provider(folder / "provider") as provider:
        code = subprocess.run(sys.argv[1:], env={**os.environ, **provider.sdk_env()}).returncode
        if code:
            print(provider.program.output())
        left = provider.sandboxes()
    assert not left, f"sandboxes left: {left}"
sys.exit(code)
