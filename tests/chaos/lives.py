"""Executors that are not what they were: set back to an earlier state, cloned, or another by the same name. Whoever asked them for
something notices, and nothing that changes anything is sent a second time. Run one test: lives.py NAME; without a name: their names."""

import asyncio
import sys

import chaos
from chaos import PATIENCE_S, chain
from double import CUT, Double, Life
from sandfleet import RemoteError, Sandbox

OUT_OF_SEQUENCE = {"error": {"code": "OUT_OF_SEQUENCE", "message": "a request before it is missing"}}
MADE = {"ok": {"created": True, "target": "/w/x"}}


def anew():
    """What answers in another session."""
    return Life("a", answer=lambda _: MADE)


def mutating(life):
    return [each["seq"] for each in life.asked if "seq" in each]


class Scene:
    """A harness that makes folders in what it takes for its sandbox."""

    def __init__(self, of, *lives):
        self._of, self._double = of, Double((of.controller.state / "fleet.key").read_bytes(), *lives)
        self.lives = lives

    async def __aenter__(self):
        await self._double.__aenter__()
        self._of.wires.session_port = self._double.port
        self.box = Sandbox("default/box", socket=self._of.socket, client="lives")
        async with asyncio.timeout(PATIENCE_S):
            await self.box.open()
        return self

    async def __aexit__(self, *_):
        self.box._connection.give_up("the scene is over")
        self._of.wires.session_port = None
        await self._double.__aexit__()

    async def make(self, name="x", data=None):
        """What became of it: None, or a code."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await (self.box.files.mkdir(name) if data is None else self.box.files.write(name, data))
        except RemoteError as failure:
            return failure.code
        return None

    async def begins_anew(self):
        """What was noticed costs the session and no more."""
        assert await self.make() is None
        assert mutating(self.lives[-1]) == [1]


async def another_executor_is_sent_nothing_again(of):
    first = Life("a", answer=lambda _: CUT)
    second = Life("b", answer=lambda _: MADE)
    async with Scene(of, first, second) as scene:
        assert await scene.make() == "OUTCOME_UNKNOWN"
        assert (mutating(first), mutating(second)) == ([1], [])
        assert await scene.make() is None, "what comes is of the new session"
        assert mutating(second) == [1]


async def what_only_looks_is_asked_of_another_again(of):
    first = Life("a", answer=lambda _: CUT)
    second = Life("b", answer=lambda _: {"ok": {"info": None}})
    async with Scene(of, first, second) as scene, asyncio.timeout(PATIENCE_S):
        assert await scene.box.files.stat("x") is None
        assert len(first.asked) == len(second.asked) == 1


async def another_that_claims_the_session_is_not_believed(of):
    first = Life("a", answer=lambda _: CUT)
    clone = Life("b", resumed=True, answer=lambda _: MADE)
    async with Scene(of, first, clone, anew()) as scene:
        assert await scene.make() == "OUTCOME_UNKNOWN"
        assert clone.asked == [] and clone.closed in ("protocol", None)
        await scene.begins_anew()


async def clones_in_turns_act_once_each(of):
    """Each knows its own sessions alone, whichever of them a router leads to."""
    lives = [Life(instance, answer=lambda _: CUT) for instance in "abab"] + [Life("a", answer=lambda _: MADE)]
    async with Scene(of, *lives) as scene:
        for _ in range(4):
            assert await scene.make() == "OUTCOME_UNKNOWN"
        assert await scene.make() is None
        assert [mutating(life) for life in lives] == [[1]] * 5


async def one_that_lost_count_is_noticed(of):
    """It was set back behind what it has answered."""
    first = Life("a", answer=lambda header: MADE if header["seq"] <= 3 else CUT)
    earlier = Life("a", resumed=True, answer=lambda _: OUT_OF_SEQUENCE)
    async with Scene(of, first, earlier, anew()) as scene:
        for _ in range(3):
            assert await scene.make() is None
        assert await scene.make() == "OUT_OF_SEQUENCE"
        await scene.begins_anew()
        assert (mutating(first), mutating(earlier)) == ([1, 2, 3, 4], [4])


async def one_that_takes_back_what_it_had_of_an_upload_is_noticed(of):
    at = 200_000
    first = Life("a", answer=lambda header: {"credit": {"received": 65_536, "limit": at}} if header["op"] == "fs.write" else CUT)
    earlier = Life("a", resumed=True, receiving=lambda requests: [[each, 1_000, at] for each in requests])
    async with Scene(of, first, earlier, anew()) as scene:
        writing = asyncio.create_task(scene.make("x", b"x" * at))
        await chaos.until("it is under way", lambda: first.asked)
        assert await scene.make() == "OUTCOME_UNKNOWN" and await writing == "OUTCOME_UNKNOWN"
        await scene.begins_anew()
        assert earlier.asked == []


async def one_that_is_the_same_goes_on(of):
    """So that the others cannot be noticed by mistake."""
    first = Life("a", answer=lambda _: CUT)
    again = Life("a", resumed=True, answer=lambda _: MADE)
    async with Scene(of, first, again) as scene:
        assert await scene.make() is None
        assert (mutating(first), mutating(again)) == ([1], [1])


STORIES = (one_that_is_the_same_goes_on, another_executor_is_sent_nothing_again, what_only_looks_is_asked_of_another_again,
           another_that_claims_the_session_is_not_believed, clones_in_turns_act_once_each, one_that_lost_count_is_noticed,
           one_that_takes_back_what_it_had_of_an_upload_is_noticed)


def test_executors_that_were_set_back_or_cloned_are_noticed():
    with chain() as of:
        chaos.tell(of, *STORIES)


if __name__ == "__main__":
    chaos.world.run_test_named_by(sys.argv[1:], globals())
