"""What the benchmarks share: where our programs are, what a process has used, and numbers for people."""

import datetime
import os
import pathlib
import re
import sys
import time

REPO = pathlib.Path(__file__).resolve().parents[1]
os.environ.setdefault("SANDFLEET_BIN", str(REPO / "build/release/bin"))
sys.path[:0] = [str(REPO / f"tests/{part}") for part in ("support", "integration", "kubernetes")]
TICKS = os.sysconf("SC_CLK_TCK")
RANKS = (50, 90, 99)


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class Progress:
    """A line now and then of how far something long is."""

    def __init__(self, what, whole, every_s=5):
        self.what, self.whole, self.every_s, self.told = what, whole, every_s, time.monotonic()

    def reach(self, part):
        if time.monotonic() - self.told > self.every_s:
            self.told = time.monotonic()
            say(f"  {self.what}: {part} of {self.whole}")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def when(text):
    """Seconds since 1970 of a time in RFC 3339."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def percentiles(values):
    ordered = sorted(values)
    return {f"p{rank}": ordered[min(len(ordered) - 1, int(len(ordered) * rank / 100))] for rank in RANKS}


def length_of(spans):
    """Seconds that the spans [(from, to)] cover together: calls may run beside each other."""
    covered, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, until))
        until = max(until, end)
    return covered


def conditions():
    """Under which it was measured."""
    return {"time": datetime.datetime.now(datetime.timezone.utc).isoformat(), "kernel": os.uname().release,
            "cores": os.cpu_count(), "load_before": os.getloadavg()[0]}
