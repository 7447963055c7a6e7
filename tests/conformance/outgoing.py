"""What is sent to an executor piece by piece."""

FIRST_BYTES = 64 << 10  # Of an upload, with its request.
PIECE_BYTES = 128 << 10


class Outgoing:
    """What runs from us: bytes that nobody has asked to stop, as far as there is credit."""

    def __init__(self, content=b"", limit=0, ended=False):
        self.content, self.sent, self.limit, self.ended = bytearray(content), 0, limit, ended
        self.told_end = self.stopped = False

    def next_piece(self):
        """(offset, bytes, whether they are the last) that may be sent now, or None."""
        end = min(len(self.content), self.limit, self.sent + PIECE_BYTES)
        last = self.ended and end == len(self.content)
        if self.stopped or self.told_end or (end <= self.sent and not last):
            return None
        piece = self.sent, bytes(self.content[self.sent:end]), last
        self.sent, self.told_end = end, last
        return piece
