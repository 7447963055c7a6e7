"""One node of Kubernetes with its control plane, as the first process of namespaces that scripts/cluster made:
what it mounts, the network it lays out and all that it starts end with it.

    node.py FOLDER CGROUP     writes FOLDER/ready when pods can run
"""

import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import names  # noqa: E402
from control_plane import ControlPlane, world  # noqa: E402

NAME = "node-1"
ADDRESS, PODS = "10.77.0.2", "10.244.0.0/24"
SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "sandfleet.test/pause:1"
HIERARCHIES = ("cpu cpuacct cpuset memory devices freezer blkio pids systemd hugetlb perf_event net_cls net_prio "
               "unified").split()  # Of control groups in version 1; the last is version 2 beside them.

# The kubelet insists on these. It is shown them as set, and the machine's own stay as they are.
KERNEL_SETTINGS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
                   "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}

CONTAINERD = """\
version = 2
root = "{folder}/containers"
state = "/run/containerd/state"
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  disable_apparmor = true
  restrict_oom_score_adj = true  # Root of a container may not lower it.
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""

KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {address}
healthzBindAddress: 127.0.0.1
readOnlyPort: 0
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: {pki}/ca.crt}}}}
authorization: {{mode: Webhook}}
tlsCertFile: {pki}/kubelet.crt
tlsPrivateKeyFile: {pki}/kubelet.key
containerRuntimeEndpoint: unix://{socket}
cgroupDriver: cgroupfs
cgroupRoot: /{cgroup}
failCgroupV1: false
failSwapOn: false
clusterDNS: [{address}]
clusterDomain: {domain}
resolvConf: {folder}/resolv.conf
evictionHard: {{memory.available: 100Mi, nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}}
imageGCHighThresholdPercent: 100
volumePluginDir: {folder}/kubelet/volume-plugins
podLogsDir: /var/log/pods
serializeImagePulls: false
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
"""

PROXY = """\
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 127.0.0.1
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
mode: nftables
clusterCIDR: {pods}
hostnameOverride: {name}
clientConnection: {{kubeconfig: {kubeconfig}}}
conntrack: {{maxPerCore: 0}}
"""

POD_NETWORK = {"cniVersion": "0.4.0", "name": "pods", "plugins": [{
    "type": "bridge", "bridge": "pods0", "isGateway": True, "isDefaultGateway": True, "hairpinMode": True, "ipMasq": False,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]]}}]}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
    return done.stdout


def lay_out_mounts(folder):
    """What a node writes goes to memory; some of it to places that no setting moves: /run/containerd, /var/log/pods,
    /var/lib/cni and /var/lib/kubelet."""
    run("mount", "--make-rshared", "/")
    for name in ("containers", "kubelet", "settings", "over"):
        (folder / name).mkdir()
        run("mount", "-t", "tmpfs", "tmpfs", folder / name)
    ours = os.open(folder, os.O_PATH)
    upper, work = folder / "over/upper", folder / "over/work"
    upper.mkdir()
    work.mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/var/lib,upperdir={upper},workdir={work}", "/var/lib")
    if folder.is_relative_to("/var/lib"):
        run("mount", "--rbind", f"/proc/{os.getpid()}/fd/{ours}", folder)
    os.close(ours)
    for place in ("/run", "/var/log"):
        run("mount", "-t", "tmpfs", "tmpfs", place)
    for name, value in KERNEL_SETTINGS.items():
        setting, fake = pathlib.Path("/proc/sys", name), folder / "settings" / name.replace("/", "_")
        if setting.exists():
            fake.write_text(f"{value}\n")
            run("mount", "--bind", fake, setting)


def lay_out_network():
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "node0", "type", "veth", "peer", "name", "node0-peer")
    run("ip", "address", "add", f"{ADDRESS}/24", "dev", "node0")
    for link in ("node0", "node0-peer"):
        run("ip", "link", "set", link, "up")
    run("ip", "route", "add", "default", "dev", "node0")  # Addresses of services want some route before they are translated.
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")


def cgroups(name):
    """Where the pods' control groups hang: one folder in each hierarchy of version 1, or the one of version 2."""
    root = pathlib.Path("/sys/fs/cgroup")
    hierarchies = [root / each for each in HIERARCHIES if (root / each).is_dir()] or [root]
    return [hierarchy / name for hierarchy in hierarchies]


def make_cgroups(name):
    for folder in cgroups(name):
        folder.mkdir(exist_ok=True)
        if folder.parent.name == "cpuset":  # Empty, no process may be put there.
            for setting in ("cpuset.cpus", "cpuset.mems"):
                (folder / setting).write_text((folder.parent / setting).read_text())


class Node(ControlPlane):
    address = ADDRESS

    def __init__(self, folder, cgroup):
        self.node_folder, self.parts = folder, []
        self.containers = world.where("containers") / "usr"
        os.environ["PATH"] = f"{self.containers}/bin:{self.containers}/sbin:{os.environ['PATH']}"
        super().__init__(folder / "control-plane", controllers=True)
        pki = self.authority.path
        self.authority.issue("kubelet", f"/CN={NAME}", "extendedKeyUsage=serverAuth", f"subjectAltName=IP:{ADDRESS},DNS:{NAME}")
        self._config("containerd.toml", CONTAINERD, plugins=self.containers / "lib/cni", pause=PAUSE_IMAGE)
        self._config("kubelet.yaml", KUBELET, pki=pki("."), cgroup=cgroup, domain=names.DOMAIN)
        self._config("resolv.conf", "")
        self._config("cni/pods.conflist", json.dumps(POD_NETWORK).replace("{", "{{").replace("}", "}}"))
        self._config("proxy.yaml", PROXY, pods=PODS, kubeconfig=self.kubeconfig("system:kube-proxy", groups=[]))
        self.start_node()

    def api_server_arguments(self):
        admin = self.authority.client("admin", ("system:masters",))
        return ["--endpoint-reconciler-type=lease", "--allow-privileged", "--enable-admission-plugins=NodeRestriction",
                "--kubelet-preferred-address-types=InternalIP", f"--kubelet-client-certificate={admin[0]}",
                f"--kubelet-client-key={admin[1]}", f"--kubelet-certificate-authority={self.authority.path('ca.crt')}"]

    def start_node(self):
        scheduler = self.kubeconfig("system:kube-scheduler", groups=[])
        self._part("kube-scheduler", f"--kubeconfig={scheduler}", "--secure-port=0", "--leader-elect=false")
        self._part("containerd", "--config", self.node_folder / "containerd.toml", folder=self.containers / "bin")
        self._wait("containerd", lambda: self.ctr("version").returncode == 0)
        self.import_pause()
        self._part("kubelet", f"--config={self.node_folder / 'kubelet.yaml'}", f"--node-ip={ADDRESS}",
                   f"--kubeconfig={self.kubeconfig(f'system:node:{NAME}', groups=['system:nodes'])}",
                   f"--root-dir={self.node_folder / 'kubelet'}", f"--cert-dir={self.node_folder / 'kubelet/pki'}",
                   f"--hostname-override={NAME}")
        names.serve(ADDRESS, self.service_address)
        self._part("kube-proxy", f"--config={self.node_folder / 'proxy.yaml'}")
        self._wait("the node to be ready", self.ready)

    def ready(self):
        answer = self.ask("GET", f"/api/v1/nodes/{NAME}")
        return answer.status == 200 and any(
            each["type"] == "Ready" and each["status"] == "True" for each in answer.body["status"].get("conditions", []))

    def service_address(self, name, space):
        answer = self.ask("GET", f"/api/v1/namespaces/{space}/services/{name}")
        address = answer.body["spec"].get("clusterIP") if answer.status == 200 else None
        return None if address == "None" else address

    def ctr(self, *arguments):
        return subprocess.run([self.containers / "bin/ctr", "-a", SOCKET, "-n", "k8s.io", *arguments],
                              capture_output=True, text=True)

    def import_pause(self):
        """The program that holds a pod's namespaces: it waits, and reaps what is left to it."""
        work = self.node_folder / "pause"
        work.mkdir()
        run("gcc", "-static", "-Os", "-s", "-o", work / "pause", pathlib.Path(__file__).with_name("pause.c"))
        run(sys.executable, "-B", world.REPO / "scripts/image", "file", work / "pause", "--name", PAUSE_IMAGE,
            "--output", work / "pause.tar")
        done = self.ctr("images", "import", work / "pause.tar")
        assert done.returncode == 0, done.stdout + done.stderr

    def watch(self):
        """Returns when a part of it has ended: a node is whole or not at all."""
        while True:
            for program in self._programs():
                if not program.alive():
                    return f"{program.name} ended:\n{program.output()[-4000:]}"
            time.sleep(1)

    def _programs(self):
        return [*self.parts, *super()._programs()]

    def _config(self, name, text, **values):
        path = self.node_folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(folder=self.node_folder, name=NAME, address=ADDRESS, socket=SOCKET, **values))

    def _part(self, name, *arguments, **where):
        self.parts.append(self._program(name, *arguments, **where))


def live(folder, cgroup):
    lay_out_mounts(folder)
    lay_out_network()
    make_cgroups(cgroup)
    node = Node(folder, cgroup)
    (folder / "ready.part").write_text(f"{node.kubeconfig()}\n")
    (folder / "ready.part").rename(folder / "ready")
    raise SystemExit(node.watch())


def main(folder, cgroup):
    """The first process of a PID namespace adopts what others leave, and so does nothing but wait."""
    if os.getpid() != 1:
        raise SystemExit("node.py: this is for scripts/cluster, which gives it namespaces of its own")
    worker = os.fork()
    if worker == 0:
        live(pathlib.Path(folder), cgroup)
    while True:
        ended, status = os.wait()
        if ended == worker:
            return os.waitstatus_to_exitcode(status) or 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
