"""Interpreters, a compiler, a pager and an editor, as people use them."""

import world
from person import Person

from sandfleet import RemoteError

ENVIRONMENT = {"LC_ALL": "C.UTF-8", "LESS": None, "VIMINIT": None, "HISTFILE": None}


async def run(box, *argv, rows=24, columns=80, **environment):
    return Person(await box.terminal(argv, rows=rows, columns=columns, env=ENVIRONMENT | environment, grace=1))


# covers: Y3
async def test_python_reads_statements_and_goes_on_after_ctrl_c(sandbox):
    async with sandbox() as box, await run(box, "python3", "-q") as person:
        await person.at_prompt(">>> ")
        await person.enter("def twice(text):")
        await person.at_prompt("... ")
        await person.enter("    return text * 2")
        await person.at_prompt("... ")
        await person.enter("")
        await person.at_prompt(">>> ")
        await person.enter("twice('ab')")
        await person.sees("\n'abab'\n")
        await person.at_prompt(">>> ")
        # What comes while it still reads is its line editor's to take, and that may miss a signal until the next key.
        await person.enter("exec(\"print('at work')\\nwhile True: pass\")")
        await person.sees("\nat work\n")
        await person.type("\x03")
        await person.sees("KeyboardInterrupt")
        await person.at_prompt(">>> ")
        await person.enter("1 / 0")
        await person.sees("ZeroDivisionError: division by zero")
        await person.at_prompt(">>> ")
        await person.type("\x04")
        assert (await person.over()).exit_code == 0


ASKS = """import getpass, sys
name = input("name? ")
word = getpass.getpass("word? ")
print(name, len(word), file=sys.stderr)
raise SystemExit(len(name))
"""


# covers: Y3
async def test_a_script_asks_for_a_name_and_for_a_word_that_nobody_sees(sandbox):
    async with sandbox() as box:
        await box.files.write("asks.py", ASKS.encode())
        async with await run(box, "python3", "asks.py") as person:
            await person.at_prompt("name? ")
            await person.enter("Zoë")
            await person.at_prompt("word? ")
            await person.enter("swordfish")
            await person.sees("\nZoë 9\n")
            assert (await person.over()).exit_code == 3
            assert b"swordfish" not in person.shown


FAULTY = """#include <stdio.h>
int main(void) {
  int unused;
  char name[32];
  printf("name? ");
  fflush(stdout);
  if (scanf("%31s", name) != 1) return 1
  printf("hello, %s\\n", name);
  return *(volatile int *)0;
}
"""


# covers: Y3
async def test_gcc_tells_of_errors_and_warnings_and_what_it_builds_runs(sandbox):
    async with sandbox() as box:
        await box.files.write("hello.c", FAULTY.encode())
        async with await run(box, "gcc", "-Wall", "hello.c", "-o", "hello") as person:
            assert (await person.over()).exit_code == 1
            assert "hello.c:7:41: error: expected" in person.screen.text, person.screen.text
            assert b"\x1b[01;31m" in person.shown, "in colours, as it is a terminal"
        await box.files.write("hello.c", FAULTY.replace("return 1\n", "return 1;\n").encode())
        async with await run(box, "gcc", "-Wall", "hello.c", "-o", "hello") as person:
            assert (await person.over()).exit_code == 0
            assert "warning: unused variable" in person.screen.text, person.screen.text
        async with await run(box, "./hello") as person:
            await person.at_prompt("name? ")
            await person.enter("world")
            await person.sees("\nhello, world")
            state = await person.over()
            assert (state.exit_code, state.signal) == (None, "SIGSEGV")


async def node_in(box):
    """The sandbox's own; where it has none, that of the tests is brought along."""
    try:
        return await box.which("node")
    except RemoteError as error:
        assert error.code == "EXECUTABLE_NOT_FOUND", error
    await box.files.write("node", world.where("node").read_bytes(), mode=0o755)
    return f"{box.cwd}/node"


# covers: Y3
async def test_node_reads_statements_of_several_lines(sandbox):
    async with sandbox() as box, await run(box, await node_in(box), NODE_REPL_HISTORY="") as person:
        await person.at_prompt("> ")
        await person.enter("function twice(text) {")
        await person.at_prompt("... ")
        await person.enter("return text + text;")
        await person.at_prompt("... ")
        await person.enter("}")
        await person.at_prompt("> ")
        await person.enter("twice('ab')")
        await person.sees("\n'abab'\n")
        await person.at_prompt("> ")
        await person.enter("[1,")
        await person.at_prompt("... ")
        await person.type("\x03")
        await person.at_prompt("> ")
        await person.enter("await new Promise(() => {})")
        await person.type("\x03")
        await person.sees("interrupted")
        await person.at_prompt("> ")
        await person.enter(".exit")
        assert (await person.over()).exit_code == 0


# covers: Y3
async def test_less_pages_searches_and_fills_a_larger_screen(sandbox):
    async with sandbox() as box:
        await box.files.write("text", "".join(f"line {number}\n" for number in range(1, 301)).encode())
        async with await run(box, "less", "text", rows=10) as person:
            await person.at_prompt("text")
            assert person.screen.alternate and person.screen.lines[:9] == [f"line {number}" for number in range(1, 10)]
            await person.type(" ")
            await person.sees(lambda screen: screen.lines[0] == "line 10" and screen.before_cursor == ":")
            await person.at_prompt(":")
            await person.type("/line 2.7\r")
            await person.sees(lambda screen: screen.lines[0] == "line 207")
            await person.at_prompt(":")
            await person.resize(20, 40)
            await person.sees(lambda screen: screen.lines[:19] == [f"line {number}" for number in range(207, 226)])
            await person.at_prompt(":")
            await person.type("G")
            await person.sees(lambda screen: screen.lines[18:] == ["line 300", "(END)"])
            await person.type("/nowhere\r")
            await person.sees("Pattern not found")
            await person.type("\rq")
            assert (await person.over()).exit_code == 0
            assert not person.screen.alternate and "line" not in person.screen.text


# covers: Y3
async def test_vim_edits_a_file_on_a_screen_of_its_own_that_changes_its_size(sandbox):
    async with sandbox() as box:
        await box.files.write("poem", b"roses are red\n")
        async with await run(box, "bash", "--noprofile", "--norc", PS1="$ ") as person:
            await person.at_prompt("$ ")
            await person.enter("vim -u NONE -N poem")
            await person.sees(lambda screen: screen.alternate and screen.lines[0] == "roses are red" and screen.lines[1] == "~")
            vim = await person.waited_for()
            assert vim != person.process.pid
            await person.type("oviolets are blue\x1b")
            await person.sees(lambda screen: screen.lines[1] == "violets are blue")
            await person.resize(40, 120)
            await person.sees(lambda screen: screen.lines[38] == "~")
            await person.type(":echo &lines &columns\r")
            await person.sees(lambda screen: "40 120" in screen.lines[39])
            assert await person.waited_for() == vim
            await person.type("\x1a")
            await person.sees(lambda screen: not screen.alternate and "Stopped" in screen.text)
            await person.at_prompt("$ ")
            await person.enter("fg")
            await person.sees(lambda screen: screen.alternate and screen.lines[1] == "violets are blue")
            await person.type(":wq\r")
            await person.at_prompt("$ ")
            assert not person.screen.alternate and "vim -u NONE -N poem" in person.screen.text, person.screen.text
            assert await box.files.read_bytes("poem") == b"roses are red\nviolets are blue\n"
            await person.enter("exit")
            assert (await person.over()).exit_code == 0
