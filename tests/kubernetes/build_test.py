"""scripts/kubernetes with a stand-in for Go: one build at a time, in the background, published whole or not
at all, and never failing in silence."""

import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import world  # noqa: E402

GO = """\
#!/bin/bash
case $1 in
  version) echo go version go1.26 stand-in ;;
  list) echo v1.99.0 ;;
  build)
    while [[ $1 != -o ]]; do shift; done
    echo "$3" >>"$HOME/built"
    while [[ -e $HOME/hold ]]; do sleep 0.1; done  # At the latest until the test takes its folder away.
    if [[ -e $HOME/broken && $3 == *helm* ]]; then echo "helm: no such module"; exit 1; fi
    echo '#!/bin/true' >"$2"
    chmod +x "$2" ;;
esac
"""
PROGRAMS = ["etcd", "helm", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl",
            "kubelet"]
HANG_S = 200  # The build steps back behind everybody: on a machine that is busy it may get next to nothing.


class Build(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(self.enterContext(world.temporary_folder("kubernetes-build")))
        (self.home / "bin").mkdir()
        go = self.home / "bin/go"
        go.write_text(GO)
        go.chmod(0o755)
        self.addCleanup(self.end_builder)

    def run_script(self, verb):
        return subprocess.run(
            [world.REPO / "scripts/kubernetes", verb], capture_output=True, text=True, timeout=HANG_S,
            env={**os.environ, "HOME": str(self.home), "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}"})

    def built(self):
        with contextlib.suppress(FileNotFoundError):
            return [line.split("/")[-1] for line in (self.home / "built").read_text().split()]
        return []

    def hold(self):
        (self.home / "hold").touch()

    def let_go(self):
        (self.home / "hold").unlink(missing_ok=True)

    def builder(self):
        return int((self.home / ".cache/sandfleet/kubernetes.lock").read_text() or 0)

    def at_work(self):
        with open(self.home / ".cache/sandfleet/kubernetes.lock") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        return True

    def while_at_work(self, what, check):
        """Waits for it as long as the build is at work."""
        world.wait_until(what, lambda: check() or not self.at_work(), HANG_S)
        self.assertTrue(check(), f"the build ended before {what}")

    def end_builder(self):
        self.let_go()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if self.builder():
                os.killpg(self.builder(), signal.SIGKILL)

    def test_a_build_outlives_its_start_and_is_published_whole(self):
        self.hold()
        started = self.run_script("start")
        self.assertEqual(started.returncode, 0, started.stderr)
        self.while_at_work("the build to begin", self.built)
        early = self.run_script("where")
        self.assertEqual((early.returncode, early.stdout), (1, ""))
        self.assertIn("being compiled", early.stderr)
        self.let_go()
        waited = self.run_script("wait")
        self.assertEqual(waited.returncode, 0, waited.stderr)
        folder = pathlib.Path(waited.stdout.strip())
        self.assertEqual(sorted(path.name for path in folder.iterdir()), PROGRAMS)
        self.assertEqual(self.run_script("where").stdout, waited.stdout)

    def test_there_is_never_a_second_build(self):
        self.hold()
        self.run_script("start")
        self.while_at_work("the build to begin", self.built)
        self.assertIn("at work already", self.run_script("start").stderr)
        self.let_go()
        self.run_script("wait")
        self.run_script("start")
        self.assertEqual(len(self.built()), len(PROGRAMS))

    def test_it_steps_back_until_somebody_waits(self):
        self.hold()
        self.run_script("start")
        self.while_at_work("the build to step back", lambda: os.getpriority(os.PRIO_PGRP, self.builder()) == 19)
        if os.geteuid() == 0:
            waiting = subprocess.Popen([world.REPO / "scripts/kubernetes", "wait"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env={
                **os.environ, "HOME": str(self.home), "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}"})
            with waiting:
                self.while_at_work("the build to hurry", lambda: os.getpriority(os.PRIO_PGRP, self.builder()) == 0)
                self.let_go()

    def test_a_failed_build_says_so_until_it_succeeds(self):
        (self.home / "broken").touch()
        for verb in ("wait", "wait", "where"):
            failed = self.run_script(verb)
            self.assertEqual((failed.returncode, failed.stdout), (1, ""), failed.stderr)
            self.assertIn("helm: no such module", failed.stderr)
        self.assertEqual(self.built().count("helm"), 3)
        (self.home / "broken").unlink()
        self.run_script("start")
        mended = self.run_script("wait")
        self.assertEqual(mended.returncode, 0, mended.stderr)
        self.assertEqual(self.built().count("kube-apiserver"), 1)

    def test_a_killed_build_is_begun_again(self):
        self.hold()
        self.run_script("start")
        self.while_at_work("the build to begin", self.built)
        os.killpg(self.builder(), signal.SIGKILL)
        self.let_go()
        waited = self.run_script("wait")
        self.assertEqual(waited.returncode, 0, waited.stderr)


unittest.main()
