"""Controllers of ours in a real cluster, with a provider on this machine: what people do by kubectl, and what they
would see."""

import base64
import contextlib
import http.client
import json
import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from control_plane import GROUP, WRITES, ControlPlane, world  # noqa: E402
from wire import Wire  # noqa: E402, F401

BOOKS = "--bookkeeping"  # A provider's, where what runs in sandboxes does not matter.
OWN, TEAM = "sandfleet-system", "team"  # The controller's namespace, and a tenant's.
MERGE = "application/merge-patch+json"
USER, GROUPS = "sandfleet-controller", ("controllers",)  # Whom the API server takes a controller for.

CLUSTER_RULES = [
    {"apiGroups": ["sandfleet.dev"], "resources": ["sandboxes"], "verbs": ["get", "list", "watch", "patch", "delete"]},
    {"apiGroups": ["sandfleet.dev"], "resources": ["sandboxproviders"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": ["sandfleet.dev"], "resources": ["sandboxes/status", "sandboxproviders/status"], "verbs": ["patch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
]
OWN_RULES = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "create", "update"]},
    {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "create", "patch"]},
]
ATTACH_RULES = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
READ_SECRETS = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]


class Replica:
    """One sandfleet-controller; it reaches the API server through a wire of its own where it is given one. It is brisk
    and says much, or as people have it."""

    def __init__(self, cluster, folder, name, *arguments, wire=None, brisk=True):
        self.folder, self.name, self.program = folder / name, name, None
        self.ready = self.folder / "ready"
        self.folder.mkdir()
        kubeconfig = cluster.kubeconfig(USER, GROUPS)
        if wire is not None:
            text = kubeconfig.read_text().replace(cluster.url, f"https://127.0.0.1:{wire.port}")
            kubeconfig = self.folder / "kubeconfig"
            kubeconfig.touch(0o600)
            kubeconfig.write_text(text)
        self.arguments = ["--kubeconfig", kubeconfig, "--own-namespace", OWN,
                          *(["--poll-seconds", "2", "--log-level", "debug"] if brisk else []), *arguments]

    def launch(self):
        """Without waiting for it."""
        self.ready.unlink(missing_ok=True)
        self.program = world.Program("sandfleet-controller", *self.arguments, "--ready-file", self.ready, log=self.folder / "log",
                                     env={"SSL_CERT_FILE": "/dev/null"})  # Else read for each connection.
        return self

    def start(self):
        self.launch()
        world.wait_until(lambda: f"{self.name} ready\n{self.program.output()}",
                         lambda: self.ready.exists() or not self.program.alive(), 60)
        assert self.program.alive(), f"{self.name} ended:\n{self.program.output()}"
        return self

    def said(self, words):
        return (self.folder / "log").read_text(errors="replace").count(words)

    def metrics(self):
        return self._page("/metrics")

    def series(self):
        return world.series_in(self.metrics())

    def readiness(self):
        return self._page("/readyz")

    def _page(self, path):
        url = urllib.parse.urlsplit(json.loads((self.folder / "ready").read_text())["url"])
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read().decode()
    def warned(self, words):
        """The same, of what is for people who operate it."""
        return sum(" warning " in line and words in line for line in (self.folder / "log").read_text(errors="replace").splitlines())

    def acts(self):
        lost = self.said("we hold the lease no more")
        return self.said("we hold the lease") - lost > lost

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        self.program.kill() if kind else self.program.stop()


class ClusterWorld:
    def __init__(self, folder, cluster, provider):
        self.folder, self.cluster, self.provider, self.replicas = folder, cluster, provider, []
        cluster.install_definitions()
        for name in (OWN, TEAM):
            self.create("/api/v1/namespaces", {"metadata": {"name": name}})
        self.grant_all(CLUSTER_RULES)
        self.grant(OWN, "own", OWN_RULES)
        self.secret(OWN, "e2b-key", apiKey=provider.key)
        self.create(f"{GROUP}/sandboxproviders", {"metadata": {"name": "default"}, "spec": self.provider_spec()})

    # What people do.

    def create(self, collection, thing):
        kinds = {"sandboxes": "Sandbox", "sandboxproviders": "SandboxProvider"}
        kind = kinds.get(collection.rsplit("/", 1)[-1])
        if kind:
            thing = {"apiVersion": "sandfleet.dev/v1alpha1", "kind": kind, **thing}
        made = self.cluster.ask("POST", collection, thing)
        assert made.status == 201, made
        return made.body

    def provider_spec(self, **more):
        return {"api": {"url": self.provider.api_url}, "data": {"url": self.provider.data_url, "routing": "Header"},
                "credentialsSecretRef": {"name": "e2b-key"}, "settleSeconds": 5, **more}

    def secret(self, namespace, name, **values):
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        place = f"/api/v1/namespaces/{namespace}/secrets"
        if self.cluster.ask("GET", f"{place}/{name}").status == 200:
            patched = self.cluster.ask("PATCH", f"{place}/{name}", {"data": data}, MERGE)
            assert patched.status == 200, patched
        else:
            self.create(place, {"metadata": {"name": name}, "data": data})

    def grant_all(self, rules, name="controller"):
        self.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        self.create(f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, **self._binding("ClusterRole", name)})

    def let_in(self, user):
        """Somebody else who may do to Sandboxes what a controller may."""
        self.create(f"{RBAC}/clusterrolebindings", {"metadata": {"name": user}, **self._binding("ClusterRole", "controller", user)})

    def grant(self, namespace, name, rules):
        space = f"{RBAC}/namespaces/{namespace}"
        self.create(f"{space}/roles", {"metadata": {"name": name}, "rules": rules})
        self.create(f"{space}/rolebindings", {"metadata": {"name": name}, **self._binding("Role", name)})

    def regrant(self, role, rules):
        """What a role allows from now on: \"clusterroles/controller\", or f\"namespaces/{OWN}/roles/own\"."""
        changed = self.cluster.ask("PATCH", f"{RBAC}/{role}", {"rules": rules}, MERGE)
        assert changed.status == 200, changed

    def sandbox(self, name, template="base-executor", **spec):
        return self.create(self._sandboxes(), {"metadata": {"name": name}, "spec": {"template": {"id": template}, **spec}})

    def change(self, name, **spec):
        changed = self.cluster.ask("PATCH", f"{self._sandboxes()}/{name}", {"spec": spec}, MERGE)
        assert changed.status == 200, changed

    def annotate(self, name, key, value):
        annotated = self.cluster.ask("PATCH", f"{self._sandboxes()}/{name}", {"metadata": {"annotations": {key: value}}}, MERGE)
        assert annotated.status == 200, annotated

    def remove(self, *names):
        for name in names:
            removed = self.cluster.ask("DELETE", f"{self._sandboxes()}/{name}")
            assert removed.status == 200, removed

    def replica(self, name, *arguments, **settings):
        made = Replica(self.cluster, self.folder, name, *arguments, **settings)
        self.replicas.append(made)
        return made

    # What people see.

    def look(self, name):
        seen = self.cluster.ask("GET", f"{self._sandboxes()}/{name}")
        assert seen.status in (200, 404), seen
        return seen.body if seen.status == 200 else None

    def status(self, name):
        return (self.look(name) or {}).get("status", {})

    def provider_condition(self, kind, name="default"):
        status = self.cluster.ask("GET", f"{GROUP}/sandboxproviders/{name}").body.get("status", {})
        return next((each for each in status.get("conditions", []) if each["type"] == kind), {})

    def condition(self, name, kind="Ready"):
        return next((each for each in self.status(name).get("conditions", []) if each["type"] == kind), {})

    def names(self):
        return [each["metadata"]["name"] for each in self.cluster.ask("GET", self._sandboxes()).body["items"]]

    def events(self, name):
        found = self.cluster.ask("GET", f"/apis/events.k8s.io/v1/namespaces/{TEAM}/events").body["items"]
        return [each["reason"] for each in found if each["regarding"]["name"] == name]

    def story(self):
        """For a failed test: every status, and the ends of the logs."""
        statuses = {name: self.status(name) for name in self.names()}
        return "\n".join([str(statuses), *(f"--- {each.name}\n{each.program.output()[-8000:]}"
                                           for each in self.replicas if each.program)])

    def wait_for(self, what, check, deadline_s=40):
        return world.wait_until(lambda: f"{what}\n{self.story()}", check, deadline_s, 0.05)

    def wait_ready(self, *names, deadline_s=40):
        """{name: E2B sandbox} once all are Ready."""
        self.wait_for(f"{names} Ready", lambda: all(self.condition(name).get("status") == "True" for name in names), deadline_s)
        return {name: self.status(name)["sandboxID"] for name in names}

    def wait_gone(self, deadline_s=40):
        self.wait_for("nothing left", lambda: not self.names() and not self.provider.sandboxes(), deadline_s)

    def writes(self, name):
        """Writes of a Sandbox by controllers: those that changed something, and those that were refused."""
        return [f"{each['verb']} {each['objectRef'].get('subresource', '')} {each['responseStatus']['code']}".replace("  ", " ")
                for each in self.cluster.requests(USER, WRITES)
                if each["objectRef"]["resource"] == "sandboxes" and each["objectRef"].get("name") == name]

    def calls(self, *methods):
        """What the provider was asked, oldest first."""
        status, log = self.provider.ask("GET", "/_local/requests")
        assert status == 200, log
        return [f"{each['method']} {each['path']}" for each in log["requests"]
                if not each["path"].startswith("/_local") and (not methods or each["method"] in methods)]

    def created(self):
        return [each for each in self.calls("POST") if each.endswith("/sandboxes")]

    @staticmethod
    def _sandboxes():
        return f"{GROUP}/namespaces/{TEAM}/sandboxes"

    @staticmethod
    def _binding(kind, name, user=USER):
        return {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]}


@contextlib.contextmanager
def cluster_world(*provider_arguments, controllers=False):
    """An API server with our CRDs, a provider, and no controller of ours yet; afterwards nothing is left of them."""
    if BOOKS not in provider_arguments:
        world.need_root()
    with world.temporary_folder("cluster") as folder, ControlPlane(folder / "control-plane", controllers) as cluster:
        with world.Provider(folder / "provider", *provider_arguments) as provider:
            made = ClusterWorld(folder, cluster, provider)
            try:
                yield made
            finally:
                for replica in made.replicas:
                    if replica.program:
                        replica.program.kill()
        left = {pid: line for pid, line in world.processes_of(folder).items()
                if not any(part in line for part in ("etcd", "kube-apiserver", "kube-controller-manager"))}
        assert not left, f"processes left: {left}"
        assert not world.mounts_under(folder), f"mounts left: {world.mounts_under(folder)}"
