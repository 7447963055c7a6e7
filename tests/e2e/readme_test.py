"""README's section on Kubernetes, typed line by line into a shell in the network of scripts/cluster, and what must then be
so. Only what the tests have made in their own way is not typed: programs, cluster and image."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

import chart
from chart import kubectl, sandbox, world

CHART = re.compile(r"\bhelm (install|upgrade) sandfleet charts/sandfleet\b")
DEADLINE_S = 200


class Shell:
    """One bash for all blocks, so that what runs behind one is known to the next."""

    def __init__(self, folder):
        self.folder, self.log = folder, folder / "typed.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["bash", "-e"], cwd=world.REPO, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                                            bufsize=1, start_new_session=True)
        self.typed = 0

    def type(self, block):
        """Every command of it succeeded; what they said."""
        self.typed += 1
        script, done = self.folder / f"block-{self.typed}", self.folder / f"done-{self.typed}"
        script.write_text(block)
        before = self.log.stat().st_size
        print(f". {script} </dev/null; touch {done}", file=self.process.stdin)
        world.wait_until(lambda: f"the end of\n{block}{self.output()}\n{chart.story()}",
                         lambda: done.exists() or self.process.poll() is not None, DEADLINE_S, 0.1)
        assert done.exists(), f"failed:\n{block}{self.output()}\n{chart.story()}"
        return self.log.read_text(errors="replace")[before:]

    def output(self):
        return self.log.read_text(errors="replace")[-16000:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """With what runs behind it, if a failure left that."""
        self.process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        world.wait_until("what was started to end", lambda: not processes_in_group(self.process.pid), 30)


def processes_in_group(group):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(stat.parent.name)
    return found


MADE_OTHERWISE = re.compile(r"^scripts/.*\n", re.MULTILINE)
HARNESS = "examples/kubernetes/harness.yaml"


def adapted(block, folder):
    """With the programs under test, which want more memory than a release, and a folder of the test's own."""
    block = MADE_OTHERWISE.sub("", block).replace(HARNESS, f"{folder}/harness.yaml")
    block = block.replace("build/release/bin/", f"{world.programs_folder()}/").replace("build/fleet", f"{folder}/fleet")
    return CHART.sub(rf"\g<0> -f {folder}/values.yaml", block)


def live(folder):
    return {line.split()[0]: line.split()[1] for line in kubectl(
        "get", "sandboxes.sandfleet.dev", "--no-headers", "-o", "custom-columns=N:.metadata.name,I:.status.sandboxID").splitlines()}


def test_typed():
    with world.temporary_folder("readme") as folder:
        (folder / "values.yaml").write_text(chart.LARGER)
        (folder / "harness.yaml").write_text(chart.of_the_programs_under_test((world.REPO / HARNESS).read_text()))
        made_otherwise, *typed = chart.typed_in_readme()
        assert [line.split(" ")[0] for line in made_otherwise.splitlines()] == [
            "scripts/bootstrap", "scripts/cluster", "scripts/image", "scripts/cluster", "scripts/cluster"], made_otherwise
        install, provider, use, work, upgrade, end = (adapted(block, folder) for block in typed)
        with Shell(folder) as shell:
            assert "Phase:          Succeeded" in shell.type(install)
            shell.type(provider)
            said = shell.type(use)
            assert re.search(r"hello +True +Running", said) and "Desired state:    Running" in said, said
            assert "sandbox/hello look requested in namespace default" in said, said
            assert re.search(r"^Linux ", shell.type(work), re.MULTILINE)
            boxes = live(folder)
            assert set(boxes) == {"hello", "configured", "short-lived"}, boxes
            assert "Rollback to 2" in shell.type(upgrade)
            assert live(folder) == boxes, "a roll-out replaced a sandbox"
            assert sandbox("hello")["status"]["epoch"] == 1
            shell.type(end)
            left = kubectl("get", "crd,namespaces,clusterroles,secrets", "-o", "name")
            assert "sandfleet" not in left and "demo-keys" not in left, left
            world.wait_until("the provider to end", lambda: processes_in_group(shell.process.pid) == [str(shell.process.pid)])


world.run_test_named_by(sys.argv[1:], globals())
