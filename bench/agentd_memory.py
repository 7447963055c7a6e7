"""What agentd, the executor and the command line hold at most while many bytes pass."""

import pathlib
import re
import subprocess
import time

STREAM_BYTES = 1 << 20     # What a stream holds at most on either side (docs/protocol.md, `streamBytes`).
COLLECTED_BYTES = 8 << 20  # Of an output's tail: kCollected in contenders/carried.cc.
LOOK_S = 0.01


def peak_bytes(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def reset_peak(pid):
    """From now on the peak begins with what it holds now (proc(5), clear_refs); how much that is."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_bytes(pid)


def peak_of(words, stdin=subprocess.DEVNULL):
    """Of a program, run to its end. The peak never falls, so the last look before its end tells."""
    peak = 0
    with subprocess.Popen([*map(str, words)], stdin=stdin, stdout=subprocess.DEVNULL) as process:
        while process.returncode is None:
            try:
                peak = max(peak, peak_bytes(process.pid))
            except TypeError:  # It has just ended, and has no memory any more.
                pass
            try:
                process.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                pass
    assert process.returncode == 0, (words, process.returncode)
    return peak


def passing(site, ours, size):
    """(what, how much of it is asked to be kept, how to let `size` bytes pass): gives the peak of the command line, if it is that."""
    outside = site.folder / "bytes"
    with open(outside, "wb") as file:
        subprocess.run(["head", "-c", str(size), "/dev/urandom"], stdout=file, check=True)

    def feed_exec():
        with open(outside, "rb") as source:
            return peak_of(site.cli("exec", "-i", "box", "--", "sh", "-c", "cat >/dev/null"), source)

    def asked(word):
        ours.ask(word, 1, size)
    yield "a command prints, all of it is wanted", STREAM_BYTES, lambda: asked("print")
    yield "a command prints, its tail is kept", STREAM_BYTES + COLLECTED_BYTES, lambda: asked("collect")
    yield "a command is fed", STREAM_BYTES, lambda: asked("feed")
    yield "a file is written", STREAM_BYTES, lambda: asked("upload")
    yield "a file is read", STREAM_BYTES, lambda: asked("download")
    yield "sandfleet exec, printing", STREAM_BYTES, lambda: peak_of(site.cli("exec", "box", "--", "head", "-c", size, "/dev/zero"))
    yield "sandfleet exec -i, fed", STREAM_BYTES, feed_exec
    yield "sandfleet cp, into it", STREAM_BYTES, lambda: peak_of(site.cli("cp", outside, "box:copied"))
    yield "sandfleet cp, out of it", STREAM_BYTES, lambda: peak_of(site.cli("cp", "box:copied", site.folder / "copied"))


def memory(site, ours, size):
    """{what passes: what it asks for, seconds, and who held how many bytes more than before}"""
    pids = {"agentd": site.agentd.program.pid, "executor": site.executor}
    result = {}
    for what, asked_bytes, let_pass in passing(site, ours, size):
        before = {who: reset_peak(pid) for who, pid in pids.items()}
        began = time.monotonic()
        cli_peak = let_pass()
        result[what] = {"asked_bytes": asked_bytes, "seconds": time.monotonic() - began,
                        **{f"{who}_bytes": peak_bytes(pid) - before[who] for who, pid in pids.items()},
                        **({"cli_bytes": cli_peak} if cli_peak else {})}
    return result
