"""charts/sandfleet, by Helm itself, against the schemas of Kubernetes' own kinds and on a real API server: what it
renders is valid, what cannot work is refused in words that help, and nobody gets more rights than reviewed.

Reviewed rights are in rights.txt; UPDATE=1 writes it anew, for a review."""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from control_plane import ControlPlane, tools, world  # noqa: E402
import schemas  # noqa: E402

CHART = world.REPO / "charts/sandfleet"
VALUES = sorted((CHART / "ci").glob("*.yaml"))
IMAGE = "image.repository=registry.example.com/sandfleet/controller"
SERVED = "sandfleet.dev/v1alpha1/SandboxProvider"
OTHERS = ("sandfleet.dev/", "monitoring.coreos.com/")  # Kinds that are not Kubernetes' own.
# Values that came after the chart's first: a release of before is upgraded without them by --reuse-values.
LATER = ["controller.shards", "controller.leaseSeconds", "attach", "agentd", "networkPolicy.attachFrom"]
REVIEWED = HERE / "rights.txt"
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
ROLES = "/apis/rbac.authorization.k8s.io/v1"

REFUSED = [  # (values that are set, words of the message)
    ([], "image.repository is empty: name the place"),
    ([IMAGE, "controller.replicas=two"], "at '/controller/replicas': got string, want integer"),
    ([IMAGE, "controller.replicas=-1"], "at '/controller/replicas': minimum: got -1, want 0"),
    ([IMAGE, "controller.replica=2"], "at '/controller': additional properties 'replica' not allowed"),
    ([IMAGE, "controler.replicas=2"], "additional properties 'controler' not allowed"),
    ([IMAGE, "image.pullPolicy=Sometimes"], "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"),
    ([IMAGE, "image.digest=sha256:12"], "at '/image/digest': 'sha256:12' does not match pattern"),
    (["image.repository=https://registry.example.com/x"], "at '/image/repository': 'https://registry.example.com/x' does not"),
    ([IMAGE, "controller.log.level=loud"], "at '/controller/log/level': value must be one of 'debug', 'info', 'warn', 'error'"),
    ([IMAGE, "controller.watchNamespace=Team_A"], "at '/controller/watchNamespace': 'Team_A' does not match pattern"),
    ([IMAGE, "controller.terminationGracePeriodSeconds=5"], "terminationGracePeriodSeconds': minimum: got 5, want 30"),
    ([IMAGE, "metrics.port=80"], "at '/metrics/port': minimum: got 80, want 1,024"),
    ([IMAGE, "attach.port=443"], "at '/attach/port': minimum: got 443, want 1,024"),
    ([IMAGE, "attach.port=8080"], "attach.port and metrics.port are both 8080; a pod has each once"),
    ([IMAGE, "attach.extraNames={https://a.example}"], "at '/attach/extraNames/0': 'https://a.example' does not match"),
    ([IMAGE, "attach.extraNames={a.example:443}"], "at '/attach/extraNames/0': 'a.example:443' does not match"),
    ([IMAGE, "attach.secretName=tls,attach.extraNames={a}"], "that of attach.secretName has its own"),
    ([IMAGE, "attach.enabled=false"], "attach.enabled is false: set agentd.enabled=false too, or attach.enabled=true"),
    ([IMAGE, "agentd.enabled=maybe"], "at '/agentd/enabled': got string, want boolean"),
    ([IMAGE, "agentd.socket.folder=run/sandfleet"], "at '/agentd/socket/folder': 'run/sandfleet' does not match pattern"),
    ([IMAGE, "agentd.socket.folder=/run/../etc"], "at '/agentd/socket/folder': '/run/../etc' does not match pattern"),
    ([IMAGE, "agentd.socket.mode=rw"], "at '/agentd/socket/mode': 'rw' does not match pattern"),
    ([IMAGE, "agentd.socket.group=harness"], "at '/agentd/socket/group': got string, want integer"),
    ([IMAGE, "agentd.drainSeconds=601"], "at '/agentd/drainSeconds': maximum: got 601, want 600"),
    ([IMAGE, "agentd.maxUnavailable=0"], "at '/agentd/maxUnavailable': minimum: got 0, want 1"),
    ([IMAGE, "rbac.readSecretsIn={a,a}"], "at '/rbac/readSecretsIn': items at 0 and 1 are equal"),
    ([IMAGE, "networkPolicy.egressPorts=null"], "at '/networkPolicy': missing property 'egressPorts'"),
    ([IMAGE, "provider.create=true"], "the cluster does not serve SandboxProvider yet; install without it"),
]
REFUSED_WHERE_SERVED = [
    ([IMAGE, "provider.create=true"], "provider.api.url is empty: give the base URL of the E2B API"),
    ([IMAGE, "provider.create=true", "provider.api.url=https://api.e2b.app"], "provider.data.url is empty: give the base URL"),
    ([IMAGE, "provider.create=true", "provider.api.url=api.e2b.app"], "at '/provider/api/url': 'api.e2b.app' does not match"),
]


def helm(*arguments, kubeconfig="/dev/null"):
    with tempfile.TemporaryDirectory() as home:  # It keeps what it has discovered of a server there.
        done = subprocess.run([tools() / "helm", *map(str, arguments)], capture_output=True, text=True, timeout=50,
                              env={"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": str(kubeconfig)})
    return done.returncode, done.stdout, done.stderr


@functools.cache
def rendered(*arguments, chart=CHART):
    code, output, complaints = helm("template", "sandfleet", chart, "--namespace", "sandfleet", "--api-versions", SERVED,
                                    *arguments)
    assert code == 0, complaints
    return [document for document in yaml.load_all(output, yaml.CSafeLoader) if document]


def older_chart(folder):
    """The chart with the defaults of its first version, which are what --reuse-values puts in the place of its own."""
    chart = pathlib.Path(shutil.copytree(CHART, folder / "sandfleet"))
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for path in LATER:
        *above, last = path.split(".")
        del functools.reduce(dict.__getitem__, above, values)[last]
    (chart / "values.yaml").write_text(yaml.safe_dump(values))
    return chart


def find(documents, kind, name=None):
    (found,) = [each for each in documents if each["kind"] == kind and name in (None, each["metadata"]["name"])]
    return found


class Rendered(unittest.TestCase):
    def test_passes_lint(self):
        for values in VALUES:
            with self.subTest(values.name):
                code, output, complaints = helm("lint", "--strict", CHART, "--values", values, "--set", "provider.create=false")
                self.assertEqual(code, 0, output + complaints)
                self.assertNotIn("[WARNING]", output)
                self.assertNotIn("[ERROR]", output)

    def test_fits_the_schemas_of_kubernetes(self):
        for values in VALUES:
            for document in rendered("--values", values):
                name = f"{values.name}: {document['kind']} {document['metadata']['name']}"
                if document["apiVersion"].startswith(OTHERS):
                    continue
                with self.subTest(name):
                    kubernetes_validate.validate(document, "1.37", strict=True)

    def test_every_object_says_whose_it_is(self):
        for values in VALUES:
            for document in rendered("--values", values):
                with self.subTest(f"{values.name}: {document['kind']}"):
                    labels = document["metadata"]["labels"]
                    self.assertEqual([labels[f"app.kubernetes.io/{each}"] for each in ("instance", "part-of", "managed-by")],
                                     ["sandfleet", "sandfleet", "Helm"])
                    if document["kind"] in ("Deployment", "DaemonSet", "Service", "Role", "Secret", "ServiceAccount", "NetworkPolicy",
                                            "PodDisruptionBudget", "ServiceMonitor", "Pod"):
                        self.assertIn("namespace", document["metadata"])

    def test_selects_its_own_pods(self):
        documents = rendered("--values", CHART / "ci/everything.yaml")
        controller, agentd = (find(documents, kind)["spec"] for kind in ("Deployment", "DaemonSet"))
        more = [find(documents, "Service", "sandfleet-attach")["spec"]["selector"],
                find(documents, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
                *(each["labelSelector"]["matchLabels"] for each in
                  controller["template"]["spec"]["topologySpreadConstraints"])]
        for name, spec, other, more in (("controller", controller, agentd, more), ("agentd", agentd, controller, [])):
            service = find(documents, "Service", f"sandfleet-{name}")
            policy = find(documents, "NetworkPolicy", f"sandfleet-{name}")["spec"]
            selectors = [spec["selector"]["matchLabels"], service["spec"]["selector"], policy["podSelector"]["matchLabels"], *more]
            for selector in selectors:
                self.assertLessEqual(selector.items(), spec["template"]["metadata"]["labels"].items())
                for others in (find(documents, "Pod"), other["template"]):
                    self.assertFalse(selector.items() <= others["metadata"]["labels"].items())
            monitor = find(documents, "ServiceMonitor", f"sandfleet-{name}")["spec"]
            self.assertLessEqual(monitor["selector"]["matchLabels"].items(), service["metadata"]["labels"].items())
            ports = {port["name"] for port in service["spec"]["ports"]}
            self.assertIn(monitor["endpoints"][0]["port"], ports)

    def test_clients_dial_the_attach_service_by_names_of_its_certificate(self):
        documents = rendered("--values", CHART / "ci/everything.yaml")
        flags = self.flags(documents)
        self.assertEqual(flags["--attach-name"], ["sandfleet-attach.sandfleet.svc", "sandfleet-attach.sandfleet.svc.cluster.local",
                                                  "attach.example.com", "10.0.0.7", "fd00::7"])
        self.assertNotIn("--attach-secret", flags)
        (service,) = find(documents, "Service", "sandfleet-attach")["spec"]["ports"]
        (container,) = find(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertEqual((service["port"], [str(ports[service["targetPort"]])]), (443, flags["--attach-port"]))
        policy = find(documents, "NetworkPolicy", "sandfleet-controller")["spec"]
        allowed = {rule["ports"][0]["port"]: rule["from"] for rule in policy["ingress"]}
        agentd = find(documents, "DaemonSet")["spec"]["selector"]["matchLabels"]
        self.assertEqual([each["podSelector"]["matchLabels"] for each in allowed["attach"]],
                         [{"example.com/harness": "true"}, agentd])
        (rule,) = find(documents, "Role", "sandfleet-attach-ca")["rules"]
        self.assertEqual(rule["resourceNames"], [flags["--release"][0] + "-attach-ca"])

    def test_the_attach_service_takes_somebody_elses_certificate(self):
        flags = self.flags(rendered("--values", CHART / "ci/one-namespace.yaml"))
        self.assertEqual((flags["--attach-secret"], flags.get("--attach-name")), (["attach-tls"], None))

    def test_the_attach_service_counts_clients_from_outside_by_their_own_addresses(self):
        for kind, policy in [("ClusterIP", None), ("NodePort", "Local"), ("LoadBalancer", "Local")]:
            documents = rendered("--values", CHART / "ci/least.yaml", "--set", f"attach.service.type={kind}")
            service = find(documents, "Service", "sandfleet-attach")["spec"]
            self.assertEqual((service["type"], service.get("externalTrafficPolicy")), (kind, policy))

    def test_without_the_attach_service_nothing_of_it_is_there(self):
        documents = rendered("--values", CHART / "ci/least.yaml", "--set", "attach.enabled=false,agentd.enabled=false")
        self.assertFalse([flag for flag in self.flags(documents) if "attach" in flag])
        left = [(each["kind"], each["metadata"]["name"]) for each in documents
                if "attach" in yaml.dump(each) and each["kind"] != "CustomResourceDefinition"]  # Its fields speak of it.
        self.assertEqual(left, [("ClusterRole", "sandfleet-sandfleet-attach")])  # It may be granted beforehand.
        self.assertNotIn("reviews", yaml.dump(documents))

    def test_values_of_an_older_release_mean_the_same(self):
        with world.temporary_folder("chart") as folder:
            for some in ([], ["attach.port=9443"], ["attach.enabled=false", "agentd.enabled=false"],
                         ["attach.service.type=NodePort"], ["agentd.serviceAccount.create=false"], ["agentd.drainSeconds=0"]):
                with self.subTest(some):
                    arguments = ["--values", str(CHART / "ci/least.yaml"), *(word for each in some for word in ("--set", each))]
                    chart = older_chart(folder / "-".join(some or ["none"]))
                    self.assertEqual(rendered(*arguments, chart=chart), rendered(*arguments))

    def test_a_release_of_before_agentd_gets_it_where_it_can_work(self):
        with world.temporary_folder("chart") as folder:
            off = ["--values", str(CHART / "ci/least.yaml"), "--set", "attach.enabled=false"]
            self.assertEqual(rendered(*off, chart=older_chart(folder)), rendered(*off, "--set", "agentd.enabled=false"))

    def test_agentd_asks_the_attach_service_of_its_release_and_stands_where_harnesses_look(self):
        documents = rendered("--values", CHART / "ci/everything.yaml")
        agentd = find(documents, "DaemonSet")["spec"]["template"]["spec"]
        (container,) = agentd["containers"]
        flags = self.flags(documents, "DaemonSet")
        (url,) = flags["--attach-url"]
        self.assertIn(url.removeprefix("https://"), self.flags(documents)["--attach-name"])
        volumes = {each["name"]: each for each in agentd["volumes"]}
        mounts = {each["name"]: each for each in container["volumeMounts"]}
        self.assertEqual(volumes["attach-ca"]["configMap"]["name"], self.flags(documents)["--release"][0] + "-attach-ca")
        self.assertEqual(flags["--attach-ca"], [mounts["attach-ca"]["mountPath"] + "/ca.crt"])
        self.assertEqual(volumes["executor-ca"]["configMap"]["name"], "router-ca")
        self.assertEqual(flags["--executor-ca"], [mounts["executor-ca"]["mountPath"] + "/bundle.pem"])
        self.assertEqual(volumes["socket"]["hostPath"], {"path": "/var/run/team/sandboxes", "type": "DirectoryOrCreate"})
        self.assertEqual(flags["--socket"], [mounts["socket"]["mountPath"] + "/agentd.sock"])
        self.assertNotIn("readOnly", mounts["socket"])
        self.assertEqual((flags["--socket-mode"], flags["--socket-group"]), (["0666"], ["2000"]))
        self.assertGreater(agentd["terminationGracePeriodSeconds"], int(flags["--drain-seconds"][0]) + 10)
        self.assertEqual({probe: container[probe]["httpGet"]["path"] for probe in container if probe.endswith("Probe")},
                         {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"})
        self.assertEqual([port["name"] for port in container["ports"]], ["metrics"])
        (to_attach,) = [rule for rule in find(documents, "NetworkPolicy", "sandfleet-agentd")["spec"]["egress"]
                        if rule["ports"][0]["port"] == "attach"]
        self.assertEqual(to_attach["to"][0]["podSelector"]["matchLabels"],
                         find(documents, "Deployment")["spec"]["selector"]["matchLabels"])

    def test_agentd_may_see_the_sandboxes_of_the_namespaces_that_are_kept_and_nothing_else(self):
        for values, scope, space in (("least", "ClusterRole", None), ("one-namespace", "Role", "team-a")):
            documents = rendered("--values", CHART / f"ci/{values}.yaml")
            account = find(documents, "DaemonSet")["spec"]["template"]["spec"]["serviceAccountName"]
            bound = [each for each in documents if "subjects" in each and each["subjects"][0].get("name") == account]
            (binding,) = bound
            self.assertEqual((binding["roleRef"]["kind"], binding["metadata"].get("namespace")), (scope, space))
            role = find(documents, scope, binding["roleRef"]["name"])
            self.assertEqual(role["rules"], [{"apiGroups": ["sandfleet.dev"], "resources": ["sandboxes"],
                                              "verbs": ["get", "list", "watch"]}])
            self.assertEqual(role["metadata"].get("namespace"), space)
            self.assertEqual(self.flags(documents, "DaemonSet").get("--namespace"), space and [space])

    def test_without_agentd_nothing_of_it_is_there(self):
        documents = rendered("--values", CHART / "ci/least.yaml", "--set", "agentd.enabled=false")
        self.assertNotIn("agentd", yaml.dump(documents))

    def test_a_harness_finds_the_socket_of_the_chart_and_a_token_that_is_good_there(self):
        account, bound, harness = yaml.safe_load_all((world.REPO / "examples/kubernetes/harness.yaml").read_text())
        documents = rendered("--values", CHART / "ci/least.yaml")
        spec = harness["spec"]
        (container,) = spec["containers"]
        volumes = {each["name"]: each for each in spec["volumes"]}
        mounts = {each["name"]: each for each in container["volumeMounts"]}
        agentd = find(documents, "DaemonSet")["spec"]["template"]["spec"]
        folder = {each["name"]: each for each in agentd["volumes"]}["socket"]["hostPath"]["path"]
        self.assertEqual(volumes["sandfleet"]["hostPath"], {"path": folder, "type": "Directory"})
        self.assertEqual((mounts["sandfleet"]["mountPath"], mounts["sandfleet"]["readOnly"]), (folder, True))
        flags = self.flags(documents, "DaemonSet")
        self.assertEqual([str(each) for each in spec["securityContext"]["supplementalGroups"]], flags["--socket-group"])
        (token,) = [each["serviceAccountToken"] for each in volumes["attach-token"]["projected"]["sources"]]
        self.assertEqual(token["audience"], "sandfleet.dev/attach")
        environment = {each["name"]: each["value"] for each in container["env"]}
        self.assertEqual(environment["SANDFLEET_TOKEN_FILE"], f"{mounts['attach-token']['mountPath']}/{token['path']}")
        self.assertEqual(spec["serviceAccountName"], account["metadata"]["name"])
        self.assertEqual(bound["subjects"][0]["name"], account["metadata"]["name"])
        find(documents, "ClusterRole", bound["roleRef"]["name"])
        for document in (account, bound, harness):
            kubernetes_validate.validate(document, "1.37", strict=True)

    @staticmethod
    def flags(documents, kind="Deployment"):
        (container,) = find(documents, kind)["spec"]["template"]["spec"]["containers"]
        flags = {}
        for flag, value in (argument.split("=", 1) for argument in container["args"]):
            flags.setdefault(flag, []).append(value)
        return flags

    def test_pods_are_as_restricted_as_can_be(self):
        documents = rendered("--values", CHART / "ci/least.yaml")
        for spec in (find(documents, "Deployment")["spec"]["template"]["spec"], find(documents, "Pod")["spec"]):
            self.assertEqual((spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["seccompProfile"]),
                             (True, {"type": "RuntimeDefault"}))
            for container in spec["containers"]:
                self.assertEqual(container["securityContext"], {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
                self.assertIn("memory", container["resources"]["limits"])

    def test_agentd_is_root_without_a_capability_and_takes_what_a_node_wants_besides(self):
        for values, changed in (("least", {"runAsGroup": 65532}),
                                ("everything", {"runAsGroup": 2000, "runAsUser": 2000, "seLinuxOptions": {"type": "spc_t"}})):
            spec = find(rendered("--values", CHART / f"ci/{values}.yaml"), "DaemonSet")["spec"]["template"]["spec"]
            self.assertEqual(spec["securityContext"], {"seccompProfile": {"type": "RuntimeDefault"}})
            self.assertEqual(spec["containers"][0]["securityContext"], {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
                "runAsUser": 0, **changed})
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & spec.keys())
            self.assertIn("memory", spec["containers"][0]["resources"]["limits"])

    def test_refuses_what_cannot_work_and_says_why(self):
        for cases, more in ((REFUSED, []), (REFUSED_WHERE_SERVED, ["--api-versions", SERVED])):
            for values, words in cases:
                with self.subTest(values):
                    code, _, complaints = helm("template", "sandfleet", CHART, *more,
                                               *(word for each in values for word in ("--set", each)))
                    self.assertEqual(code, 1)
                    self.assertIn(words, complaints)

    def test_every_value_is_in_the_schema_and_is_used(self):
        def paths(values, schema, path=""):
            for key, value in values.items():
                self.assertIn(key, schema["properties"], path)
                inner = schema["properties"][key]
                if isinstance(value, dict) and inner.get("properties"):
                    self.assertIs(inner.get("additionalProperties"), False, f"{path}.{key}")
                    here = f"{path}.{key}".removeprefix(".")
                    free = key == "resources" or here.split(".")[0] in LATER
                    wanted = [each for each in value if not free and f"{here}.{each}" not in LATER]
                    self.assertEqual(inner.get("required", []), wanted, here)
                    yield from paths(value, inner, f"{path}.{key}")
                else:
                    yield f"{path}.{key}"

        schema = json.loads((CHART / "values.schema.json").read_text())
        templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*.*"))
        for path in paths(yaml.safe_load((CHART / "values.yaml").read_text()), schema):
            with self.subTest(path):
                # By itself, or as a part of what is rendered whole.
                self.assertTrue(any(re.search(rf"\.{word}\b", templates) for word in path.split(".")[-2:]))


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(world.temporary_folder("chart"))
        cls.cluster = cls.enterClassContext(ControlPlane(folder / "cluster", controllers=True))
        cls.kubeconfig = cls.cluster.kubeconfig()
        for name, level in (("sandfleet", "privileged"), ("team-a", "restricted"), ("team-b", "restricted")):
            made = cls.cluster.ask("POST", "/api/v1/namespaces", {
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}})
            assert made.status == 201, made
        cls.dry_run = cls.helm("install", "--dry-run=server", "--values", CHART / "ci/least.yaml")
        cls.install = cls.helm("install", "--values", CHART / "ci/least.yaml", "--set", "rbac.readSecretsIn={team-a}")

    @classmethod
    def helm(cls, verb, *arguments):
        code, output, complaints = helm(verb, "sandfleet", CHART, "--namespace", "sandfleet", *arguments, kubeconfig=cls.kubeconfig)
        return code, output + complaints

    def get(self, path):
        return self.cluster.ask("GET", path)

    def test_a_server_takes_all_of_it(self):
        self.assertEqual(self.dry_run[0], 0, self.dry_run[1])
        self.assertEqual(self.install[0], 0, self.install[1])
        self.assertIn("helm -n sandfleet test sandfleet", self.install[1])
        self.assertNotIn("Warning", self.install[1])
        self.wait_for_pods("sandfleet", "sandfleet-controller")
        daemons = self.get("/apis/apps/v1/namespaces/sandfleet/daemonsets/sandfleet-agentd")
        self.assertEqual(daemons.status, 200)

    def wait_for_pods(self, space, name):
        """Only admission stands between a pod and a node here: pods that it takes come to be."""
        deployment = f"/apis/apps/v1/namespaces/{space}/deployments/{name}"
        world.wait_until("pods", lambda: self.get(deployment).body["status"].get("unavailableReplicas") == 2)

    def test_a_namespace_that_refuses_folders_of_nodes_is_told_before_anything_is_made(self):
        release = ["--values", CHART / "ci/least.yaml", "--set", "crds.install=false", "--namespace", "team-a"]
        code, output, complaints = helm("install", "third", CHART, *release, kubeconfig=self.kubeconfig)
        self.assertEqual(code, 1, output)
        self.assertIn("namespace team-a enforces the Pod Security level restricted", complaints)
        self.assertIn("or set agentd.enabled=false", complaints)
        self.assertEqual(self.get("/apis/apps/v1/namespaces/team-a/deployments").body["items"], [])

    def test_the_servers_flow_control_knows_the_controller(self):
        account = ("system:serviceaccounts", "system:serviceaccounts:sandfleet", "system:authenticated")
        user = "system:serviceaccount:sandfleet:sandfleet-controller"

        def counted():
            answer = self.cluster.ask("GET", "/apis/sandfleet.dev/v1alpha1/sandboxes", user=user, groups=account)
            return answer.status == 200 and 'flow_schema="sandfleet-sandfleet-controller"' in self.cluster.metrics()

        world.wait_until("requests under the controller's own flow schema", counted)

    def test_upgrade_brings_a_provider_and_uninstall_leaves_what_has_sandboxes(self):
        release = ["--values", CHART / "ci/least.yaml", "--set", "fullnameOverride=second,agentd.enabled=false",
                   "--namespace", "team-b"]
        code, output, complaints = helm("install", "second", CHART, *release, "--set", "crds.install=false",
                                        kubeconfig=self.kubeconfig)
        self.assertEqual(code, 0, output + complaints)
        self.wait_for_pods("team-b", "second-controller")  # Under `restricted`.
        url = ["--set", "provider.api.url=http://10.0.0.1:3000", "--set", "provider.data.url=http://10.0.0.1:3001"]
        code, output, complaints = helm("upgrade", "second", CHART, *release, *url, "--set", "crds.install=false", "--set",
                                        "provider.create=true,provider.name=second", kubeconfig=self.kubeconfig)
        self.assertEqual(code, 0, output + complaints)
        provider = "/apis/sandfleet.dev/v1alpha1/sandboxproviders/second"
        self.assertEqual(self.get(provider).body["spec"]["data"]["routing"], "Subdomain")
        code, output, complaints = helm("uninstall", "second", "--namespace", "team-b", kubeconfig=self.kubeconfig)
        self.assertEqual(code, 0, output + complaints)
        self.assertEqual(self.get(provider).status, 200)
        self.assertEqual(self.get("/apis/apps/v1/namespaces/team-b/deployments/second-controller").status, 404)

    def test_upgrade_takes_a_release_of_before_the_attach_service_along(self):
        def older(verb, *arguments):
            code, output, complaints = helm(*verb.split(), "older", *arguments, "--namespace", "team-b", kubeconfig=self.kubeconfig)
            self.assertEqual(code, 0, output + complaints)
            return output

        with world.temporary_folder("chart") as folder:
            older("install", older_chart(folder), "--values", CHART / "ci/least.yaml", "--set", "crds.install=false")
        older("upgrade", CHART, "--reuse-values", "--set", "controller.replicas=1")
        self.assertNotIn("attach", json.loads(older("get values", "--all", "--output", "json")), "these are not of before")
        service = self.get("/api/v1/namespaces/team-b/services/older-sandfleet-attach")
        self.assertEqual(service.body["spec"]["type"], "ClusterIP")
        daemons = self.get("/apis/apps/v1/namespaces/team-b/daemonsets")
        self.assertEqual(daemons.body["items"], [], "this namespace lets none come to be")
        older("uninstall")

    def test_nobody_may_do_more_than_was_reviewed(self):
        for role in ("view", "edit", "admin", "sandfleet-sandfleet-attach"):
            made = self.cluster.ask("POST", f"{ROLES}/namespaces/team-a/rolebindings", {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": role}]})
            self.assertEqual(made.status, 201, made.body)
        world.wait_until("rights to be gathered", lambda: any(
            "sandboxes" in rule["resources"] for rule in self.rules("admin", "team-a")))
        found = ["What each may do beyond what everybody may: reviewed, and held against a real API server."]
        account, agentd = (f"system:serviceaccount:sandfleet:sandfleet-{each}" for each in ("controller", "agentd"))
        for user, space in [(account, "sandfleet"), (account, "team-a"), (account, "team-b"), (agentd, "sandfleet"), (agentd, "team-a"),
                            ("system:serviceaccount:sandfleet:default", "sandfleet")]:
            found += ["", f"{user} in {space}", *self.lines(self.rules(user, space))]
        ours = [rule for rule in self.all_rules("nobody", "sandfleet") if rule not in self.all_rules("nobody", "team-b")]
        found += ["", "everybody in sandfleet", *self.lines(ours)]
        for role in ("view", "edit", "admin", "sandfleet-sandfleet-attach"):
            ours = [rule for rule in self.rules(role, "team-a") if "sandfleet.dev" in rule["apiGroups"]]
            found += ["", f"a user with the role {role} in team-a, of ours", *self.lines(ours)]
        text = "\n".join(found) + "\n"
        if os.environ.get("UPDATE"):
            REVIEWED.write_text(text)
        self.assertEqual(text, REVIEWED.read_text())

    def rules(self, user, space):
        """What a user has in a namespace and one whom nobody gave a right has not."""
        everybody = self.all_rules("nobody:" if ":" in user else "nobody", space)
        return [rule for rule in self.all_rules(user, space) if rule not in everybody]

    def all_rules(self, user, space):
        groups = ("system:authenticated",) + (("system:serviceaccounts",) if ":" in user else ())
        answer = self.cluster.ask("POST", ACCESS, {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
                                                   "spec": {"namespace": space}}, user=user, groups=groups)
        self.assertEqual(answer.status, 201, answer.body)
        return answer.body["status"]["resourceRules"]

    @staticmethod
    def lines(rules):
        for rule in rules:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], rule
        lines = sorted({f"  {group or 'core'}/{resource}" + (f" {', '.join(rule['resourceNames'])}" if rule.get("resourceNames") else "")
                        + f": {verb}" for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
                        for verb in rule["verbs"]})
        merged = {}
        for line in lines:
            what, verb = line.rsplit(": ", 1)
            merged.setdefault(what, []).append(verb)
        return [f"{what}: {' '.join(verbs)}" for what, verbs in merged.items()] or ["  nothing"]


if __name__ == "__main__":
    schemas.run_among_them()
    import kubernetes_validate
    import yaml
    unittest.main()
