"""agentd and those who mean it no good, or do not know better: floods, two of it at one sandbox, an end in the midst of work, strangers on
the network. Run one test: agentd_attacked.py NAME; without a name: their names."""

import contextlib
import hashlib
import json
import secrets
import socket
import ssl
import subprocess
import sys
import threading

from agentd import carried, world
from harness import PING, REQUEST, Agentd, Closed, Harness, frame
from world import sum_of


def push(link, piece):
    """Sends it again and again, until nothing more is taken in, or an end of it."""
    link.settimeout(0.5)
    sent = 0
    with contextlib.suppress(OSError):
        while sent < (4 << 20):
            sent += link.send(piece)
    return sent


@contextlib.contextmanager
def crowd_at(url, count):
    """Connections that say nothing, to where metrics are."""
    host, port = url.removeprefix("http://").split(":")
    silent = []
    for _ in range(count):
        silent.append(socket.socket())
        silent[-1].setblocking(False)
        with contextlib.suppress(BlockingIOError):
            silent[-1].connect((host, int(port)))
    yield
    for each in silent:
        each.close()


def test_floods_and_a_lack_of_descriptors_harm_nobody_else():
    with carried(descriptors=(64, 64)) as (_, _, agentd), Harness(agentd.socket) as steady, contextlib.ExitStack() as others:
        before = agentd.metrics()["process_resident_memory_bytes"]
        with crowd_at(agentd.url, 200):
            with Harness(agentd.socket) as another:
                another.call("fs.stat", {"path": "/"})
            steady.call("fs.stat", {"path": "/"})
        for number in range(3):
            flooder = others.enter_context(Harness(agentd.socket))
            flood = [frame(PING, 0, {}) * 5000, frame(REQUEST, 1, {"op": "fs.readBytes", "args": {"path": "/etc/passwd"}, "down": 0}),
                     b"".join(frame(REQUEST, 1000 + each, {"op": "fs.stat", "args": {"path": "/"}}) for each in range(5000))][number]
            push(flooder.link, flood)
            steady.call("fs.stat", {"path": "/"})
        refused = 0
        for _ in range(25):
            crowd = Harness(agentd.socket)
            others.callback(crowd.close)
            try:
                crowd.dial()
            except (Closed, OSError):
                refused += 1
        assert refused >= 10, refused
        steady.call("fs.stat", {"path": "/"})
        seen = agentd.metrics()
        grown = seen["process_resident_memory_bytes"] - before
        assert seen["process_open_fds"] <= 64 and grown < (300 << 20), seen  # A sanitizer keeps up to 256 MiB of what was freed.
        assert sum_of(seen, "sandfleet_agentd_closes_total") > 0, seen
        others.close()
        with Harness(agentd.socket) as later:
            later.call("fs.stat", {"path": "/"})
        assert agentd.ask("/readyz")[0] == 200


def download(agentd, digest, ends, begun, ending):
    """To its end, over as many links as it takes; all but its beginning once agentd was asked to end."""
    harness = Harness(agentd.socket).connect()
    number = harness.ask("fs.readBytes", {"path": "big"}, down=True)
    stream = harness.streams[number]
    harness.wait(lambda: stream.content)
    begun.wait()
    ending.wait()
    while not stream.ended:
        try:
            harness.wait(lambda: stream.ended)
        except Closed as closed:
            ends.append(closed.reason)
            harness.connect()
    assert hashlib.sha256(stream.content).hexdigest() == digest
    ends.append("whole")
    harness.end()


def move(harness, to):
    """Its session, from the agentd where it is to another."""
    before, harness.link, harness.path = harness.link, None, to.socket
    harness.dial()
    before.settimeout(20)
    last = b""
    while piece := before.recv(1 << 16):
        last = (last + piece)[-500:]
    assert b'"replaced"' in last, last
    before.close()


def test_two_agentds_share_a_sandbox_and_one_ends_in_the_midst_of_work():
    with carried() as (provider, controller, first), world.temporary_folder("agentd") as folder, Agentd(folder, controller) as second:
        box = controller.sandboxes()["box"]["status"]["sandboxID"]
        code, told = world.run_inside(provider, box, "head -c 24000000 /dev/urandom > $HOME/big; sha256sum < $HOME/big")
        assert code == 0
        digest, ends, moves = told.split()[0], [], 0
        with Harness(first.socket) as harness:
            number = harness.ask("fs.readBytes", {"path": "big"}, down=True)
            stream = harness.streams[number]
            while not stream.ended:
                enough = len(stream.content) + 3_500_000
                harness.wait(lambda: stream.ended or len(stream.content) > enough)
                moves += 1
                move(harness, [first, second][moves % 2])
            assert moves >= 5 and hashlib.sha256(stream.content).hexdigest() == digest, moves
        begun, ending = threading.Barrier(13), threading.Event()
        working = [threading.Thread(target=download, args=(each, digest, ends, begun, ending)) for each in [first, second] * 6]
        for each in working:
            each.start()
        begun.wait(60)
        first.program.process.terminate()
        ending.set()
        assert first.program.process.wait(30) == 0, first.program.output()
        first.start()
        for each in working:
            each.join(60)
        assert (ends.count("whole"), ends.count("shutdown"), len(ends)) == (12, 6, 18), ends


class ByTcp(Harness):
    """From another node: over TLS, to whom `authority` vouches for."""

    def __init__(self, port, authority, token):
        super().__init__(("127.0.0.1", port), token=token)
        self.trust = ssl.create_default_context(cafile=authority)

    def _open_link(self):
        return self.trust.wrap_socket(socket.create_connection(self.path), server_hostname="127.0.0.1")

    def wait(self, check, deadline_s=60):
        while not check():  # What was decrypted already is not seen by a poll.
            self._read()


def certificate_in(folder):
    names = ["-subj", "/CN=agentd", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", *names,
                    "-keyout", folder / "key.pem", "-out", folder / "tls.pem"], check=True, capture_output=True)


def test_a_token_that_is_shown_by_tcp_is_told_to_nobody():  # covers: M15
    with world.temporary_folder("tls") as folder:
        certificate_in(folder)
        token, wrong = secrets.token_hex(20), secrets.token_hex(20)
        (folder / "token").write_text(token + "\n")
        listens = ["--listen-address", "127.0.0.1", "--tls-certificate", folder / "tls.pem", "--tls-key", folder / "key.pem",
                   "--token-file", folder / "token"]
        with carried(*listens) as (_, _, agentd):
            port = json.loads((agentd.folder / "ready").read_text())["port"]
            with ByTcp(port, folder / "tls.pem", token) as harness:
                harness.call("fs.stat", {"path": "/"})
            for shown in (wrong, None):
                try:
                    ByTcp(port, folder / "tls.pem", shown).dial()
                except Closed as closed:
                    assert closed.reason == "denied" and token not in str(closed), closed
                else:
                    raise AssertionError("let in")
            argv = world.pathlib.Path(f"/proc/{agentd.program.process.pid}/cmdline").read_text()
            told = argv + agentd.ask("/metrics")[1] + (agentd.folder / "ready").read_text()
            agentd.program.stop()
            told += agentd.program.output()
            assert "harness link begins" in told
            for secret in (token, wrong, "sf1."):
                assert secret not in told, f"{secret} in what it says"
            agentd.start()


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
