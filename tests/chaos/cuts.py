"""A link that is cut before, within or after any frame of a session, in either direction, on either hop: all is as if it had not
been. Run one test: cuts.py NAME; without a name: their names."""

import asyncio
import os
import sys
import traceback

import chaos
import script
from chaos import LEASE_S, PATIENCE_S, Residue, chain, chance_of, is_wanted
from wires import DOWN, EXECUTOR, HARNESS, PLACES, UP, Cut

AT_ONCE = 8
MANY = 4  # Sessions of each part that are cut again and again.
OPENING = {HARNESS: 2, EXECUTOR: 4}  # Frames that each link begins with, which these parts of the script show.
OPENS = (script.SHORT_PARTS[0], script.TYPED)
HEADS = [Cut(EXECUTOR, direction, 0, place) for direction in (UP, DOWN) for place in PLACES]


def cuts_of(counts, seed, part, everywhere):
    """All frames of both hops, each cut in one place that is left to chance, or in all."""
    for (hop, direction), count in counts.items():
        for frame in range(int(hop == EXECUTOR) if part in OPENS else OPENING[hop], count):
            chance = chance_of(seed, part, hop, direction, frame)
            for place in PLACES if everywhere else [chance.choice(PLACES)]:
                yield Cut(hop, direction, frame, place, by_reset=chance.random() < 0.5)


def many_cuts(chance, frames=20):
    """Of one session, on its links one after the other."""
    return [Cut(chance.choice((HARNESS, EXECUTOR)), chance.choice((UP, DOWN)), chance.randrange(1, frames), chance.choice(PLACES),
                chance.random() < 0.5) for _ in range(chance.randrange(2, 8))]


def name_of(part, cuts):
    return f"{part}, cut {' and '.join(map(str, cuts))}"


class Run:
    """Schedules, so many at once; whatever one of them meets is told at the end, with how to have it again."""

    def __init__(self, chain, at_once=AT_ONCE):
        self.chain, self.failures, self.begun, self.done = chain, [], 0, 0
        self._places, self.patience_s = asyncio.Semaphore(at_once), PATIENCE_S

    async def all(self, schedules):
        """Those that are wanted."""
        for cut in HEADS:
            if is_wanted(name_of("terminal", [cut])):
                await self.one("terminal", [cut], whose=None)
        async with asyncio.TaskGroup() as group:
            for part, cuts in schedules:
                if is_wanted(name_of(part, cuts)):
                    group.create_task(self.one(part, cuts))

    async def one(self, part, cuts, whose=...):
        """`whose` links are cut: those of this session, where nobody is named."""
        self.begun += 1
        name = f"{part}-{self.begun}"
        async with self._places:
            wires = self.chain.wires
            for cut in cuts:
                wires.plan.add(name if whose is ... else whose, cut)
            try:
                async with asyncio.timeout(self.patience_s):
                    box = "default/typed" if part == script.TYPED else "default/box"
                    await script.run(part, wires.harness(name), name, box, self.chain.env, LEASE_S)
            except Exception as failure:
                told = "".join(traceback.format_exception(failure, limit=6))
                self.failures.append(f"{name_of(part, cuts)}: {failure!r}\n{told}")
            finally:
                counts = {(hop, way): wires.plan.links[hop, name][0].count[way]
                          for hop in (HARNESS, EXECUTOR) if (hop, name) in wires.plan.links for way in (UP, DOWN)}
                wires.forget(name)
            self.done += 1
            return counts

    def verdict(self):
        told = "\n".join(self.failures[:5])
        again = f"SANDFLEET_CHAOS_SEED={self.chain.seed} SANDFLEET_CHAOS_ONLY='part, cut …'"
        assert not self.failures, f"{len(self.failures)} of {self.done}; have one again by {again}:\n{told}"


def test_a_cut_at_any_frame_costs_nothing():
    everywhere = bool(os.environ.get("SANDFLEET_CHAOS_EVERYWHERE"))
    # What is typed has its own, since its sessions live for minutes where their last word was cut.
    with chain("box", "typed") as of:
        residue, run = Residue(of, "box"), Run(of)

        async def go():
            schedules = []
            # Of what is typed nobody knows which links to executors it has: those are not counted.
            for part in (*script.SHORT_PARTS, script.TYPED):
                frames = await run.one(part, [])
                schedules += [(part, [cut]) for cut in cuts_of(frames, of.seed, part, everywhere)]
            for part in script.SHORT_PARTS:
                schedules += [(part, many_cuts(chance_of(of.seed, part, number))) for number in range(MANY)]
            await run.all(schedules)
        asyncio.run(go())
        run.verdict()
        print(f"{run.done} sessions, {of.wires.plan.happened} cuts", flush=True)
        # The last frames of a session may be fewer another time.
        assert of.wires.plan.happened >= 0.9 * (run.done - len(script.SHORT_PARTS)), run.done
        residue.wait_for_none()


if __name__ == "__main__":
    chaos.world.run_test_named_by(sys.argv[1:], globals())
