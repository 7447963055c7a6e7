"""Runs a program against a provider of its own: provider_contract.py [FLAG OF THE PROVIDER...] -- PROGRAM..."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import world  # noqa: E402

world.need_root()
divide = sys.argv.index("--")
provider_flags, program = sys.argv[1:divide], sys.argv[divide + 1:]
with world.temporary_folder("clients") as folder:
    with world.Provider(folder / "provider", *provider_flags) as provider:
        code = subprocess.run(program, env={**os.environ, **provider.sdk_env()}).returncode
        if code:
            print(provider.program.output())
        left = provider.sandboxes()
    assert not left, f"sandboxes left: {left}"
sys.exit(code)
