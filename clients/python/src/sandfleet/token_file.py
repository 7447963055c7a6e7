"""The token that a file has by now."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from .link import TokenSource
from .names import Name

# docs/protocol.md, "Without a token".
BLANKS = b" \t\r\n"
TOKEN = re.compile(rb"[\x21-\x7e]{1,8192}")


def token_source(token_file: Name | None) -> TokenSource | None:
    """Read anew each time: a projected token changes."""
    if token_file is None:
        return None
    path = Path(os.fsdecode(token_file))

    def read() -> str:
        token = path.read_bytes().strip(BLANKS)
        if not token:
            raise FileNotFoundError(errno.ENOENT, "there is no token in it", str(path))
        if not TOKEN.fullmatch(token):
            raise ValueError(f"{path} holds no token")
        return token.decode("ascii")

    return read
