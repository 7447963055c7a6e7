"""Programs of the chain that are killed, and a sandbox that is paused, at moments of a session that are left to chance. Run one
test: kills.py NAME; without a name: their names."""

import asyncio
import os
import signal
import sys

import chaos
import script
from chaos import LEASE_S, PATIENCE_S, Residue, chain, chance_of, until
from sandfleet import PIPE, Quarantined, RemoteError, Sandbox
from wires import EXECUTOR

TIMES = 3  # Each is killed.
UNKNOWN = ("OUTCOME_UNKNOWN", "LOST", "UNAVAILABLE")


class Work:
    """Sessions side by side, each with a part of the script, while something is done to the chain."""

    def __init__(self, of, what):
        self.of, self.what, self.chance = of, what, chance_of(of.seed, what)

    async def through(self, disturb, parts=tuple(script.PARTS)):
        """`disturb` again and again, each time after some more frames, with all parts begun before. All of them are exact."""
        for times in range(TIMES):
            async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
                for part in parts:
                    group.create_task(self._session(part, f"{self.what}-{times}-{part}"))
                await self.some_frames(len(parts))
                await disturb()

    async def some_frames(self, sessions):
        plan = self.of.wires.plan
        enough = plan.frames + self.chance.randrange(10, 60 * sessions)
        await until(lambda: f"{enough} frames, of which {plan.frames} passed", lambda: plan.frames >= enough)

    async def _session(self, part, name):
        try:
            await script.run(part, self.of.wires.harness(name), name, "default/box", self.of.env, LEASE_S)
        except Exception as failure:
            raise AssertionError(f"{name}; have it again by SANDFLEET_CHAOS_SEED={self.of.seed}") from failure
        finally:
            self.of.wires.forget(name)


async def agentd_is_killed(of):
    async def kill():
        of.agentd.program.kill()
        of.agentd.start()
    await Work(of, "agentd").through(kill)


async def the_controller_is_killed(of):
    """Links that are open do not need it."""
    async def kill():
        of.controller.program.kill()
        of.wires.cut_all(EXECUTOR)
        await asyncio.sleep(0)
        of.controller.start()
    await Work(of, "controller").through(kill)
    await asyncio.to_thread(of.controller.wait_ready, "box")


async def the_provider_is_killed(of):
    """With its router; sandboxes go on, and are adopted by the next."""
    async def kill():
        of.provider.program.kill()
        of.provider.start()
    await Work(of, "provider").through(kill)
    await asyncio.to_thread(of.controller.wait_ready, "box")


async def the_sandbox_is_paused_once(of):
    await asyncio.to_thread(of.controller.cli, "pause", "box")
    await until(lambda: f"it is paused; {of.controller.story()}", lambda: of.state_of("box") == "Paused")
    await asyncio.to_thread(of.controller.cli, "resume", "box")
    await until(lambda: f"it runs again; {of.controller.story()}", lambda: of.controller.is_ready("box"))


async def the_sandbox_is_paused(of):
    await Work(of, "pause").through(lambda: the_sandbox_is_paused_once(of))


class Counting:
    """Counts in a file by one edit after the other, and knows of each whether it was made."""

    def __init__(self, of, name):
        self.name, self.notices, self.unknown, self.value = name, [], 0, 0
        self.box = Sandbox("default/box", socket=of.wires.harness(name), client=name, lease_seconds=LEASE_S,
                           on_notice=self.notices.append)

    async def run(self, enough):
        async with self.box:
            self.instances = [self.box.welcome.instance]
            await self.box.files.write(self.name, "0")
            while not enough():
                try:
                    await self.box.files.edit(self.name, str(self.value), str(self.value + 1))
                    self.value += 1
                except RemoteError as failure:
                    assert failure.code in UNKNOWN, failure
                    self.unknown += 1
                    await self._look()
                if self.box.welcome.instance != self.instances[-1]:
                    self.instances.append(self.box.welcome.instance)
        # One each time for the session that was gone: at first the one that it named in its hello.
        assert len(self.notices) == len(self.instances), (self.notices, self.instances)
        assert {each.kind for each in self.notices} == {"lost"}, self.notices

    async def _look(self):
        """Made or not, but never twice."""
        found = int(await self.box.files.read_text(self.name))
        assert found in (self.value, self.value + 1), (found, self.value)
        self.value = found


async def a_handle_is_lost(of, name, kill):
    """Of a command that reads, and of one that is waited for."""
    box = await Sandbox("default/box", socket=of.wires.harness(name), client=name, lease_seconds=LEASE_S).open()
    cat = await box.spawn(["cat"], stdin=PIPE, env=of.env)
    await cat.stdin.write(b"one")
    assert (await anext(aiter(cat.stdout))).data == b"one"
    waiting = asyncio.create_task(cat.wait("empty"))
    await kill()
    for meets in (cat.stdout.read(), waiting):
        try:
            told = await meets
        except RemoteError as failure:
            assert failure.code in (*UNKNOWN, "NOT_FOUND"), failure
        else:
            raise AssertionError(f"it did not hear of the loss: {told}")
    try:
        await box.close()
    except Quarantined:
        return
    raise AssertionError("nothing proves that a command is gone whose executor is")


async def the_executor_is_killed(of):
    """Its child that serves, and both of it; what it was asked acts once at most, and files go on."""
    over = asyncio.Event()
    counting = [Counting(of, f"counts-{number}") for number in range(4)]

    async def kill_child():
        before = of.serving("box")
        os.kill(before, signal.SIGKILL)
        await until("another serves", lambda: len(of.executors("box").get("box", [])) == 2 and of.serving("box") != before)

    async def kill_both():
        os.kill(of.executors("box")["box"][0], signal.SIGKILL)
        await until("both are gone", lambda: not of.executors("box"))
        await asyncio.to_thread(of.controller.cli, "reconcile", "box")
        await until(lambda: f"it is prepared anew; {of.controller.story()}", lambda: len(of.executors("box").get("box", [])) == 2)

    async def killing():
        for times in range(TIMES):
            for kill in (kill_child, kill_both):
                await Work(of, f"executor-{times}").some_frames(len(counting))
                await a_handle_is_lost(of, f"lost-{times}-{kill.__name__}", kill)
                await until("all see the same", lambda: len({each.box.welcome.instance for each in counting}) == 1)
        over.set()

    async with asyncio.timeout(2 * PATIENCE_S), asyncio.TaskGroup() as group:
        for each in counting:
            group.create_task(each.run(over.is_set))
        group.create_task(killing())
    print(f"{[each.value for each in counting]} edits, outcomes unknown: {[each.unknown for each in counting]}")


STORIES = (the_sandbox_is_paused, agentd_is_killed, the_controller_is_killed, the_provider_is_killed, the_executor_is_killed)


def test_what_is_killed_or_paused_costs_a_session_what_it_must():
    with chain() as of:
        residue = Residue(of)
        chaos.tell(of, *STORIES)
        residue.wait_for_none()


if __name__ == "__main__":
    chaos.world.run_test_named_by(sys.argv[1:], globals())
