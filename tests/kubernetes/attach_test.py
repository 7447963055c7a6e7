"""The attach service in a real cluster: tokens of ServiceAccounts, rights by RBAC, certificates, and ways that lead to the
executors of live boxes. Run one test: attach_test.py NAME; without a name: their names."""

import base64
import collections
import contextlib
import http.client
import json
import pathlib
import re
import ssl
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster_world import ATTACH_RULES, MERGE, OWN, TEAM, USER, WRITES, cluster_world, world  # noqa: E402
from ways import claims_of, executor_says, signed, url_bytes, url_text  # noqa: E402

AUDIENCE = "sandfleet.dev/attach"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{TEAM}"
OUR_SECRET = f"/api/v1/namespaces/{OWN}/secrets/sandfleet-attach-tls"
OUR_MAP = f"/api/v1/namespaces/{OWN}/configmaps/sandfleet-attach-ca"
OPEN = re.compile(r"the attach service is open.*port=(\d+)")

Told = collections.namedtuple("Told", "status body retry_after")


class Harness:
    """A ServiceAccount of the team, which may nothing yet."""

    def __init__(self, here, name="harness"):
        self.here, self.name = here, name
        self.account = f"/api/v1/namespaces/{TEAM}/serviceaccounts/{name}"
        here.create(f"/api/v1/namespaces/{TEAM}/serviceaccounts", {"metadata": {"name": name}})

    def token(self, audience=AUDIENCE, pod=None):
        """Good for as long as the account is there, and the pod."""
        spec = {"audiences": [audience]} if audience else {}
        spec |= {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": pod}} if pod else {}
        made = self.here.cluster.ask("POST", f"{self.account}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        assert made.status == 201, made
        return made.body["status"]["token"]

    def token_ending(self, seconds_from_now):
        """Truly signed. The API server lets a minute pass after the end."""
        head, claims, _ = self.token().split(".")
        now = int(time.time())
        changed = {**json.loads(url_bytes(claims)), "iat": now - 7200, "nbf": now - 7200, "exp": now + seconds_from_now}
        signed = f"{head}.{url_text(json.dumps(changed).encode())}"
        key = self.here.cluster.authority.path("accounts.key")
        der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=signed.encode(), capture_output=True,
                             check=True).stdout
        first = der[4:4 + der[3]]  # SEQUENCE {INTEGER, INTEGER}, both short.
        second = der[6 + der[3]:]
        return f"{signed}.{url_text(b''.join(int.from_bytes(each).to_bytes(32) for each in (first, second)))}"

    def may_attach(self, *names):
        """To those Sandboxes, or to all of the team."""
        rule = {"apiGroups": ["sandfleet.dev"], "resources": ["sandboxes/attach"], "verbs": ["create"]}
        self.here.create(f"{RBAC}/roles", {"metadata": {"name": self.name},
                                           "rules": [{**rule, "resourceNames": names} if names else rule]})
        self.here.create(f"{RBAC}/rolebindings", {
            "metadata": {"name": self.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self.name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": TEAM}]})

    def may_not_attach(self):
        assert self.here.cluster.ask("DELETE", f"{RBAC}/rolebindings/{self.name}").status == 200


def harness_that_may_attach(here):
    """Where the controller may ask who somebody is."""
    here.grant_all(ATTACH_RULES, "attach")
    harness = Harness(here)
    harness.may_attach()
    return harness


def door(here, name, *arguments):
    """A controller with the attach service."""
    flags = arguments or ["--attach-name", "127.0.0.1"]
    return here.replica(name, "--attach-address", "127.0.0.1", "--attach-look-seconds", "1", *flags)


def port_of(here, replica):
    return int(here.wait_for("an open door", lambda: OPEN.search((replica.folder / "log").read_text(errors="replace")))[1])


def published(here):
    return here.wait_for("whom to believe", lambda: here.cluster.ask("GET", OUR_MAP).body.get("data", {}).get("ca.crt"))


def ask(port, token, trust, name="box", space=TEAM):
    context = ssl.create_default_context(cadata=trust)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/attach", json.dumps({"namespace": space, "name": name}),
                           {"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return Told(answer.status, json.loads(answer.read()), answer.getheader("Retry-After"))


def refusal(*arguments, **options):
    told = ask(*arguments, **options)
    assert set(told.body) == {"reason", "message"}, told
    return told.status, told.body["reason"]


def wait_for_way_in(here, port, token, trust):
    """Also while certificates change."""
    def way():
        with contextlib.suppress(ssl.SSLCertVerificationError):
            told = ask(port, token, trust() if callable(trust) else trust)
            return told.status == 200 and told
    return here.wait_for("the way in", way)


def wait_for_refusal(here, wanted, port, token, trust, **options):
    """What was decided holds for up to 10 s."""
    def refused():
        told = ask(port, token, trust, **options)
        return (told.status, told.body.get("reason")) == wanted
    return here.wait_for(f"{wanted}", refused)


def certificate_shown(port):
    return ssl.get_server_certificate(("127.0.0.1", port))


def fleet_key(here):
    secret = here.cluster.ask("GET", f"/api/v1/namespaces/{OWN}/secrets/sandfleet-fleet-key").body["data"]
    (key,) = secret.values()
    return base64.b64decode(key)


def expect_the_way_in(here, told, box):
    """What was told is what is documented, its token is the executor's, and it leads there."""
    status, given = here.status("box"), dict(told.body)
    endpoint, token, expires = given.pop("endpoint"), given.pop("token"), given.pop("expires")
    assert given == {"namespace": TEAM, "name": "box", "uid": here.look("box")["metadata"]["uid"], "sandboxID": box,
                     **{each: status[each] for each in ("epoch", "incarnation", "run")}}, told
    assert set(endpoint) == {"url", "headers"}, told
    claims = claims_of(token)
    assert token == signed(fleet_key(here), "attach", claims), claims
    assert (claims["uid"], claims["epoch"], claims["run"]) == (given["uid"], given["epoch"], given["run"]), claims
    assert claims["subject"] == f"system:serviceaccount:{TEAM}:harness", claims
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", expires), told
    assert 0 < claims["expires"] / 1000 - time.time() <= 900, claims

    assert executor_says(endpoint, token) == (401, {"error": "token refused: wrong signature"})  # For the controller only.
    code, health = executor_says(endpoint, signed(fleet_key(here), "admin", claims))
    assert code == 200, health
    assert health["identity"] == {each: given[each] for each in ("uid", "epoch", "incarnation", "run")}, health


def test_who_has_the_right_gets_the_way_to_the_executor():
    with cluster_world() as here, door(here, "one") as replica:
        here.sandbox("box")
        box = here.wait_ready("box")["box"]
        port, trust, harness = port_of(here, replica), published(here), Harness(here)
        token = harness.token()

        told = ask(port, token, trust)
        assert (told.status, told.body["reason"], told.retry_after) == (503, "Unavailable", "1"), told
        assert "the controller may not ask the API server" in told.body["message"], told
        here.grant_all(ATTACH_RULES, "attach")

        wait_for_refusal(here, (403, "Denied"), port, token, trust)
        assert refusal(port, token, trust, name="nowhere") == (403, "Denied")
        assert refusal(port, token, trust, space="elsewhere") == (403, "Denied")
        harness.may_attach("box", "nowhere")
        told = wait_for_way_in(here, port, token, trust)
        expect_the_way_in(here, told, box)
        wait_for_refusal(here, (404, "NotFound"), port, token, trust, name="nowhere")
        assert refusal(port, token, trust, name="other") == (403, "Denied")

        # Tokens that are none, or not for this.
        assert ask(port, harness.token_ending(3600), trust).status == 200
        for wrong in (None, "nonsense", harness.token(audience=None), harness.token("somebody.else"),
                      harness.token_ending(-120), token[:-8] + "AAAAAAAA"):
            assert refusal(port, wrong, trust) == (403, "Denied"), wrong
        assert here.cluster.ask("DELETE", harness.account).status == 200
        wait_for_refusal(here, (403, "Denied"), port, token, trust)

        log = (replica.folder / "log").read_text()
        assert f'caller=system:serviceaccount:{TEAM}:harness' in log and "outcome=Attached" in log, log[-4000:]
        for secret in (token, told.body["token"], token.split(".")[2], told.body["token"].split(".")[2]):
            assert secret not in log, "a token in the log"
        metrics = replica.metrics()
        assert 'sandfleet_attach_requests_total{outcome="Attached"}' in metrics, metrics
        assert "sandfleet_attach_certificate_expiry_timestamp_seconds " in metrics, metrics
        here.remove("box")
        here.wait_gone()


def test_a_right_that_is_taken_away_is_gone_and_a_paused_box_has_no_way_in():
    with cluster_world() as here, door(here, "one") as replica:
        harness = harness_that_may_attach(here)
        here.sandbox("box")
        box = here.wait_ready("box")["box"]
        port, trust, token = port_of(here, replica), published(here), harness.token()
        before = wait_for_way_in(here, port, token, trust)

        here.change("box", desiredState="Paused")
        wait_for_refusal(here, (409, "Paused"), port, token, trust)
        here.wait_for("paused", lambda: here.condition("box", "Paused").get("status") == "True")
        here.change("box", desiredState="Running")
        here.wait_for("a new run", lambda: here.status("box").get("run") == 2)
        after = wait_for_way_in(here, port, token, trust)
        assert (before.body["run"], after.body["run"]) == (1, 2)
        expect_the_way_in(here, after, box)

        harness.may_not_attach()
        wait_for_refusal(here, (403, "Denied"), port, token, trust)
        here.remove("box")
        here.wait_gone()


def test_every_replica_answers_and_they_share_one_certificate():
    with cluster_world() as here:
        harness = harness_that_may_attach(here)
        token = harness.token()
        with door(here, "first") as first:
            here.wait_for("a leader", first.acts)
            with door(here, "second") as second:
                here.sandbox("box")
                box = here.wait_ready("box")["box"]
                ports, trust = [port_of(here, each) for each in (first, second)], published(here)
                assert not second.acts()
                for port in ports:
                    expect_the_way_in(here, wait_for_way_in(here, port, token, trust), box)
                assert not [call for call in here.calls("POST") if call.endswith("/connect")], "a look must wake nobody"
                shown = {certificate_shown(port) for port in ports}
                assert len(shown) == 1

                with contextlib.suppress(ssl.SSLCertVerificationError):
                    ask(ports[0], token, here.cluster.authority.path("ca.crt").read_text())
                    raise AssertionError("believed by who trusts another authority")

                # Renewed by whoever looks first, shown by both, vouched for by the same authority.
                renewed = here.cluster.ask("PATCH", OUR_SECRET, {"data": {"tls.crt": "", "tls.key": ""}}, MERGE)
                assert renewed.status == 200, renewed
                here.wait_for("another certificate, of both", lambda: len(now := {certificate_shown(port) for port in ports})
                              == 1 and now != shown)
                for port in ports:
                    assert ask(port, token, trust).status == 200
                assert published(here) == trust

            # All lost: there is another authority then, which is published.
            assert here.cluster.ask("DELETE", OUR_SECRET).status == 200
            here.wait_for("another authority", lambda: published(here) != trust)
            wait_for_way_in(here, ports[0], token, lambda: published(here))
            changed = {(each["verb"], each["objectRef"]["resource"]) for each in here.cluster.requests(USER, WRITES)
                       if each["objectRef"].get("name", "").startswith("sandfleet-attach-")}
            assert changed <= {(verb, kind) for verb in ("create", "patch") for kind in ("secrets", "configmaps")}, changed
            here.remove("box")
            here.wait_gone()


def test_an_api_server_that_is_away_is_no_yes_and_no_no():
    with cluster_world() as here, door(here, "one") as replica:
        harness = harness_that_may_attach(here)
        here.sandbox("box")
        here.wait_ready("box")
        port, trust, tokens = port_of(here, replica), published(here), [harness.token() for _ in range(2)]
        wait_for_way_in(here, port, tokens[0], trust)
        here.cluster.api_server.kill()
        told = ask(port, tokens[1], trust)
        assert (told.status, told.body["reason"], told.retry_after) == (503, "Unavailable", "1"), told
        # What was decided holds for some seconds, and no longer.
        world.wait_until("the decision to be forgotten", lambda: ask(port, tokens[0], trust).status == 503)
        here.cluster.start_api_server()
        for token in tokens:
            wait_for_way_in(here, port, token, trust)
        here.remove("box")
        here.wait_gone()


def test_somebody_elses_certificate_is_only_read():
    with cluster_world() as here, door(here, "one", "--attach-secret", "by-others") as replica:
        harness, authority = harness_that_may_attach(here), here.cluster.authority
        trust, token = authority.path("ca.crt").read_text(), harness.token()
        here.wait_for("it is said what is missing", lambda: "there is no Secret sandfleet-system/by-others yet" in replica.readiness())

        def issue(name):
            authority.issue(name, "/CN=attach", "extendedKeyUsage=serverAuth", "subjectAltName=IP:127.0.0.1")
            here.secret(OWN, "by-others", **{"tls.crt": authority.path(f"{name}.crt").read_text(),
                                             "tls.key": authority.path(f"{name}.key").read_text(), "ca.crt": trust})
            return authority.path(f"{name}.crt").read_text().strip()

        one = issue("one")
        port = port_of(here, replica)
        here.wait_for("ready", lambda: replica.readiness() == "ok\n")
        assert (certificate_shown(port).strip(), published(here)) == (one, trust)
        assert refusal(port, token, trust) == (404, "NotFound")
        two = issue("two")
        here.wait_for("the next one", lambda: certificate_shown(port).strip() == two)
        here.secret(OWN, "by-others", **{"tls.key": "nonsense"})
        here.wait_for("it is said that it cannot be used", lambda: replica.said("the attach service keeps its certificate"))
        assert certificate_shown(port).strip() == two
        assert not [each for each in here.cluster.requests(USER, WRITES) if each["objectRef"].get("name") == "by-others"]


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
