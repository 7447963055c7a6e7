"""One program of an official SDK against a real provider: run.py js-2.51 | js-2.45 | python | python-async."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import world  # noqa: E402


def command(suite):
    if suite.startswith("js-"):
        sdk = f"{world.where(suite)}/node_modules/e2b/dist/index.mjs"
        return [world.where("node"), str(HERE / "programs/scenario.mjs")], {"E2B_SDK": sdk}
    program = {"python": "scenario.py", "python-async": "scenario_async.py"}[suite]
    return [f"{world.where('python')}/bin/python", str(HERE / "programs" / program)], {}


def main(suite):
    world.need_root()
    world.end_on_signals()
    argv, extra = command(suite)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("E2B_")}
    with world.temporary_folder("sdk") as folder:
        with world.Provider(folder) as provider:
            code = subprocess.run(argv, env={**clean, **provider.sdk_env(), **extra}, timeout=180).returncode
            left = provider.sandboxes()
            if code != 0:
                print(provider.program.output())
        assert not left, f"sandboxes left: {left}"
        assert not world.processes_of(folder), f"processes left: {world.processes_of(folder)}"
        assert not world.mounts_under(folder), f"mounts left: {world.mounts_under(folder)}"
        return code


sys.exit(main(sys.argv[1]))
