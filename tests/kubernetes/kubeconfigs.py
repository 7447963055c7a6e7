"""Kubeconfigs that are wrong, each in one way, and what our programs say of them."""

import base64
import collections
import http.server
import threading

from control_plane import free_ports

INSTALL = ("install the chart (helm install sandfleet charts/sandfleet), or the definitions alone "
           "(kubectl apply -f crds/)")
KUBECONFIG = """\
current-context: dev
clusters: [{{name: c, cluster: {{{cluster}}}}}]
users: [{{name: u, user: {{{user}}}}}]
contexts: [{{name: dev, context: {{cluster: c, user: u}}}}]
"""
PLUGIN = "exec: {{apiVersion: client.authentication.k8s.io/v1, command: {}, installHint: get it from us}}"

# `says`: all of the message where the file itself is wrong; else how it ends, after what was asked. FILE is the path.
Wrong = collections.namedtuple("Wrong", "text file_is_wrong denied says")


class NotKubernetes(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    do_POST = do_GET

    def log_message(self, *_):
        pass


def encoded(path):
    return base64.b64encode(path.read_bytes()).decode()


def program_that(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def wrong_kubeconfigs(test, cluster):
    """{name: Wrong}; what they need lives as long as the test."""
    web = http.server.HTTPServer(("127.0.0.1", 0), NotKubernetes)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    test.addCleanup(web.server_close)
    test.addCleanup(web.shutdown)
    url, closed, pki = cluster.url, free_ports(1).pop(), cluster.authority
    if not pki.path("stranger.crt").exists():
        pki.make_stranger("stranger")
        pki.issue("expired", "/CN=expired", "extendedKeyUsage=clientAuth")
        pki.expire("expired")
    ca, other_ca = encoded(pki.path("ca.crt")), encoded(pki.path("stranger.crt"))
    trusted = f"server: '{url}', certificate-authority-data: {ca}"

    def of(cluster=trusted, user="token: of-nobody-here"):
        return KUBECONFIG.format(cluster=cluster, user=user)

    def by_plugin(script):
        return of(user=PLUGIN.format(program_that(cluster.folder, "log-in", script)))

    unknown = ("the API server answered 401 Unauthorized: Unauthorized; the cluster does not know you by context dev of FILE: log in "
               "again, or renew the token or certificate there")
    expired = f"client-certificate-data: {encoded(pki.path('expired.crt'))}, client-key-data: {encoded(pki.path('expired.key'))}"
    told = f"{cluster.folder}/log-in"
    in_file = {
        "empty": ("", "FILE: the file is empty; write a kubeconfig into it"),
        "no-yaml": ("clusters: [", "FILE:1:1: this is not YAML: end of sequence flow not found; check indentation, colons and quotes "
                    "around here"),
        "no-current": ("clusters: []\n", "FILE: current-context: is not set; write one"),
        "no-context": (of().replace("current-context: dev", "current-context: prod"),
                       'FILE: contexts: there is no context "prod"; choose one of dev'),
        "no-cluster": (of().replace("cluster: c,", "cluster: d,"),
                       'FILE:4:43: contexts[0].context.cluster: there is no cluster "d"; choose one of c'),
        "no-user": (of().replace("user: u}", "user: v}"),
                    'FILE:4:52: contexts[0].context.user: there is no user "v"; choose one of u'),
        "no-server": (of("insecure-skip-tls-verify: true"),
                      "FILE:2:31: clusters[0].cluster.server: is missing; add it, like https://10.0.0.1:6443"),
        "no-url": (of("server: '10.0.0.1:6443'"),
                   "FILE:2:40: clusters[0].cluster.server: must be an http:// or https:// URL without user or query; write it "
                   "like https://10.0.0.1:6443"),
        "no-base64": (of("server: 'https://h', certificate-authority-data: '?'"),
                      "FILE:2:81: clusters[0].cluster.certificate-authority-data: must be base64; encode the PEM text with base64 -w0"),
        "no-pem": (of("server: 'https://h', certificate-authority-data: aGVsbG8="),
                   "FILE:2:81: clusters[0].cluster.certificate-authority-data: holds no PEM block; give PEM text, which begins with "
                   "-----BEGIN"),
        "no-authority-file": (of("server: 'https://h', certificate-authority: /nowhere/ca.crt"),
                              "FILE:2:76: clusters[0].cluster.certificate-authority: cannot read /nowhere/ca.crt: No such file or "
                              "directory; correct the path, or make the file readable"),
        "insecure-and-ca": (of(f"server: 'https://h', insecure-skip-tls-verify: true, certificate-authority-data: {ca}"),
                            "FILE:2:79: clusters[0].cluster.insecure-skip-tls-verify: stands beside a certificate authority; remove "
                            "one of the two"),
        "key-without-certificate": (of(user=f"client-key-data: {ca}"),
                                    "FILE:3:25: users[0].user: client-certificate and client-key go together; give both, or neither"),
        "two-logins": (of(user="token: t, username: u"),
                       "FILE:3:25: users[0].user: token and username are two ways to log in; keep one"),
        "old-plugin": (of(user="auth-provider: {name: gcp}"),
                       "FILE:3:41: users[0].user.auth-provider: is no longer known to Kubernetes clients; use exec with a "
                       "credential plugin"),
    }
    asking = {
        "no-plugin": (of(user=PLUGIN.format("no-such-plugin")), False,
                      "the credential plugin no-such-plugin cannot be run: No such file or directory; get it from us"),
        "failing-plugin": (by_plugin("echo 'your session is over; run log-in --again' >&2; exit 3"), False,
                           f"the credential plugin {told} ended with 3: your session is over; run log-in --again; get it from us"),
        "expired-certificate": (of(user=expired), True, unknown),
        "unknown-token": (of(), True, unknown),
        "away": (of(f"server: 'https://127.0.0.1:{closed}'"), False,
                 f"; see that the cluster is up, and that https://127.0.0.1:{closed} is its address (from context dev of FILE)"),
        "not-kubernetes": (of(f"server: 'http://127.0.0.1:{web.server_port}'"), False,
                           f"http://127.0.0.1:{web.server_port} answers, but it is no Kubernetes API server; correct the server in "
                           "context dev of FILE"),
        "wrong-authority": (of(f"server: '{url}', certificate-authority-data: {other_ca}"), False,
                            f"; see that the certificate authority in context dev of FILE is that of {url}"),
    }
    return {**{name: Wrong(text, True, False, says) for name, (text, says) in in_file.items()},
            **{name: Wrong(text, False, denied, says) for name, (text, denied, says) in asking.items()}}
