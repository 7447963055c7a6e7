"""A terminal as a person has one before him: what a program is started in, what it shows, what is typed."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

PATIENCE_S = 60
CONTROL = re.compile(rb"\x1b\][^\a\x1b]*(\a|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>78]|\x1b[()][0-9A-Z]")


class Sitting:
    """A program that leads a session of its own, with this terminal. What it shows is read as it comes."""

    def __init__(self, *words, rows=30, columns=100, **how):
        self.ours, self.theirs = pty.openpty()
        self.shown, self.lock = b"", threading.Lock()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.theirs)
        how = {"stdin": self.theirs, "stdout": self.theirs, "stderr": self.theirs, **how}
        self.process = subprocess.Popen(list(map(str, words)), start_new_session=True, preexec_fn=self._take, **how)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _take(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _read(self):
        while True:
            ready, _, _ = select.select([self.ours], [], [], 0.2)
            try:
                piece = os.read(self.ours, 1 << 16) if ready else b""
            except OSError:
                return
            with self.lock:
                self.shown += piece
            if not ready and self.process.poll() is not None:
                return

    def resize(self, rows, columns):
        """The kernel tells whoever is in the foreground."""
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.ours, text if isinstance(text, bytes) else text.encode())
        return self

    def raw(self):
        """All that was shown."""
        with self.lock:
            return self.shown

    def text(self):
        """The same without the sequences that only a terminal minds."""
        return CONTROL.sub(b"", self.raw()).decode(errors="replace")

    def see(self, text, after=0):
        """Waits for it; where it ends. `after` is such a place, before which nothing counts."""
        end = time.monotonic() + PATIENCE_S
        while True:
            at = self.text().find(text, after)
            if at >= 0:
                return at + len(text)
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} was not seen in {self.text()[after:]!r}")
            if self.process.poll() is not None and not self.reader.is_alive():
                raise AssertionError(f"ended with {self.process.returncode}, without {text!r}: {self.text()[after:]!r}")
            select.select([], [], [], 0.01)

    def say(self, line, seen):
        """Types a line; sees what it says, which must not stand in the line itself."""
        after = len(self.text())
        self.type(line + "\r")
        return self.see(seen, after)

    def is_as_before(self):
        """Whether the terminal has the modes that it had in the beginning."""
        return termios.tcgetattr(self.theirs) == self.before

    def wait(self):
        """The exit code, once all that was shown is here."""
        code = self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        return code

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """As when a window is closed for good: nobody in it gets a say."""
        if self.ours is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.reader.join()
        os.close(self.ours)
        os.close(self.theirs)
        self.ours = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
