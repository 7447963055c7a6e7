"""Which numbers a session has given to what changes something, what of that was answered, and what of that the server was
told: it keeps replies until then."""

from __future__ import annotations

from typing import Any

from .messages import LIMITS

ACKNOWLEDGE_AFTER = 64  # Replies; else at the next tick.


class Window:
    """Notices are acknowledged with it."""

    def __init__(self) -> None:
        self.begin_session()

    def begin_session(self) -> None:
        self._last = 0
        self._through = 0  # All up to here are answered,
        self._beyond: dict[int, bool] = {}  # and these; True: that was said.
        self._through_said = self._notices_heard = self._notices_said = 0
        self.due = False  # Something is to be said.

    def begin_link(self) -> None:
        """What was said may not have arrived."""
        self._through_said = self._notices_said = 0
        self._beyond = dict.fromkeys(self._beyond, False)
        self.due = True

    def next_number(self) -> int:
        self._last += 1
        return self._last

    def has_room(self, replies_most: int) -> bool:
        return self._unacknowledged() < replies_most

    def answered(self, number: int) -> None:
        self._beyond[number] = False
        while self._through + 1 in self._beyond:
            self._through += 1
            del self._beyond[self._through]
        if self._unacknowledged() >= ACKNOWLEDGE_AFTER:
            self.due = True

    def hear_notice(self, number: int) -> bool:
        """Whether it is the first time."""
        first = number > self._notices_heard
        self._notices_heard = max(number, self._notices_heard)
        return first

    def kept(self) -> int | None:
        """What goes with a request, which is about to be sent."""
        if self._through <= self._through_said:
            return None
        self._through_said = self._through
        return self._through

    def acknowledgement(self) -> dict[str, Any]:
        """What is to be said now; empty when that is nothing."""
        if not self.due:
            return {}
        self.due = False
        header: dict[str, Any] = {}
        if (through := self.kept()) is not None:
            header["through"] = through
        also = [number for number, said in self._beyond.items() if not said][: LIMITS.replies]
        if also:
            header["also"] = also
            self._beyond.update(dict.fromkeys(also, True))
        if self._notices_heard > self._notices_said:
            header["notices"] = self._notices_said = self._notices_heard
        return header

    def _unacknowledged(self) -> int:
        """Replies, had or not, that the server still keeps for all it knows."""
        return self._last - self._through_said - sum(self._beyond.values())
