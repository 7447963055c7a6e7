"""Names of services, as the pods of the tests' node ask for them."""

import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import names  # noqa: E402

AAAA = 28
KNOWN = {("web", "team-a"): "10.96.0.7"}


def query(name, kind=names.A, flags=0x0100, questions=1):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 7, flags, questions, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def asked(name, kind=names.A):
    """(code, addresses) of the answer."""
    reply = names.answer_to(query(name, kind), lambda *service: KNOWN.get(service))
    number, flags, _, answers, _, _ = struct.unpack(">HHHHHH", reply[:12])
    assert number == 7 and flags & 0x8000, reply
    return flags & 0xF, [".".join(map(str, reply[-4:]))] * answers


class Names(unittest.TestCase):
    def test_knows_services_and_nothing_else(self):
        for name, kind, answer in [
                ("web.team-a.svc.cluster.local", names.A, (names.FINE, ["10.96.0.7"])),
                ("WEB.team-a.svc.cluster.local", names.A, (names.FINE, ["10.96.0.7"])),
                ("web.team-a.svc.cluster.local", AAAA, (names.FINE, [])),
                ("web.team-b.svc.cluster.local", names.A, (names.NO_SUCH_NAME, [])),
                ("web.team-a.svc", names.A, (names.NO_SUCH_NAME, [])),
                ("x.web.team-a.svc.cluster.local", names.A, (names.NO_SUCH_NAME, [])),
                ("example.com", names.A, (names.NO_SUCH_NAME, []))]:
            with self.subTest(name, kind=kind):
                self.assertEqual(asked(name, kind), answer)

    def test_takes_nothing_but_questions(self):
        whole = query("web.team-a.svc.cluster.local")
        for message in (b"", whole[:11], whole[:-1], whole[:20], query("a", flags=0x8100), query("a", questions=2),
                        whole[:12] + b"\xc0\x0c" + whole[14:]):
            with self.subTest(message), self.assertRaises(ValueError):
                names.answer_to(message, lambda *_: None)


unittest.main()
