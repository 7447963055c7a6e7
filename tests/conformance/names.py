"""Names of files, and arguments, as they travel."""

import base64


def to_wire(name):
    """A path or an argument: bytes that are not UTF-8 stand in a str as surrogates."""
    try:
        name.encode()
        return name
    except UnicodeEncodeError:
        return {"b64": base64.b64encode(name.encode(errors="surrogateescape")).decode()}


def from_wire(name):
    return name if isinstance(name, str) else base64.b64decode(name["b64"]).decode(errors="surrogateescape")
