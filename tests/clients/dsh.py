"""The client for dsh: `dsh.py build FOLDER` compiles it and its tests, strictly, for each generation of dsh's packages;
`dsh.py test FOLDER newer|older SUITE [chain]` runs one suite by Node's own runner, `chain`: with agentd and a sandbox."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "integration")]
import world  # noqa: E402
from whole import agentd_before_a_box  # noqa: E402

SOURCE = world.REPO / "clients/dsh"
GENERATIONS = {"newer": "dsh", "older": "dsh-older"}


def build(folder):
    """Sources and packages are laid side by side, for that is how imports find each other."""
    for generation, piece in GENERATIONS.items():
        place = folder / generation
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "node_modules").symlink_to(world.where(piece) / "node_modules")
        shutil.copy(SOURCE / "package.json", place)
    newer = folder / "newer"
    for part in ("src", "test", "tsconfig.json", "tsconfig.test.json", "cordis.patch.yml"):
        copy = shutil.copytree if (SOURCE / part).is_dir() else shutil.copy
        copy(SOURCE / part, newer / part)
    compiler = newer / "node_modules/typescript/bin/tsc"
    code = subprocess.run([world.where("node"), compiler, "-p", "tsconfig.test.json"], cwd=newer).returncode
    if code == 0:
        shutil.copytree(newer / "build", folder / "older" / "build")
    return code


@contextlib.contextmanager
def chain():
    """A sandbox that is Ready, and agentd: where its socket is, and how another agentd would be started."""
    with agentd_before_a_box() as (_, controller, agentd):
        programs = world.programs_folder()
        yield {"SANDFLEET_AGENTD": str(agentd.socket), "SANDFLEET_SANDBOX": "default/box",
               "SANDFLEET_AGENTD_ARGV": json.dumps([str(programs / "sandfleet-agentd"), "--state", str(controller.state)]),
               "SANDFLEET_CLI": str(programs / "sandfleet"), "SANDFLEET_CLI_STATE": str(controller.state)}


def run_suite(folder, generation, suite, where_it_works=None):
    test = folder / generation / "build/test" / f"{suite}.test.js"
    command = [world.where("node"), "--test", "--test-timeout=180000", "--test-reporter=spec", test]
    environment = {**os.environ, "SANDFLEET_VECTORS": str(world.REPO / "docs/protocol-vectors.json")}
    with chain() if where_it_works else contextlib.nullcontext({}) as more:
        return subprocess.run(command, env={**environment, **more}).returncode


def main(what, folder, *more):
    world.end_on_signals()
    folder = pathlib.Path(folder)
    return build(folder) if what == "build" else run_suite(folder, *more)


sys.exit(main(*sys.argv[1:]))
