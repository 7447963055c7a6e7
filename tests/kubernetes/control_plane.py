"""A real Kubernetes API for tests: etcd, kube-apiserver and, where asked for, kube-controller-manager, on
free ports of 127.0.0.1 and with all that they write in one folder. Several run at once.

    with control_plane.ControlPlane(folder) as cluster:
        cluster.ask("GET", "/api/v1/namespaces")
        run("some-client", "--kubeconfig", cluster.kubeconfig())
"""

import base64
import collections
import contextlib
import functools
import http.client
import json
import pathlib
import random
import signal
import socket
import ssl
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import world  # noqa: E402

START_S = 120  # Idle it takes 3 to 7 s, 14 s with controllers.
STARTS = 3  # Somebody may take a port between its choice and its use.
SERVICES, SERVICE_ADDRESS = "10.96.0.0/16", "10.96.0.1"  # The first is always the API server's own.
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/sandfleet.dev/v1alpha1"
YAML, APPLY = "application/yaml", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"  # What `kubectl get` asks for.

AUDIT_MEGABYTES = 8192  # It is not rotated: what was written first counts, too.

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: {url}
    certificate-authority-data: {ca}
users:
- name: test
  user:
    {user}
contexts:
- name: test
  context:
    cluster: test
    user: test
"""

Answer = collections.namedtuple("Answer", "status body warnings")  # The body: JSON decoded, or text.


@functools.cache
def tools():
    """The folder of the programs; fails with the end of the build's log when there is none."""
    found = subprocess.run([world.REPO / "scripts/kubernetes", "where"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return pathlib.Path(found.stdout.strip())


def definition(name, without=()):
    """The text of one of our CRDs; `without` some of its fields it is one of before them."""
    lines = (world.REPO / f"crds/{name}.yaml").read_text().splitlines(keepends=True)
    depth = lambda line: len(line) - len(line.lstrip())  # noqa: E731
    for field in without:
        (start,) = [number for number, line in enumerate(lines) if line.strip() == f"{field}:"]
        end = next(number for number in range(start + 1, len(lines)) if depth(lines[number]) <= depth(lines[start]))
        del lines[start:end]
    return "".join(lines)


def free_ports(count):
    """Below those that the kernel lends to outgoing connections, so that they are still free when a program
    that listened on one is started again."""
    lent = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = set()
    while len(found) < count:
        port = random.randrange(10240, max(lent, 20480))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.add(port)
    return found


class Authority:
    """The certificate authority of one control plane, and what it has signed, by the openssl program."""

    def __init__(self, folder, address):
        self.folder = folder
        folder.mkdir(mode=0o700)
        (folder / "openssl.cnf").write_text("[req]\ndistinguished_name = name\n[name]\n")
        self._issue("ca", "/CN=test-ca", [],
                    ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"])
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "accounts.key")
        self.issue("server", "/CN=kube-apiserver", "extendedKeyUsage=serverAuth",
                   f"subjectAltName=IP:{address},IP:{SERVICE_ADDRESS},DNS:localhost,DNS:kubernetes.default.svc")

    def issue(self, name, subject, *extensions):
        self._issue(name, subject, ["-CA", "ca.crt", "-CAkey", "ca.key"],
                    ["basicConstraints=CA:FALSE", "keyUsage=critical,digitalSignature", *extensions])

    def expire(self, name):
        """What was issued is as if that had been long ago."""
        self._openssl("x509", "-x509toreq", "-in", name + ".crt", "-signkey", name + ".key", "-out", name + ".csr")
        self._openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-days", "-1", "-out", name + ".crt")

    def make_stranger(self, name):
        """Another authority, which has signed nothing here."""
        self._issue(name, f"/CN={name}", [], ["basicConstraints=critical,CA:TRUE"])

    def client(self, user, groups):
        """(certificate, key) of a user, made when first asked for."""
        name = "-".join(["client", user, *sorted(groups)]).replace("/", "_")
        if not self.path(name + ".crt").exists():
            self.issue(name, "".join(f"/O={group}" for group in groups) + f"/CN={user}", "extendedKeyUsage=clientAuth")
        return self.path(name + ".crt"), self.path(name + ".key")

    def path(self, name):
        return self.folder / name

    def _issue(self, name, subject, signer, extensions):
        self._openssl("req", "-config", "openssl.cnf", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                      "-nodes", "-days", "2", "-subj", subject, "-keyout", name + ".key", "-out", name + ".crt",
                      *signer, *(word for each in extensions for word in ("-addext", each)))

    def _openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, f"openssl {arguments}: {done.stderr}"


class ControlPlane:
    """Its data, ports and users stay the same when a part of it is killed and started again. With
    `controllers`, kube-controller-manager runs too: it makes each namespace's ServiceAccount, collects
    garbage and empties deleted namespaces; without it none of that happens."""

    address = "127.0.0.1"

    def __init__(self, folder, controllers=False):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.authority = Authority(self.folder / "pki", self.address)
        self.with_controllers = controllers
        self.audit_log = self.folder / "audit.log"
        self.etcd = self.api_server = self.controllers = None
        (self.folder / "audit-policy.yaml").write_text(AUDIT_POLICY)
        self._start_on_free_ports()
        if controllers:
            self.start_controllers()

    # Parts, each to be killed and started as a test wants it.

    def start_etcd(self):
        store = f"http://127.0.0.1:{self.store_port}"
        peer = f"http://127.0.0.1:{self.peer_port}"
        self.etcd = self._program(
            "etcd", "--name=test", f"--data-dir={self.folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
            f"--listen-client-urls={store}", f"--advertise-client-urls={store}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=test={peer}")

    def start_api_server(self):
        # The admission that gives pods their ServiceAccount waits for one that only a controller makes.
        admission = [] if self.with_controllers else ["--disable-admission-plugins=ServiceAccount"]
        pki = self.authority.path
        self.api_server = self._program(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.store_port}", f"--bind-address={self.address}",
            f"--secure-port={self.port}", f"--advertise-address={self.address}",
            f"--cert-dir={self.folder / 'api-server'}", f"--tls-cert-file={pki('server.crt')}",
            f"--tls-private-key-file={pki('server.key')}", f"--client-ca-file={pki('ca.crt')}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki('accounts.key')}", f"--service-account-signing-key-file={pki('accounts.key')}",
            f"--service-cluster-ip-range={SERVICES}", "--authorization-mode=Node,RBAC",
            f"--audit-policy-file={self.folder / 'audit-policy.yaml'}",
            f"--audit-log-path={self.audit_log}", f"--audit-log-maxsize={AUDIT_MEGABYTES}", *admission, *self.api_server_arguments())
        self.wait_ready()

    def api_server_arguments(self):
        """Those that hang on what is beside it: here nothing, so it is no endpoint of its own service."""
        return ["--endpoint-reconciler-type=none"]

    def wait_ready(self):
        self._wait("the API server to be ready", lambda: self.ask("GET", "/readyz").status == 200)

    def start_controllers(self):
        user = "system:kube-controller-manager"
        pki = self.authority.path
        self.controllers = self._program(
            "kube-controller-manager", f"--kubeconfig={self.kubeconfig(user, groups=[user])}", "--secure-port=0",
            "--leader-elect=false", "--use-service-account-credentials", f"--root-ca-file={pki('ca.crt')}",
            f"--service-account-private-key-file={pki('accounts.key')}")
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("controllers at work", lambda: self.ask("GET", account).status == 200)

    # Ways in.

    @property
    def url(self):
        return f"https://{self.address}:{self.port}"

    def kubeconfig(self, user="admin", groups=("system:masters",)):
        """A file for somebody with a client certificate; by default one who may do everything."""
        certificate, key = (base64.b64encode(path.read_bytes()).decode() for path in self.authority.client(user, groups))
        return self._kubeconfig(user, f"client-certificate-data: {certificate}\n    client-key-data: {key}")

    def account_kubeconfig(self, namespace, name, seconds=3600):
        """A file for a ServiceAccount, which must exist, with a token for so long."""
        made = self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
                        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                         "spec": {"expirationSeconds": seconds}})
        assert made.status == 201, made
        return self._kubeconfig(f"{namespace}-{name}", f"token: {made.body['status']['token']}")

    def ask(self, method, path, body=None, content_type="application/json", accept="application/json",
            user="admin", groups=("system:masters",)):
        """One request; a body that is not text is sent as JSON."""
        certificate, key = self.authority.client(user, groups)
        trust = ssl.create_default_context(cafile=self.authority.path("ca.crt"))
        trust.load_cert_chain(certificate, key)
        connection = http.client.HTTPSConnection(self.address, self.port, timeout=30, context=trust)
        sent = body if body is None or isinstance(body, str) else json.dumps(body)
        with contextlib.closing(connection):
            connection.request(method, path, sent and sent.encode(), {"Content-Type": content_type, "Accept": accept})
            return _answer(connection.getresponse())

    def apply(self, path, manifest, dry_run=False):
        """Server-side apply of one YAML document to the object at `path`."""
        options = "fieldManager=tests&force=true&fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.ask("PATCH", f"{path}?{options}", manifest, APPLY)

    def install_definitions(self):
        """Our CRDs, served."""
        for name in ("sandboxes", "sandboxproviders"):
            self.install_definition(name, definition(name))

    def install_definition(self, name, text, group=GROUP):
        """One CRD of ours, or another's of that name, served."""
        made = self.ask("POST", DEFINITIONS, text, YAML)
        assert made.status == 201, made
        world.wait_until(name, lambda: self.ask("GET", f"{group}/{name}").status == 200)

    def redefine(self, name, text):
        changed = self.ask("PATCH", f"{DEFINITIONS}/{name}.sandfleet.dev?fieldManager=tests&force=true", text, APPLY)
        assert changed.status == 200, changed

    def undefine(self, name):
        path = f"{DEFINITIONS}/{name}.sandfleet.dev"
        assert self.ask("DELETE", path).status == 200
        world.wait_until(f"the definition of {name} to go", lambda: self.ask("GET", path).status == 404)

    # What it did, and what may be done to it.

    def requests(self, user=None, verbs=None):
        """Audit events of all that was answered of objects so far, oldest first."""
        events = [json.loads(line) for line in self.audit_log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [event for event in events if "objectRef" in event and (user is None or event["user"]["username"] == user)
                and (verbs is None or event["verb"] in verbs)]

    def metrics(self):
        return self.ask("GET", "/metrics").body

    def compact(self):
        """Forgets all of etcd's history but what is now; returns the revision."""
        revision = self._ask_etcd("kv/range", {"key": "AA=="})["header"]["revision"]
        self._ask_etcd("kv/compaction", {"revision": revision, "physical": True})
        return int(revision)

    def close(self):
        """Kills it all: nobody needs its data any more."""
        for program in self._programs():
            program.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start_on_free_ports(self):
        for start in range(STARTS):
            self.port, self.store_port, self.peer_port = free_ports(3)
            try:
                self.start_etcd()
                self.start_api_server()
                return
            except AssertionError as error:
                self.close()
                if start == STARTS - 1 or "address already in use" not in str(error):
                    raise
            except BaseException:  # Ctrl-C too: nobody else knows of these processes yet.
                self.close()
                raise

    def _program(self, name, *arguments, folder=None):
        return world.Program(name, *arguments, folder=folder or tools(), log=self.folder / f"{name}.log",
                             dies_by=signal.SIGKILL)

    def _programs(self):
        return [program for program in (self.controllers, self.api_server, self.etcd) if program is not None]

    def _wait(self, what, check):
        def attempt():
            for program in self._programs():
                assert program.alive(), f"{program.name} ended while waiting for {what}:\n{program.output()[-4000:]}"
            with contextlib.suppress(OSError, http.client.HTTPException):
                return check()
        world.wait_until(lambda: f"{what}\n{self.api_server.output()[-4000:]}", attempt, START_S, 0.1)

    def _kubeconfig(self, name, user):
        ca = base64.b64encode(self.authority.path("ca.crt").read_bytes()).decode()
        path = self.folder / f"{name.replace('/', '_')}.kubeconfig"
        path.touch(0o600)
        path.write_text(KUBECONFIG.format(url=self.url, ca=ca, user=user))
        return path

    def _ask_etcd(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.store_port, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", f"/v3/{path}", json.dumps(body), {"Content-Type": "application/json"})
            answer = _answer(connection.getresponse())
        assert answer.status == 200, answer
        return answer.body


def _answer(response):
    text = response.read().decode()
    with contextlib.suppress(json.JSONDecodeError):
        return Answer(response.status, json.loads(text), response.headers.get_all("Warning", []))
    return Answer(response.status, text, response.headers.get_all("Warning", []))
