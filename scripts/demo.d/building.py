"""A command in a sandbox that works while its way there is taken away: a build of a C project, and a count."""

import hashlib
import io
import signal
import subprocess
import tarfile
import time

import world
from telling import say

UNITS = 40
UNIT = """\
#include <stdio.h>
void primes_{number}(void) {{
  for (int n = {low}; n < {low} + 10000; ++n) {{
    int divisor = 2;
    while (divisor * divisor <= n && n % divisor) ++divisor;
    if (n > 1 && divisor * divisor > n) printf("%d\\n", n);
  }}
}}
"""
MAKEFILE = """\
CFLAGS := -O2
run: primes
\t./primes
primes: $(patsubst %.c,%.o,$(wildcard *.c))
\t$(CC) -o $@ $^
"""
BUILD = "cd project && make 2>&1 | tee build.log"
COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"


def project():
    """An archive of a C project: so many units that to compile them takes a second, and to run them prints much."""
    numbers = range(UNITS)
    files = {"Makefile": MAKEFILE, "main.c": "\n".join([
        *(f"void primes_{number}(void);" for number in numbers), "int main(void) {",
        *(f"  primes_{number}();" for number in numbers), "}\n"])}
    files |= {f"unit-{number:02}.c": UNIT.format(number=number, low=number * 10000) for number in numbers}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"project/{name}")
            member.size, member.mtime = len(text), int(time.time())
            tar.addfile(member, io.BytesIO(text.encode()))
    return len(files), archive.getvalue()


def put_project():
    count, archive = project()
    done = subprocess.run([world.programs_folder() / "sandfleet", "exec", "-i", "--", "tar", "x"], input=archive,
                          capture_output=True, timeout=30)
    assert done.returncode == 0, f"sandfleet exec: {done.returncode}\n{done.stderr.decode()}"
    say("exec", f"sandfleet exec -i -- tar x, which reads a C project of {count} files")


class Execution:
    """A command in the sandbox, by `sandfleet exec`, that works while we look at what has come of it."""

    def __init__(self, folder, name, *command):
        self.log = folder / name
        self.program = world.Program("sandfleet", "exec", "--", *command, log=self.log, dies_by=signal.SIGKILL)

    def lines(self):
        return self.log.read_bytes().count(b"\n")

    def wait_for_more_than(self, lines, what="more of its output"):
        world.wait_until(lambda: f"{what}:\n{self.program.output()}",
                         lambda: self.lines() > lines or not self.program.alive())
        assert self.program.alive(), f"{what}: it ended with {self.program.process.returncode}\n{self.program.output()}"
        return self.lines()


def build(agentd, provider, box, execution):
    """agentd is killed in the middle; what has come in the end is to the byte what the sandbox has."""
    say("exec", f"sandfleet exec -- bash -o pipefail -c '{BUILD}'")
    execution.wait_for_more_than(UNITS // 8)
    agentd.program.kill()
    seen = execution.lines()
    say("kill -9", f"of agentd, when {seen} lines of the build have come")
    log = "$HOME/project/build.log"
    world.wait_until("the build to go on without agentd",
                     lambda: int(world.run_inside(provider, box, f"wc -l < {log}")[1]) > seen)
    agentd.start()
    say("restart", "of agentd; the build has gone on without it")
    assert execution.program.process.wait(60) == 0, execution.program.output()
    came = execution.log.read_bytes()
    digest = hashlib.sha256(came).hexdigest()
    there = world.run_inside(provider, box, f"sha256sum < {log}")[1].split()[0]
    assert digest == there, f"{execution.log} is not what {log} is in {box}"
    say("whole", f"{execution.lines():,} lines of output, with the sha256 that they have in the sandbox: {digest[:16]}...")
