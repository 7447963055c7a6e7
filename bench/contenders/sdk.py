"""The official SDK for Python, in a sandbox of its own: commands.h says what it is told and how it answers."""

import sys
import time

from e2b import Sandbox

FILE_BYTES = 1024
PAYLOADS = {}


def payload(size):
    return PAYLOADS.setdefault(size, b"x" * size)


def expect(truth):
    if not truth:
        raise AssertionError("another answer than was to come")


class Box:
    def __init__(self, sandbox):
        self.files, self.commands = sandbox.files, sandbox.commands
        home = self.commands.run("echo $HOME").stdout.strip()
        self.small, self.edited, self.large = (f"{home}/{name}" for name in ("small", "edited", "large"))
        self.write(0)
        self.files.write(self.edited, "old" + "." * (FILE_BYTES - 3))

    def stat(self, _):
        expect(self.files.get_info(self.small).size == FILE_BYTES)

    def read(self, _):
        expect(len(self.files.read(self.small, format="bytes")) == FILE_BYTES)

    def write(self, _):
        self.files.write(self.small, "x" * FILE_BYTES)

    def edit(self, _):
        text = self.files.read(self.edited)
        was, new = ("old", "new") if text.startswith("old") else ("new", "old")
        self.files.write(self.edited, text.replace(was, new))

    def run(self, _):
        expect(self.commands.run("true").exit_code == 0)

    def upload(self, size):
        self.files.write(self.large, payload(size))

    def download(self, size):
        expect(len(self.files.read(self.large, format="bytes")) == size)


def obey(box):
    for line in sys.stdin:
        word, times, *numbers = line.split()
        size, took = int(numbers[0]) if numbers else 0, []
        payload(size)
        for _ in range(int(times)):
            began = time.perf_counter_ns()
            getattr(box, word)(size)
            took.append(time.perf_counter_ns() - began)
        print(*took, flush=True)


with Sandbox.create("base", timeout=3600) as sandbox:
    obey(Box(sandbox))
