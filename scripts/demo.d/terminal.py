"""A terminal in a sandbox, and a shell in it that keeps what was told it, whoever sits there and whatever lies between."""

import os

import world
from fleet import listed
from sitting import Sitting
from telling import say

KEPT = "half done"


class Terminal:
    """The shell in the sandbox, and `sandfleet` at a terminal of ours before it."""

    def __init__(self):
        self.program = None

    def open(self):
        self._sit("shell", "--", "bash", "--noprofile", "--norc", "-i")
        self.program.say(f"work='{KEPT}'; echo told-$((6*7))", "told-42")
        say("shell", f"sandfleet shell; in it a variable is set: work='{KEPT}'")

    def lose_agentd(self, agentd):
        """With keys pressed meanwhile, which arrive."""
        agentd.program.kill()
        say("kill -9", "of agentd, with the terminal open")
        after = len(self.program.text())
        self.program.type('echo "there: $work"\r')
        agentd.start()
        self.program.see(f"there: {KEPT}", after)
        say("restart", f"of agentd; what was typed meanwhile is answered in the same window: there: {KEPT}")

    def lose_the_window(self, controller):
        """As when a laptop is closed for good."""
        self.program.kill()
        (handle,) = [each["handle"] for each in listed(controller) if each["state"].get("terminal")]
        self._sit("attach", handle)
        self.recall("attach", "sandfleet attach, after its window was killed: the shell goes on")

    def recall(self, word, what):
        self.program.say('echo "still $work"', f"still {KEPT}")
        say(word, f"{what}; $work is still '{KEPT}'")

    def end(self):
        self.program.type("exit 7\r")
        code = self.program.wait()
        assert code == 7, f"{code}\n{self.program.text()}"
        assert self.program.is_as_before(), "the terminal is not as it was before"
        self.program.kill()
        say("exit", "7 ended the shell, and sandfleet with it, which gave our terminal back as it was")

    def _sit(self, *words):
        self.program = Sitting(world.programs_folder() / "sandfleet", *words, env={**os.environ, "TERM": "xterm-256color"})
        self.program.see("$ ")
