"""Names of services for the pods of a node: a DNS server that knows NAME.NAMESPACE.svc.cluster.local and no other."""

import re
import socket
import struct
import threading

DOMAIN = "cluster.local"
NAME = re.compile(rf"([a-z0-9-]+)\.([a-z0-9-]+)\.svc\.{DOMAIN}")
A, SECONDS, ASKED_BYTES_MAX = 1, 5, 512
FINE, NO_SUCH_NAME = 0, 3


def question_in(message):
    """(name, type, the question's own bytes) of a query; raises ValueError where it is none."""
    if len(message) < 12 or message[2] & 0xF8 or struct.unpack(">H", message[4:6])[0] != 1:
        raise ValueError("not one question")
    labels, at = [], 12
    while at < len(message) and message[at]:
        length = message[at]
        if length > 63:
            raise ValueError("a name that refers to another")
        labels.append(message[at + 1:at + 1 + length].decode("ascii"))
        at += 1 + length
    if at + 5 > len(message):
        raise ValueError("cut short")
    (kind,) = struct.unpack(">H", message[at + 1:at + 3])
    return ".".join(labels).lower(), kind, message[12:at + 5]


def answer_to(message, address_of):
    """The reply; `address_of(service, namespace)` is an IPv4 address or None."""
    name, kind, question = question_in(message)
    known = NAME.fullmatch(name)
    address = address_of(*known.groups()) if known else None
    records = b""
    if address and kind == A:
        records = b"\xc0\x0c" + struct.pack(">HHIH", A, 1, SECONDS, 4) + socket.inet_aton(address)
    code = FINE if address else NO_SUCH_NAME
    return message[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, 1 if records else 0, 0, 0) + question + records


def serve(address, address_of):
    """From a thread of its own, for as long as the process lives."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind((address, 53))

    def work():
        while True:
            message, who = listener.recvfrom(ASKED_BYTES_MAX)
            try:
                listener.sendto(answer_to(message, address_of), who)
            except Exception as error:  # The next may be better.
                print(f"names: {who}: {error}", flush=True)

    threading.Thread(target=work, daemon=True).start()
