"""scripts/cluster: what runs in it is a real node's, and nothing of it stays, however it ends."""

import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / each) for each in ("support", "kubernetes")]
import node  # noqa: E402
import world  # noqa: E402

CLUSTER = world.REPO / "scripts/cluster"


def cluster(verb, folder, *arguments):
    return subprocess.run([CLUSTER, verb, "--dir", folder, *map(str, arguments)], capture_output=True, text=True, timeout=200)


def links():
    return subprocess.check_output(["ip", "-o", "link"], text=True)


def settings():
    return {name: pathlib.Path("/proc/sys", name).read_text() for name in [*node.KERNEL_SETTINGS, "net/ipv4/ip_forward"]
            if pathlib.Path("/proc/sys", name).exists()}


class Cluster(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(world.temporary_folder("cluster"))) / "cluster"
        self.addCleanup(lambda: cluster("stop", self.folder))
        self.before = links(), settings(), pathlib.Path("/proc/self/mountinfo").read_text()

    def start(self, *arguments):
        started = cluster("start", self.folder, *arguments)
        self.assertEqual(started.returncode, 0, started.stderr)

    def processes(self):
        return world.processes_of(self.folder)

    def cgroups(self):
        name = hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]
        return list(pathlib.Path("/sys/fs/cgroup").glob(f"*/sandfleet-cluster-{name}"))

    def test_ends_with_the_process_it_was_started_for_and_leaves_nothing(self):
        whom = self.enterContext(subprocess.Popen(["sleep", "infinity"]))
        self.addCleanup(whom.kill)
        self.start("--while", whom.pid)
        again = cluster("start", self.folder)
        self.assertEqual(again.returncode, 1)
        self.assertIn("one runs in", again.stderr)
        nodes = cluster("exec", self.folder, "kubectl", "get", "nodes", "-o", "name")
        self.assertEqual(nodes.stdout, "node/node-1\n", nodes.stderr)
        self.assertTrue(self.cgroups())
        self.assertEqual(self.before, (links(), settings(), pathlib.Path("/proc/self/mountinfo").read_text()))
        whom.kill()
        world.wait_until("the cluster to go", lambda: not self.folder.exists() and not self.processes())
        self.assertEqual(self.cgroups(), [])

    def test_killed_it_leaves_no_process_and_the_next_removes_the_rest(self):
        self.start()
        os.kill(int((self.folder / "keeper").read_text()), signal.SIGKILL)
        world.wait_until(lambda: f"processes to end: {self.processes()}", lambda: not self.processes())
        late = cluster("exec", self.folder, "true")
        self.assertEqual(late.returncode, 1)
        self.assertIn("none runs in", late.stderr)
        self.assertEqual(cluster("stop", self.folder).returncode, 0)
        self.assertEqual((self.folder.exists(), self.cgroups()), (False, []))

    def test_touches_no_folder_that_is_not_its_own(self):
        self.folder.mkdir()
        (self.folder / "precious").touch()
        refused = cluster("start", self.folder)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("is somebody else's; choose another --dir", refused.stderr)
        cluster("stop", self.folder)
        self.assertTrue((self.folder / "precious").exists())


world.need_root()
unittest.main()
