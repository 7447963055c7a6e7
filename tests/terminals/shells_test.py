"""bash and git as people use them, each prompt proven to be one."""

from person import PROMPT, sit_down


# covers: Y3 Y5
async def test_the_first_prompt_is_the_first_that_is_seen(sandbox):
    async with sandbox() as box, await sit_down(box) as person:
        await person.at_prompt(PROMPT)
        assert person.screen.lines[0] == "$" and not person.screen.text.strip("$\n "), person.screen.text
        await person.enter("exit 3")
        assert (await person.over()).exit_code == 3


# covers: Y2 Y3
async def test_jobs_are_interrupted_stopped_and_taken_up_again_by_keys(sandbox):
    async with sandbox() as box, await sit_down(box) as person:
        await person.at_prompt(PROMPT)
        await person.enter("sleep 1000")
        await person.busy()
        await person.type("\x03")
        await person.at_prompt(PROMPT)
        await person.enter("echo code $?")
        await person.sees("\ncode 130\n")

        await person.enter("sleep 1001")
        job = await person.busy()
        await person.type("\x1a")
        await person.sees("Stopped")
        await person.at_prompt(PROMPT)
        await person.enter("fg")
        assert await person.busy() == job
        await person.type("\x1a")
        await person.at_prompt(PROMPT)
        await person.enter("bg; jobs -r")
        await person.sees("Running")
        await person.at_prompt(PROMPT)
        await person.enter("kill %1; wait %1; echo code $?")
        await person.sees("\ncode 143\n")
        await person.at_prompt(PROMPT)

        await person.enter("cat | tr a-z A-Z")
        assert await person.waited_for() != person.process.pid
        await person.enter("every letter")
        await person.type("\x04")
        await person.sees("EVERY LETTER")
        await person.at_prompt(PROMPT)
        await person.enter("sleep 1002")
        await person.busy()
        await person.type("\x1c")
        await person.sees("Quit")
        await person.at_prompt(PROMPT)


RAW = """import os, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
try:
    print("begun", flush=True)
    while True:
        os.write(1, b"byte %d " % os.read(0, 1)[0])
finally:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
"""


# covers: Y2
async def test_a_program_that_takes_keys_raw_is_signalled_all_the_same(sandbox):
    async with sandbox() as box, await sit_down(box) as person:
        await person.at_prompt(PROMPT)
        await box.files.write("raw.py", RAW.encode())
        await person.enter("python3 raw.py")
        await person.sees("begun")
        job = await person.waited_for()
        await person.type("\x03")
        await person.sees("byte 3")
        assert await person.waited_for() == job
        assert await person.process.signal_foreground("SIGINT") == job
        await person.sees("KeyboardInterrupt")
        await person.at_prompt(PROMPT)


# covers: Y3
async def test_what_is_typed_for_read_s_is_not_shown(sandbox):
    async with sandbox() as box, await sit_down(box) as person:
        await person.at_prompt(PROMPT)
        await person.enter("read -rs -p 'word: ' word; echo; echo \"${#word} letters\"")
        await person.at_prompt("word: ")
        await person.enter("swordfish")
        await person.sees("\n9 letters\n")
        assert b"swordfish" not in person.shown
        await person.at_prompt(PROMPT)


async def test_a_line_is_edited_completed_and_found_again(sandbox):
    async with sandbox() as box, await sit_down(box) as person:
        await person.at_prompt(PROMPT)
        await person.enter("mkdir -p desk && touch desk/a-long-name")
        await person.at_prompt(PROMPT)
        await person.type("ls desk/a-\t")
        await person.sees("ls desk/a-long-name")
        await person.type("\x01echo \x05 x\x7f\x7f done\r")
        await person.sees("\nls desk/a-long-name done\n")
        await person.at_prompt(PROMPT)
        await person.type("\x1b[A")
        await person.sees("$ echo ls desk/a-long-name  done")
        await person.type("\x15\x12mkdir")
        await person.sees("(reverse-i-search)`mkdir': mkdir -p desk")
        await person.type("\x03")
        await person.at_prompt(PROMPT)
        await person.type("echo größer 漢字 🙂".encode())
        await person.type("\r")
        await person.sees("\ngrößer 漢字 🙂\n")


# covers: Y3
async def test_of_a_program_of_root_it_is_not_known_whether_it_waits(sandbox):
    async with sandbox() as box, await sit_down(box) as person:
        await person.at_prompt(PROMPT)
        await person.enter("su -c true")
        await person.sees("Password:")
        found = await person.process.foreground()
        assert found.process_group != person.process.pid and found.input_waiting is None, found
        await person.type("\x03")
        await person.at_prompt(PROMPT)


IDENTITY = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "A Person"), ("EMAIL", "person@example.com"))}


# covers: Y3
async def test_git_commits_pages_its_log_and_rebases(sandbox):
    async with sandbox() as box:
        await box.files.mkdir("repository")
        await box.files.write("editor", b"#!/bin/sh\nsed -i '2,$s/^pick/squash/' \"$1\"\n", mode=0o755)
        editors = {"GIT_SEQUENCE_EDITOR": f"{box.cwd}/editor", "GIT_EDITOR": "true"}
        async with await sit_down(box, cwd="repository", LESS=None, **IDENTITY, **editors) as person:
            await person.at_prompt(PROMPT)
            await person.enter("git init -q -b main . && for n in {1..40}; do git commit -q --allow-empty -m \"commit $n\"; done")
            await person.at_prompt(PROMPT)
            await person.enter("git log --oneline")
            pager = await person.waited_for(":")
            assert pager != person.process.pid
            assert "commit 40" in person.screen.lines[0] and "commit 17" not in person.screen.text
            await person.type(" ")
            await person.sees("commit 17")
            await person.type("q")
            await person.at_prompt(PROMPT)

            await person.enter("clear; git rebase -i HEAD~3")
            await person.sees("Successfully rebased")
            await person.at_prompt(PROMPT)
            await person.enter("git --no-pager log --format=%s -1; git rev-list --count HEAD")
            await person.sees("\ncommit 38\n38\n")
            await person.at_prompt(PROMPT)

            await person.enter("clear; echo one > file; git add file; git commit -q -m file; echo two >> file; git add -p")
            assert await person.waited_for("? ") != person.process.pid
            assert "+two" in person.screen.text
            await person.enter("y")
            await person.at_prompt(PROMPT)
            await person.enter("clear; git status --short")
            await person.sees("M  file")

            await person.enter("clear; GIT_EDITOR='vim -u NONE -N' git commit --amend")
            await person.sees(lambda screen: screen.alternate and screen.lines[0] == "file")
            await person.waited_for()
            await person.type("Aand its second line\x1b:wq\r")
            await person.at_prompt(PROMPT)
            await person.enter("clear; git --no-pager log --format=%s -1")
            await person.sees("fileand its second line\n$")
