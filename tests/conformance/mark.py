"""Commands that can be found again, whatever they do: by what stands in their environment."""

import contextlib
import os
import signal

import world


class Mark(world.Marker):
    """For one case: what is spawned with `env` is among the living() until it is dead. Where that is missing which would end them,
    `with` does so."""

    def __init__(self, seam):
        super().__init__()
        self.seam = seam

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def living(self):
        """Their command lines, words with blanks between."""
        return [line.replace(b"\0", b" ").decode(errors="replace").strip() for line in self.processes().values()]

    def until(self, *wanted):
        """So many of whose command line begins so live: (beginning, count), …."""
        def so():
            living = self.living()
            return all(sum(line.startswith(beginning) for line in living) == count for beginning, count in wanted)
        self.seam.wait_until(lambda: f"{wanted} among {self.living()}", so)

    def assert_none_left(self):
        living = self.living()
        assert not living, f"left: {living}"

    def until_none_left(self):
        self.seam.wait_until(lambda: f"nothing left of {self.living()}", lambda: not self.living())
