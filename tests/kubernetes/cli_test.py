"""The CLI against a real API server: every verb, a watch through cuts and a compaction, fields that others own,
rights that are missing, definitions that are not there or are others, and kubeconfigs that are wrong. Each class has a
cluster of its own: cli_test.py CLASS..."""

import json
import os
import pathlib
import queue
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from control_plane import GROUP, ControlPlane, definition, world  # noqa: E402
from harness import CLOSE, frame  # noqa: E402
from kubeconfigs import INSTALL, wrong_kubeconfigs  # noqa: E402
from wire import Wire  # noqa: E402

EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"
DONE, FAILED, USAGE, NOT_FOUND, REFUSED, TIMED_OUT = range(6)

MANIFEST = """\
apiVersion: sandfleet.dev/v1alpha1
kind: Sandbox
metadata:
  name: {name}
spec:
  template: {{id: base}}
  desiredState: Running
"""
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: {user}, namespace: default}}
rules: [{{apiGroups: [sandfleet.dev], resources: [sandboxes], verbs: [{verbs}]}}]
"""
BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {user}, namespace: default}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {user}}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]
"""


def environment(**more):
    """Ours without what would choose a place, but for `more`."""
    chosen = ("SANDFLEET_STATE", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    return {**{key: value for key, value in os.environ.items() if key not in chosen}, **more}


class Answer:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self):
        return f"exit code {self.code}\n--- output\n{self.out}--- errors\n{self.err}"


class Running:
    """A command that goes on: its lines, output and errors together, as they come."""

    def __init__(self, *words, env):
        self._lines = queue.Queue()
        self.seen = []
        self.process = subprocess.Popen([world.programs_folder() / "sandfleet", *words], env=env, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def line_with(self, *parts, deadline_s=30):
        """The next line that has all of these; those before it are passed over."""
        def found():
            while not self._lines.empty():
                self.seen.append(self._lines.get())
                if all(part in self.seen[-1] for part in parts):
                    return self.seen[-1]
            return None
        return world.wait_until(lambda: f"a line with {parts} in {self.seen}", found, deadline_s)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()


class Cli(unittest.TestCase):
    """A person and a cluster with our definitions."""

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(world.temporary_folder("cli"))
        cls.cluster = cls.enterClassContext(ControlPlane(cls.folder / "cluster"))
        cls.kubeconfig = cls.cluster.kubeconfig()
        cls.define()
        for name in ("team", "elsewhere", "empty"):
            assert cls.cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).status == 201

    @classmethod
    def define(cls):
        cls.cluster.install_definitions()

    @classmethod
    def run_cli(cls, *words, stdin=None, kubeconfig=None, program="sandfleet", **more):
        return Answer(subprocess.run(
            [world.programs_folder() / program, *words], input=stdin if stdin is not None else MANIFEST.format(name="demo"),
            env=environment(KUBECONFIG=str(kubeconfig or cls.kubeconfig), **more), capture_output=True, text=True, timeout=60))

    def cli(self, *words, code=DONE, **options):
        answer = self.run_cli(*words, **options)
        self.assertEqual(answer.code, code, answer)
        return answer

    def declare(self, name, space="default"):
        self.cli("apply", "-f", "-", "-n", space, stdin=MANIFEST.format(name=name))
        self.addCleanup(self.cluster.ask, "DELETE", self.path(name, space))
        return self.object(name, space)

    def path(self, name, space="default"):
        return f"{GROUP}/namespaces/{space}/sandboxes/{name}"

    def object(self, name, space="default"):
        answer = self.cluster.ask("GET", self.path(name, space))
        return answer.body if answer.status == 200 else None

    def report(self, name, condition, reason):
        """What a controller would write of the object as it is."""
        generation = self.object(name)["metadata"]["generation"]
        status = {"observedGeneration": generation, "state": reason, "conditions": [
            {"type": condition, "status": "True", "reason": reason, "message": "", "observedGeneration": generation,
             "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        answer = self.cluster.ask("PATCH", self.path(name) + "/status", {"status": status}, "application/merge-patch+json")
        self.assertEqual(answer.status, 200, answer.body)

    def tell(self, name, space, uid, note, version="sandfleet.dev/v1alpha1", kind="Sandbox"):
        event = {"metadata": {"name": f"{name}.{secrets.token_hex(4)}"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
                 "reason": "Created", "action": "Create", "note": note, "reportingController": "tests",
                 "reportingInstance": "tests", "series": {"count": 3, "lastObservedTime": "2026-01-01T00:01:00.000000Z"},
                 "regarding": {"apiVersion": version, "kind": kind, "namespace": space, "name": name, "uid": uid}}
        answer = self.cluster.ask("POST", EVENTS.format(space), event)
        self.assertEqual(answer.status, 201, answer.body)

    def rebuilt_kubeconfig(self, port):
        """Ours, by another port."""
        text = self.kubeconfig.read_text().replace(f":{self.cluster.port}", f":{port}")
        path = self.folder / f"{port}.kubeconfig"
        path.write_text(text)
        return path


def hello_of(test, *words):
    """What the command line says first to agentd, in whose place we are, and how it ends when it is sent away."""
    path = test.folder / "agentd.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(30)
        told = []

        def send_away():
            link, _ = listener.accept()
            with link, link.makefile("rb") as stream:
                (length,) = struct.unpack(">I", stream.read(4))
                body = stream.read(length)
                told.append(json.loads(body[10:]))
                link.sendall(frame(CLOSE, 0, {"reason": "version", "message": "not today"}))
        agentd = threading.Thread(target=send_away)
        agentd.start()
        ended = test.run_cli(*words, SANDFLEET_SOCKET=str(path))
        agentd.join()
    path.unlink()
    return told[0], ended


class Verbs(Cli):
    def test_shows_sandboxes_in_every_format(self):
        self.declare("shown")
        self.declare("hidden", "team")
        self.report("shown", "Ready", "Running")
        table = self.cli("get").out.splitlines()
        self.assertEqual(table[0].split(), ["NAME", "READY", "STATE", "SANDBOX-ID", "TEMPLATE", "AGE"])
        self.assertIn(["shown", "True", "Running", "-", "base"], [line.split()[:5] for line in table])
        self.assertNotIn("hidden", "".join(table))
        self.assertIn("PROVIDER", self.cli("get", "-o", "wide").out)
        self.assertIn("hidden", self.cli("get", "-n", "team").out)
        self.assertLessEqual({"default", "team"}, {line.split()[0] for line in self.cli("get", "-A").out.splitlines()[1:]})
        self.assertEqual(json.loads(self.cli("get", "shown", "-o", "json").out)["spec"]["desiredState"], "Running")
        self.assertIn("\nkind: Sandbox\n", self.cli("get", "shown", "-o", "yaml").out)
        self.assertEqual(self.cli("get", "sfp").err, "No resources found.\n")
        self.assertEqual(self.cli("get", "none", code=NOT_FOUND).err, 'sandfleet: no Sandbox "none" in namespace default\n')
        self.assertEqual(self.cli("get", "-n", "gone", code=NOT_FOUND).err, 'sandfleet: there is no namespace "gone"\n')

    def test_attaches_as_an_account_for_which_the_server_gives_a_token(self):
        made = self.cluster.ask("POST", "/api/v1/namespaces/team/serviceaccounts", {"metadata": {"name": "harness"}})
        self.assertEqual(made.status, 201, made.body)
        hello, ended = hello_of(self, "exec", "--service-account", "harness", "team/box", "--", "true")
        self.assertEqual((hello["sandbox"], ended.code), ({"namespace": "team", "name": "box"}, 125), ended)
        self.assertNotIn(hello["token"], repr(ended))
        spec = {"token": hello["token"], "audiences": ["sandfleet.dev/attach"]}
        review = self.cluster.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
                                  {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}).body["status"]
        self.assertTrue(review["authenticated"], review)
        self.assertEqual(review["user"]["username"], "system:serviceaccount:team:harness")
        nobody = self.cli("exec", "--service-account", "nobody", "team/box", "--", "true", code=125)
        self.assertIn('"nobody"', nobody.err)

    def test_uses_the_namespace_of_the_context(self):
        self.declare("there", "team")
        path = self.folder / "team.kubeconfig"
        path.write_text(self.kubeconfig.read_text().replace("    cluster: test\n", "    cluster: test\n    namespace: team\n"))
        self.assertIn("there", self.cli("get", kubeconfig=path).out)
        self.assertIn("No resources", self.cli("get", "-n", "empty", kubeconfig=path).err)

    def test_describes_a_sandbox_with_its_events(self):
        uid = self.declare("told")["metadata"]["uid"]
        self.tell("told", "default", uid, "from template base")
        self.tell("told", "default", uid, "of another Sandbox", version="agents.x-k8s.io/v1")
        self.tell("told", "default", uid, "of a pod", version="v1", kind="Pod")
        page = self.cli("describe", "told").out
        self.assertIn(f"UID:              {uid}\n", page)
        self.assertRegex(page, r"Normal +Created +sandbox/told +3 +from template base\n")
        self.assertNotIn("of a", page)
        listed = json.loads(self.cli("events", "told", "-o", "json").out)["items"]
        self.assertEqual([(each["reason"], each["count"], each["lastTime"]) for each in listed],
                         [("Created", 3, "2026-01-01T00:01:00Z")])
        self.assertEqual(self.cli("events", "never", code=NOT_FOUND).err, 'sandfleet: no Sandbox "never" in namespace default\n')

    def test_pauses_resumes_and_terminates_by_one_word(self):
        before = self.declare("wished")
        for verb, state in (("pause", "Paused"), ("resume", "Running"), ("terminate", "Terminated")):
            self.assertEqual(self.cli(verb, "wished").out, f"sandbox/wished desiredState {state} in namespace default\n")
            after = self.object("wished")
            self.assertEqual(after["spec"], {**before["spec"], "desiredState": state})
        self.assertIn("is Terminated, and that is final", self.cli("resume", "wished", code=REFUSED).err)

    def test_asks_for_a_look_by_an_annotation(self):
        before = self.declare("asked")
        self.assertEqual(self.cli("reconcile", "asked").out, "sandbox/asked look requested in namespace default\n")
        after = self.object("asked")
        self.assertRegex(after["metadata"]["annotations"]["sandfleet.dev/reconcile-requested-at"], "^20[0-9-]+T[0-9:.]+Z$")
        self.assertEqual((after["spec"], after["metadata"]["generation"]), (before["spec"], before["metadata"]["generation"]))
        self.cli("apply", "-f", "-", stdin=MANIFEST.format(name="asked"))
        self.assertEqual(self.object("asked")["metadata"]["annotations"], after["metadata"]["annotations"], "apply took it away")

    def test_waits_for_the_controller(self):
        self.declare("awaited")
        with Running("pause", "awaited", "--wait", env=environment(KUBECONFIG=str(self.kubeconfig))) as waiting:
            waiting.line_with("waiting for sandbox/awaited")
            self.report("awaited", "Paused", "Paused")
            self.assertEqual(waiting.process.wait(30), DONE, waiting.seen)
        self.assertIn("is the controller running?", self.cli("apply", "-f", "-", "--wait", "--timeout", "1", code=TIMED_OUT,
                                                             stdin=MANIFEST.format(name="awaited")).err)
        # Now the word was ours, and nobody else's.
        self.assertEqual(self.object("awaited")["spec"]["desiredState"], "Running")

    def test_deletes_by_policy_and_waits_until_it_is_gone(self):
        self.declare("ended")
        path = self.path("ended")
        kept = self.cluster.ask("PATCH", path, {"metadata": {"finalizers": ["sandfleet.dev/e2b-sandbox"]}}, "application/merge-patch+json")
        self.assertEqual(kept.status, 200)
        answer = self.cli("delete", "ended", "--policy", "Leave")
        self.assertEqual(answer.out, "sandbox/ended deletionPolicy Leave, deletion requested in namespace default\n")
        self.assertEqual(self.object("ended")["spec"]["deletionPolicy"], "Leave")
        with Running("delete", "ended", "--wait", env=environment(KUBECONFIG=str(self.kubeconfig))) as waiting:
            waiting.line_with("waiting for sandbox/ended: it is being deleted")
            self.cluster.ask("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            self.assertEqual(waiting.process.wait(30), DONE, waiting.seen)
        self.assertIsNone(self.object("ended"))
        self.assertIn("--remove-manifest is for a folder", self.cli("delete", "ended", "--remove-manifest", code=USAGE).err)


class Manifests(Cli):
    def test_applies_the_examples(self):
        for path in sorted((world.REPO / "examples").glob("*.yaml")):
            with self.subTest(path.name):
                self.assertIn(" applied", self.cli("apply", "-f", str(path), "-n", "elsewhere").out)
        self.addCleanup(self.cluster.ask, "DELETE", f"{GROUP}/sandboxproviders/default")
        again = self.cli("get", "configured", "-n", "elsewhere", "-o", "yaml").out
        self.assertEqual(self.cli("apply", "-f", "-", stdin=again).out, "sandbox/configured applied in namespace elsewhere\n")

    def test_refuses_by_file_line_field_rule_and_cure(self):
        self.declare("ruled")
        good = MANIFEST.format(name="ruled")
        for name, text, said in (
                ("immutable", good.replace("base", "other"),
                 "stdin.yaml:6:13: spec.template: template cannot be changed; put the old value back, or declare another object"),
                ("cel", good + "  keepAlive: {timeoutSeconds: 60, heartbeatSeconds: 30}\n",
                 "stdin.yaml:8:53: spec.keepAlive.heartbeatSeconds: heartbeatSeconds must be at most a third of "
                 "timeoutSeconds; lower it, or raise timeoutSeconds"),
                ("enum", good.replace("Running", "Pause"), "stdin.yaml:7:17: spec.desiredState: "),
                ("unknown", good + "  teplate: {}\n", "stdin.yaml:8:3: spec.teplate: "),
                ("type", good + "  keepAlive: {timeoutSeconds: soon}\n", "stdin.yaml:8:31: spec.keepAlive.timeoutSeconds: ")):
            with self.subTest(name):
                answer = self.cli("apply", "-f", "-", stdin=text, code=FAILED)
                self.assertTrue(answer.err.startswith("sandfleet: " + said), answer)
                self.assertEqual(len(answer.err.splitlines()), 1, answer)
        # Of several, none.
        both = MANIFEST.format(name="fresh") + "---\n" + good.replace("base", "other")
        self.assertIn("stdin.yaml:14:13: spec.template: ", self.cli("apply", "-f", "-", stdin=both, code=FAILED).err)
        self.assertIsNone(self.object("fresh"))
        self.assertEqual(self.cli("apply", "-f", "-", "-n", "gone", code=NOT_FOUND).err,
                         'sandfleet: there is no namespace "gone"; create it (kubectl create namespace gone), or name another with -n\n')

    def test_names_who_owns_a_field_and_takes_it_only_by_force(self):
        self.declare("shared")
        theirs = MANIFEST.format(name="shared").replace("Running", "Paused")
        taken = self.cluster.apply(self.path("shared"), theirs)
        self.assertEqual(taken.status, 200, taken.body)
        answer = self.cli("apply", "-f", "-", code=REFUSED, stdin=MANIFEST.format(name="shared"))
        self.assertEqual(answer.err,
                         'sandfleet: stdin.yaml:7:17: spec.desiredState: is set by "tests"; take it out of the manifest to '
                         "leave it to them, or apply with --force-conflicts to take it over\n")
        self.assertEqual(self.object("shared")["spec"]["desiredState"], "Paused")
        self.cli("apply", "-f", "-", "--force-conflicts", stdin=MANIFEST.format(name="shared"))
        self.assertEqual(self.object("shared")["spec"]["desiredState"], "Running")
        # What pause set is ours.
        self.cli("pause", "shared")
        self.cli("apply", "-f", "-", stdin=MANIFEST.format(name="shared"))
        self.assertEqual(self.object("shared")["spec"]["desiredState"], "Running")


class Watching(Cli):
    def test_watches_through_a_cut_and_a_compaction(self):
        self.declare("watched")
        with Wire(self.cluster.port) as wire:
            by_wire = environment(KUBECONFIG=str(self.rebuilt_kubeconfig(wire.port)))
            with Running("get", "-w", env=by_wire) as watch, Running("events", "-w", "-n", "team", env=by_wire) as events:
                watch.line_with("watched", "Unknown")
                events.line_with("No events found")
                self.report("watched", "Ready", "Running")
                watch.line_with("watched", "True", "Running")
                wire.cut()
                watch.line_with("warning: what is shown may be old, for the watch was cut off: ", "trying again")
                self.report("watched", "Ready", "Resumed")
                self.declare("born-meanwhile")
                wire.mend()
                watch.line_with("the watch goes on")
                watch.line_with("watched", "Resumed")
                # Neither etcd nor the server knows the past any more.
                self.cluster.api_server.kill()
                self.cluster.compact()
                self.cluster.start_api_server()
                self.report("watched", "Ready", "Compacted")
                watch.line_with("watched", "Compacted")
                self.cluster.ask("DELETE", self.path("watched"))
                watch.line_with("default/watched is gone")
                self.tell("late", "team", "uid", "after all that")
                events.line_with("sandbox/late", "after all that")
                self.assertIsNone(watch.process.poll())
                told = [line for line in watch.seen if line.startswith("born-meanwhile")]
                self.assertEqual(len(told), 1, watch.seen)


class Rights(Cli):
    def may(self, user, *verbs):
        for kind, text in (("roles", ROLE), ("rolebindings", BINDING)):
            made = self.cluster.apply(f"/apis/rbac.authorization.k8s.io/v1/namespaces/default/{kind}/{user}",
                                      text.format(user=user, verbs=", ".join(verbs)))
            self.assertIn(made.status, (200, 201), made.body)
        return self.cluster.kubeconfig(user, groups=[])

    def test_names_the_right_that_is_missing(self):
        self.declare("guarded")
        nobody = self.cluster.kubeconfig("nobody", groups=[])
        for line, right, exit_code in (
                ("get", "list sandboxes.sandfleet.dev in namespace default", REFUSED),
                ("get guarded", "get sandboxes.sandfleet.dev in namespace default", REFUSED),
                ("get -A", "list sandboxes.sandfleet.dev in the whole cluster", REFUSED),
                ("get sfp", "list sandboxproviders.sandfleet.dev in the whole cluster", REFUSED),
                ("describe guarded", "get sandboxes.sandfleet.dev in namespace default", REFUSED),
                ("events", "list events.events.k8s.io in namespace default", REFUSED),
                ("pause guarded", "get sandboxes.sandfleet.dev in namespace default", REFUSED),
                ("apply -f -", "patch sandboxes.sandfleet.dev in namespace default", REFUSED)):
            with self.subTest(line):
                answer = self.cli(*line.split(), kubeconfig=nobody, code=exit_code)
                self.assertIn(f"the right to {right} is missing: ask for a role that has it, and see with 'kubectl auth can-i ", answer.err)
        reader = self.may("reader", "get", "list")
        world.wait_until("the role", lambda: self.run_cli("get", kubeconfig=reader).code == DONE)
        for line, verb in (("pause guarded", "patch"), ("reconcile guarded", "patch"), ("delete guarded", "delete"), ("get -w", "watch")):
            with self.subTest(line):
                answer = self.cli(*line.split(), kubeconfig=reader, code=REFUSED)
                self.assertIn(f"the right to {verb} sandboxes.sandfleet.dev in namespace default is missing", answer.err)
        page = self.cli("describe", "guarded", kubeconfig=reader)
        self.assertIn("Events:           could not be read\n", page.out)
        self.assertIn("the right to list events.events.k8s.io in namespace default is missing", page.err)
        self.assertEqual(self.object("guarded")["spec"]["desiredState"], "Running")


class Definitions(Cli):
    """What it says to a cluster on its way to our definitions."""

    @classmethod
    def define(cls):
        cls.without_definitions = {line: cls.run_cli(*line.split()) for line in (
            "get", "get sfp", "pause demo", "events", "apply -f -", "delete demo")}
        cls.cluster.install_definition("sandboxes", definition("sandboxes").replace("v1alpha1", "v1beta1"), "/apis/sandfleet.dev/v1beta1")
        cls.with_other_version = cls.run_cli("get")
        cls.cluster.undefine("sandboxes")
        cls.cluster.install_definition("sandboxes", definition("sandboxes", without=["deletionPolicy"]))
        cls.with_older_definition = cls.run_cli("apply", "-f", "-", stdin=MANIFEST.format(name="old") + "  deletionPolicy: Leave\n")
        cls.with_some_definitions = cls.run_cli("get", "sfp")
        cls.cluster.redefine("sandboxes", definition("sandboxes"))

    def test_works_once_they_are_as_new_as_it(self):
        world.wait_until("every field", lambda: self.run_cli(
            "apply", "-f", "-", stdin=MANIFEST.format(name="probe") + "  deletionPolicy: Leave\n").code == DONE)

    def test_says_how_to_get_definitions_that_are_not_there(self):
        for line, answer in self.without_definitions.items():
            with self.subTest(line):
                if line == "events":  # Of what there never was.
                    self.assertEqual((answer.code, answer.err), (DONE, "No events found.\n"))
                    continue
                self.assertEqual((answer.code, answer.err), (
                    FAILED, f"sandfleet: the cluster at {self.cluster.url} has no definition of Sandbox (sandfleet.dev); {INSTALL}\n"))

    def test_tells_other_and_older_definitions(self):
        self.assertEqual((self.with_other_version.code, self.with_other_version.err), (
            FAILED, "sandfleet: the cluster serves sandfleet.dev as v1beta1, and this program speaks v1alpha1; use the sandfleet "
            f"of that release, or {INSTALL}\n"))
        self.assertEqual((self.with_older_definition.code, self.with_older_definition.err), (
            FAILED, "sandfleet: stdin.yaml:8:19: spec.deletionPolicy: is not known to this cluster; its definitions are older "
            f"than this program: {INSTALL}\n"))
        self.assertEqual((self.with_some_definitions.code, self.with_some_definitions.err), (
            FAILED, f"sandfleet: list sandboxproviders: the cluster has only some of the definitions of sandfleet.dev; {INSTALL}\n"))


class Ways(Cli):
    def test_says_what_is_wrong_with_a_kubeconfig(self):
        for name, wrong in wrong_kubeconfigs(self, self.cluster).items():
            with self.subTest(name):
                path = self.folder / f"bad-{name}"
                path.write_text(wrong.text)
                answer = self.cli("get", "demo", "--kubeconfig", str(path), code=REFUSED if wrong.denied else FAILED)
                says = wrong.says.replace("FILE", str(path)) + "\n"
                if wrong.file_is_wrong:
                    self.assertEqual(answer.err, f"sandfleet: {says}")
                self.assertTrue(answer.err.endswith(says), answer.err)
        missing = self.cli("get", "--kubeconfig", "/nowhere/config", code=FAILED)
        self.assertEqual(missing.err, "sandfleet: cannot read /nowhere/config: No such file or directory\n")

    def test_chooses_between_folder_and_cluster(self):
        folder = self.folder / "no-state"
        folder.mkdir()
        self.assertIn("is no state folder", self.cli("get", "--state", str(folder), code=NOT_FOUND).err)
        self.assertIn("is no state folder", self.cli("get", SANDFLEET_STATE=str(folder), code=NOT_FOUND).err)
        self.cli("get", "--context", "test", SANDFLEET_STATE=str(folder))
        home = self.folder / "home"
        (home / ".kube").mkdir(parents=True)
        nowhere = Answer(subprocess.run([world.programs_folder() / "sandfleet", "get"], env=environment(HOME=str(home)),
                                        capture_output=True, text=True))
        self.assertEqual((nowhere.code, nowhere.err), (
            USAGE, "sandfleet: nowhere to look: give --state DIR or set SANDFLEET_STATE for a standalone controller, or name a "
            "cluster by --kubeconfig FILE, KUBECONFIG or ~/.kube/config\n"))
        shutil.copy(self.kubeconfig, home / ".kube/config")
        found = subprocess.run([world.programs_folder() / "sandfleet", "get"], env=environment(HOME=str(home)),
                               capture_output=True, text=True)
        self.assertEqual(found.returncode, DONE, found.stderr)

    def test_is_a_plugin_of_kubectl(self):
        self.declare("plugged")
        path = f"{world.programs_folder()}:{os.environ['PATH']}"
        command = ["kubectl", "sandfleet"] if shutil.which("kubectl") else ["kubectl-sandfleet"]
        env = environment(PATH=path, KUBECONFIG=str(self.kubeconfig), HOME=str(self.folder))
        ask = lambda *words: subprocess.run([*command, *words], env=env, capture_output=True, text=True, timeout=60)  # noqa: E731
        listed = ask("get")
        self.assertEqual(listed.returncode, DONE, listed.stderr)
        self.assertIn("plugged", listed.stdout)
        self.assertIn("Usage: kubectl sandfleet get ", ask("get", "--help").stdout)
        nameless = ask("pause")
        self.assertEqual(nameless.stderr.splitlines()[0], "sandfleet: pause needs a name: kubectl sandfleet pause NAME")
        completion = subprocess.run(["kubectl_complete-sandfleet", "pause", "plu"], env=env, capture_output=True, text=True)
        self.assertEqual((completion.stdout, completion.stderr), ("plugged\n:4\n", ""))
        if command[0] == "kubectl":
            told = subprocess.run(["kubectl", "__complete", "sandfleet", "pause", "plu"], env=env, capture_output=True, text=True)
            self.assertEqual(told.stdout, "plugged\n:4\n", told.stderr)
        self.assertIn("Run 'kubectl sandfleet get --help' for its flags.", ask("get", "-o", "xml").stderr)


unittest.main()
