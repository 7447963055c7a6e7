"""Somebody at a terminal of a sandbox: sees what its screen shows, types, and knows from the sandbox whose turn it is."""

import asyncio
import base64
import json
import os

import world
from sandfleet import RemoteError

PATIENCE_S = 60
PROMPT = "$ "
SHELL = ["bash", "--noprofile", "--norc", "-i"]
ENVIRONMENT = {"PS1": PROMPT, "LC_ALL": "C.UTF-8", "HISTFILE": None}
LINE_BYTES_MAX = 1 << 26  # Of what the screen says: 500 rows of 500 columns are a quarter of a megabyte.


async def until(what, check, within_s=PATIENCE_S):
    """The first truthy value of `await check()`."""
    deadline = asyncio.get_running_loop().time() + within_s
    while not (value := await check()):
        assert asyncio.get_running_loop().time() < deadline, f"not within {within_s} s: {what() if callable(what) else what}"
        await asyncio.sleep(0.01)
    return value


class Screen:
    """What a terminal emulator makes of the bytes."""

    def __init__(self, rows, columns):
        self.lines, self.row, self.column, self.alternate, self.answers = [""] * rows, 0, 0, False, ""
        self._size = (rows, columns)

    async def open(self):
        script = world.REPO / "tests/terminals/screen/screen.js"
        self._program = await asyncio.create_subprocess_exec(
            world.where("node"), script, *map(str, self._size), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX, env={**os.environ, "NODE_PATH": f"{world.where('screen')}/node_modules"})
        self._turn = asyncio.Lock()

    async def close(self):
        self._program.stdin.close()
        await self._program.wait()

    async def show(self, data):
        """What it says by itself to the program that asked it."""
        return await self._ask(bytes=base64.b64encode(data).decode())

    async def resize(self, rows, columns):
        return await self._ask(rows=rows, columns=columns)

    async def _ask(self, **what):
        async with self._turn:
            self._program.stdin.write(json.dumps(what).encode() + b"\n")
            told = json.loads(await self._program.stdout.readline())
        self.lines, self.row, self.column, self.alternate = (told[name] for name in ("lines", "row", "column", "alternate"))
        return told["answers"].encode()

    @property
    def text(self):
        return "\n".join(self.lines)

    @property
    def before_cursor(self):
        return self.lines[self.row].ljust(self.column)[:self.column]


class Person:
    """`async with Person(await box.terminal([...])) as person`. What programs ask the terminal is answered."""

    def __init__(self, process, size=None):
        self.process, self.shown, self.ended, self.taken_over = process, bytearray(), False, False
        self.screen = Screen(*(size or process.spec.terminal))

    async def __aenter__(self):
        await self.screen.open()
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *why):
        await self.process.__aexit__(*why)
        await self._reading
        await self.screen.close()

    async def _read(self):
        try:
            async for piece in self.process.stdout:
                self.shown += piece.data
                answers = await self.screen.show(piece.data)
                if answers and not piece.end:
                    await self._answer(answers)
            self.ended = True
        except RemoteError as error:
            assert error.code == "CONFLICT", error
            self.taken_over = True

    async def _answer(self, answers):
        try:
            await self.process.stdin.write(answers)
        except BrokenPipeError:
            pass  # Who asked has just ended.

    def _story(self, what):
        return lambda: f"{what}; the screen:\n{self.screen.text}\nat the end: {bytes(self.shown[-300:])!r}"

    async def type(self, text):
        await self.process.stdin.write(text.encode() if isinstance(text, str) else text)

    async def enter(self, line):
        await self.type(line + "\r")

    async def resize(self, rows, columns):
        await self.screen.resize(rows, columns)
        await self.process.resize(rows, columns)

    async def sees(self, wanted):
        """Until the screen shows that text, or is as that says."""
        async def so():
            return wanted(self.screen) if callable(wanted) else wanted in self.screen.text
        await until(self._story(f"to see {wanted!r}"), so)

    async def waited_for(self, prompt=""):
        """Until a program waits for input behind `prompt`: its process group."""
        async def so():
            found = await self.process.foreground()
            return found.input_waiting and self.screen.before_cursor.endswith(prompt) and found.process_group
        return await until(self._story(f"to be waited for behind {prompt!r}"), so)

    async def at_prompt(self, prompt=""):
        """The same of the command that leads the terminal."""
        assert await self.waited_for(prompt) == self.process.pid, "another one waits"

    async def busy(self):
        """Until a job is in the foreground that waits for no input: its process group."""
        async def so():
            found = await self.process.foreground()
            return found.input_waiting is False and found.process_group not in (None, self.process.pid) and found.process_group
        return await until(self._story("a job at work"), so)

    async def over(self):
        """Until the command has ended, all was shown and nothing is left of it: its state."""
        state = await self.process.wait("empty", timeout=PATIENCE_S)

        async def ended():
            return self.ended
        await until(self._story("the end of what is shown"), ended)
        return state


async def sit_down(box, *, rows=24, columns=80, cwd=None, **environment):
    """At a shell with nobody's settings."""
    return Person(await box.terminal(SHELL, rows=rows, columns=columns, cwd=cwd, env=ENVIRONMENT | environment, grace=1))
