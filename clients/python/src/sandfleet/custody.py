"""Who may use a sandbox object now. What a caller has given up is proven dead before the object is lent again; where that
cannot be proven it is quarantined and takes no work any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from .errors import LifetimeOver, Quarantined, Refused

PROOF_S = 30.0  # Beyond the grace of what is to end.


Item = TypeVar("Item")


class Mortal(Protocol):
    """Something that runs in the sandbox."""

    @property
    def grace(self) -> float: ...

    async def end_to_the_proof(self) -> None:
        """Returns once nothing of it is left; raises where that cannot be known."""


class Custody:
    def __init__(self, lifetime: float | None, proof_seconds: float = PROOF_S) -> None:
        self._lifetime = lifetime
        self._proof_seconds = proof_seconds
        self._living: set[Mortal] = set()
        self._proofs: dict[Mortal, asyncio.Task[None]] = {}
        self._expiry: asyncio.TimerHandle | None = None
        self.deadline: float | None = None  # By the loop's clock.
        self.refusal: Refused | None = None

    def begin(self) -> None:
        if self._lifetime is not None:
            loop = asyncio.get_running_loop()
            self.deadline = loop.time() + self._lifetime
            self._expiry = loop.call_at(self.deadline, self._expire)

    def refuse(self, why: Refused) -> None:
        """Takes no work from now on. The first reason stands, but that something may be left is worse than any other."""
        if self.refusal is None or isinstance(why, Quarantined):
            self.refusal = why

    @property
    def quarantined(self) -> bool:
        return isinstance(self.refusal, Quarantined)

    @contextlib.asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Around each piece of work. Waits for what is being proven, and ends work that outlasts the lifetime."""
        await self.admit()
        try:
            async with asyncio.timeout_at(self.deadline) as limit:
                yield
        except TimeoutError:
            if limit.expired():
                raise self._lifetime_over() from None
            raise

    async def each(self, items: AsyncIterator[Item]) -> AsyncIterator[Item]:
        """The same for work that hands on as it goes: whoever takes is not interrupted, only waiting is."""
        while True:
            async with self.lent():
                item = await anext(items, None)
            if item is None:
                return
            yield item

    async def admit(self) -> None:
        while self._proofs and not self.quarantined:
            await asyncio.wait(list(self._proofs.values()), return_when=asyncio.FIRST_COMPLETED)
        if self.refusal is not None:
            raise self.refusal

    def add(self, one: Mortal) -> None:
        self._living.add(one)

    def forget(self, one: Mortal) -> None:
        """Nothing of it is left."""
        self._living.discard(one)

    def holds(self, one: Mortal) -> bool:
        return one in self._living

    async def prove_dead(self, one: Mortal) -> bool:
        """Goes on to its end however often the caller is cancelled; nothing is lent meanwhile."""
        if one in self._living:
            await asyncio.shield(self._proof_of(one))
        return one not in self._living

    def _proof_of(self, one: Mortal) -> asyncio.Task[None]:
        if one not in self._proofs:
            self._proofs[one] = asyncio.get_running_loop().create_task(self._prove(one))
        return self._proofs[one]

    async def prove_all_dead(self) -> bool:
        await asyncio.gather(*(self.prove_dead(one) for one in list(self._living)))
        return not self._living

    async def end(self) -> None:
        """All that lives is ended to the proof. From then on there is nothing to lend."""
        if self._expiry:
            self._expiry.cancel()
        self.refuse(Refused("this sandbox object was closed"))
        await self.prove_all_dead()

    async def _prove(self, one: Mortal) -> None:
        try:
            async with asyncio.timeout(one.grace + self._proof_seconds):
                await one.end_to_the_proof()
            self.forget(one)
        except BaseException as why:
            known = str(why) or f"not within {one.grace + self._proof_seconds:g} s"
            self.refuse(Quarantined(f"it is not proven that nothing is left of {one}: {known}"))
            if not isinstance(why, Exception):
                raise
        finally:
            del self._proofs[one]

    def _expire(self) -> None:
        self.refuse(self._lifetime_over())
        for one in self._living:
            self._proof_of(one)

    def _lifetime_over(self) -> LifetimeOver:
        return LifetimeOver(f"it was made to be used for {self._lifetime:g} s")
