"""A controller that a cluster does not let begin: kubeconfigs, credentials, rights and definitions that are wrong, each
by itself. It ends with code 1 and says what to do, in one line. Each class has a cluster of its own."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster_world import CLUSTER_RULES, OWN, OWN_RULES, RBAC  # noqa: E402
from control_plane import ControlPlane, definition, world  # noqa: E402
from kubeconfigs import INSTALL, wrong_kubeconfigs  # noqa: E402

ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
BEGINS_IN_S = 60


def single_rights(rules):
    """(group, resource, verb, name) of each thing that the rules allow."""
    return [(group, resource, verb, name) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
            for verb in rule["verbs"] for name in rule.get("resourceNames", [""])]


def as_rule(right):
    group, resource, verb, name = right
    return {"apiGroups": [group], "resources": [resource], "verbs": [verb], **({"resourceNames": [name]} if name else {})}


def in_words(right, space):
    """As the controller and kubectl name it."""
    group, resource, verb, name = right
    plural, _, sub = resource.partition("/")
    kind = plural + (f".{group}" if group else "")
    where = f" in namespace {space}" if space else " in the whole cluster"
    told = f"{verb} {kind}{'/' + sub if sub else ''}{' ' + name if name else ''}{where}"
    see = (f"kubectl auth can-i {verb} {kind}{'/' + name if name else ''}{' --subresource=' + sub if sub else ''}"
           + (f" -n {space}" if space else " --all-namespaces"))
    return told, see


class Refused(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(world.temporary_folder("refused"))
        cls.cluster = cls.enterClassContext(ControlPlane(cls.folder / "cluster"))
        made = cls.cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": OWN}})
        assert made.status == 201, made
        cls.define()

    @classmethod
    def define(cls):
        cls.cluster.install_definitions()

    @classmethod
    def command(cls, kubeconfig, *arguments):
        own = [] if "--own-namespace" in arguments else ["--own-namespace", OWN]
        return [world.programs_folder() / "sandfleet-controller", "--kubeconfig", kubeconfig, "--metrics-port", "0",
                "--log-format", "json", *own, *arguments]

    @classmethod
    def error_of(cls, kubeconfig, *arguments):
        """It ends by itself; why."""
        surroundings = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")}
        done = subprocess.run(cls.command(kubeconfig, *arguments), capture_output=True, text=True, timeout=BEGINS_IN_S,
                              env={**surroundings, "HOME": str(cls.folder), "SSL_CERT_FILE": "/dev/null"})
        assert done.returncode == 1, f"{done.returncode}\n{done.stderr}"
        last = json.loads(done.stderr.splitlines()[-1])
        assert (last["level"], last["message"]) == ("error", "cannot go on"), done.stderr
        return last["error"]

    def begins(self, kubeconfig, *arguments):
        """It becomes ready, and ends when asked; what it said."""
        ready, log = self.folder / "ready", self.folder / "log"
        log.unlink(missing_ok=True)
        program, *words = self.command(kubeconfig, "--ready-file", ready, *arguments)
        with world.Program(program.name, *words, log=log, ready_file=ready, deadline_s=BEGINS_IN_S,
                           env={"SSL_CERT_FILE": "/dev/null"}):
            pass
        return [json.loads(line) for line in log.read_text().splitlines()]


class Definitions(Refused):
    """What it says to a cluster on its way to our definitions."""

    @classmethod
    def define(cls):
        cls.without_definitions = cls.error_of(cls.cluster.kubeconfig())
        cls.cluster.install_definition("sandboxes", definition("sandboxes").replace("v1alpha1", "v1beta1"), "/apis/sandfleet.dev/v1beta1")
        cls.with_other_version = cls.error_of(cls.cluster.kubeconfig())
        cls.cluster.undefine("sandboxes")
        # One of before a field of the spec and one of the status.
        cls.cluster.install_definition("sandboxes", definition("sandboxes", without=["deletionPolicy", "endedBy"]))
        cls.cluster.install_definition("sandboxproviders", definition("sandboxproviders"))
        world.wait_until("the server to publish it", cls.publishes)
        cls.with_older_definitions = cls.error_of(cls.cluster.kubeconfig())
        cls.cluster.redefine("sandboxes", definition("sandboxes"))

    @classmethod
    def publishes(cls):
        return "sandboxproviders" in json.dumps(cls.cluster.ask("GET", "/openapi/v3/apis/sandfleet.dev/v1alpha1").body)

    def test_says_how_to_get_definitions_that_are_not_there(self):
        self.assertEqual(self.without_definitions,
                         f"the cluster at {self.cluster.url} has no definition of Sandbox (sandfleet.dev); {INSTALL}")

    def test_tells_other_and_older_definitions(self):
        self.assertEqual(self.with_other_version, "the cluster serves sandfleet.dev as v1beta1, and this program speaks v1alpha1; "
                         f"use the sandfleet of that release, or {INSTALL}")
        self.assertEqual(self.with_older_definitions, "the cluster's definitions of sandfleet.dev are older than this program: that of "
                         "Sandbox has no spec.deletionPolicy, status.endedBy; upgrade the chart with crds.install=true, or them "
                         "alone (kubectl apply -f crds/)")


class Rights(Refused):
    def user_without(self, number, right, cluster_wide):
        """Somebody of his own who may all of it but one thing; no cache has heard of him before."""
        user = f"lacks-{number}"
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
        for kind, rules, place in (("ClusterRole", CLUSTER_RULES, RBAC), ("Role", OWN_RULES, f"{RBAC}/namespaces/{OWN}")):
            kept = [each for each in single_rights(rules) if (each, kind == "ClusterRole") != (right, cluster_wide)]
            for collection, thing in (
                    (f"{kind.lower()}s", {"rules": [as_rule(each) for each in kept]}),
                    (f"{kind.lower()}bindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user},
                                                 "subjects": [subject]})):
                made = self.cluster.ask("POST", f"{place}/{collection}", {"metadata": {"name": user}, **thing})
                self.assertEqual(made.status, 201, made)
        return user

    def wait_for_rights_of(self, user, right, space):
        """Until the server goes by his roles."""
        group, resource, verb, _ = right
        asked = {"spec": {"resourceAttributes": {"verb": verb, "group": group, "resource": resource, "namespace": space}}}
        world.wait_until(f"rights of {user}", lambda: self.cluster.ask("POST", ACCESS, {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", **asked}, user=user,
            groups=("system:authenticated",)).body["status"]["allowed"])

    def test_does_not_begin_without_any_one_right_and_names_it(self):
        lacking = [(right, "") for right in single_rights(CLUSTER_RULES)] + [(right, OWN) for right in single_rights(OWN_RULES)]
        users = [self.user_without(number, right, not space) for number, (right, space) in enumerate(lacking)]
        self.wait_for_rights_of(users[-1], ("sandfleet.dev", "sandboxes", "get", ""), "")
        self.wait_for_rights_of(users[-1], ("coordination.k8s.io", "leases", "get", ""), OWN)
        for user, (right, space) in zip(users, lacking):
            told, see = in_words(right, space)
            with self.subTest(told):
                kubeconfig = self.cluster.kubeconfig(user, groups=["controllers"])
                if right[1] == "events":  # Nothing depends on them.
                    warned = [each for each in self.begins(kubeconfig) if each["message"] == "no events will be written"]
                    expected = [(told, see)] if right[2] == "create" else []
                    self.assertEqual([(each["without"], each["see_with"]) for each in warned], expected)
                    continue
                self.assertEqual(self.error_of(kubeconfig), (
                    f"the controller may not {told}, and does not begin without: install the chart with rbac.create=true, or bind "
                    f"its account to a role that has it, and see with '{see}'"))

    def test_names_all_rights_at_once(self):
        error = self.error_of(self.cluster.kubeconfig("nobody", groups=[]))
        for right in single_rights(CLUSTER_RULES):
            if right[1] != "events":
                self.assertIn(in_words(right, "")[0], error)
        for right in single_rights(OWN_RULES):
            self.assertIn(in_words(right, OWN)[0], error)

    def test_says_that_its_namespace_is_not_there(self):
        error = self.error_of(self.cluster.kubeconfig(), "--own-namespace", "gone")
        self.assertEqual(error, 'create secrets gone/sandfleet-fleet-key: the API server answered 404 NotFound: namespaces "gone" '
                         "not found; create it (kubectl create namespace gone), or name another by --own-namespace")


class Ways(Refused):
    def test_says_what_is_wrong_with_a_kubeconfig(self):
        for name, wrong in wrong_kubeconfigs(self, self.cluster).items():
            with self.subTest(name):
                path = self.folder / f"bad-{name}"
                path.write_text(wrong.text)
                error, says = self.error_of(path), wrong.says.replace("FILE", str(path))
                if wrong.file_is_wrong:
                    self.assertEqual(error, says)
                self.assertTrue(error.endswith(says), error)

    def test_says_what_it_lacks_to_find_a_cluster(self):
        self.assertEqual(self.error_of("/nowhere/config"), "cannot read /nowhere/config: No such file or directory")
        self.assertEqual(self.error_of(""), "no cluster to talk to: there is no ~/.kube/config, $KUBECONFIG is not set, and this is no "
                         "pod; give --kubeconfig; or give --manifests and --state, to work without a cluster")
        self.assertIn('there is no context "prod"; choose one of test', self.error_of(self.cluster.kubeconfig(), "--context", "prod"))


unittest.main()
