"""The ends of a process that are read and written here."""

from __future__ import annotations

from collections.abc import AsyncIterator

from .connection import Connection
from .streams import Piece


class Writer:
    """Standard input of a process, as a pipe."""

    def __init__(self, connection: Connection, stream: int) -> None:
        self._connection, self._stream = connection, stream
        self.begin = 0  # Of the stream, in all that the process gets.

    @property
    def written(self) -> int:
        """How much of what the process gets, in all; it may be on its way."""
        return self.begin + self._connection.sent(self._stream)

    async def write(self, data: bytes) -> None:
        """Once it is taken in; what is not read holds this back. Raises BrokenPipeError where nobody reads any more."""
        if not await self._connection.send(self._stream, data):
            raise BrokenPipeError("nobody reads it any more")

    def close(self) -> None:
        self._connection.end(self._stream)


class Reader:
    """An output as it comes: `async for piece in reader`, each with its offset, once. One that begins further on than the one
    before ended tells of a gap, which only the mirror of a collected output may have."""

    def __init__(self, connection: Connection, stream: int) -> None:
        self._connection, self._stream = connection, stream

    def __aiter__(self) -> AsyncIterator[Piece]:
        return self._connection.pieces(self._stream)

    async def read(self) -> bytes:
        """All of it, to its end."""
        return b"".join([piece.data async for piece in self])

    def close(self) -> None:
        """It is wanted no more; who writes on to a pipe gets SIGPIPE."""
        self._connection.stop(self._stream)
