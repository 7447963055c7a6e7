"""scripts/lint sees what it says it sees, and this tree obeys it."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("lint", str(REPO / "scripts/lint"))
lint = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint", loader))
loader.exec_module(lint)

BAD = {
    "a client that knows another": ("libs/e2b/x.cc", '#include "libs/envd/sandbox.h"\n'),
    "a library that knows a program": ("libs/net/x.cc", '#include "controller/reconcile/decide.h"\n'),
    "the floor that knows the ground": ("libs/base/x.h", '#include "libs/aio/task.h"\n'),
    "the provider that reads the client's reading": ("local_e2b/x.cc", '#include "libs/e2b/cloud.h"\n'),
    "a second door for YAML": ("controller/x.cc", "#include <yaml-cpp/yaml.h>\n"),
    "a second door for Beast": ("executor/x.cc", "#include <boost/beast/http.hpp>\n"),
    "a second door for cpprestsdk": ("controller/x.cc", "#include <cpprest/http_client.h>\n"),
    "an include twice": ("cli/x.cc", "#include <string>\n#include <vector>\n#include <string>\n"),
    "a test that sleeps": ("libs/net/x_test.cc", "void f() {\n  std::this_thread::sleep_for(s);\n}\n"),
    "a test in Python that sleeps": ("tests/kubernetes/x_test.py", "start()\ntime.sl" "eep(1)\n"),
    "a note to self in Python": ("images/x.py", "x = 1  # FIX" "ME: later\n"),
    "a library on no floor": ("libs/news/x.h", "#include <string>\n"),
    "a note to self": ("libs/net/x.cc", "int x;  // TO" "DO: later\n"),
}
GOOD = {
    "a client on the ground": ("libs/e2b/x.cc", '#include "libs/net/transport.h"\n#include <string>\n'),
    "timers of Asio in a program": ("local_e2b/x.cc", "#include <boost/asio/steady_timer.hpp>\n"),
    "waiting in a loop in Python": ("tests/x.py", "while not done():\n    time.sleep(0.1)\n"),
    "waiting in a loop": ("libs/net/x_test.cc", "while (!done)\n  std::this_thread::sleep_for(ms);\n"),
}


class Lint(unittest.TestCase):
    def test_names_each_fault_once(self):
        for what, (path, text) in BAD.items():
            with self.subTest(what):
                self.assertEqual(len(list(lint.faults_of(path, text))), 1)

    def test_lets_good_code_be(self):
        for what, (path, text) in GOOD.items():
            with self.subTest(what):
                self.assertEqual(list(lint.faults_of(path, text)), [])

    def test_this_tree_obeys(self):
        done = subprocess.run([REPO / "scripts/lint"], cwd=REPO, capture_output=True, text=True)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, 0, done.stderr)


unittest.main()
