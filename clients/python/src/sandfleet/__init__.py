"""Work inside a Sandfleet sandbox, through agentd on this machine. Asynchronous here; sandfleet.sync has the same, blocking."""

from .errors import Failure, LifetimeOver, ProtocolError, Quarantined, Refused, RemoteError, SandfleetError
from .events import Notice, Welcome
from .files import Change, Copied, Edited, Entry, Info, Written
from .processes import Process
from .runs import CommandFailed, CommandTimedOut, Outcome, OutcomeUnknown, Output, RunError, RunResult
from .sandbox import Sandbox
from .search import Globbed, Grepped, Line, Search, Summary
from .specs import DISCARD, PIPE, Collect, Foreground, Listed, OutputState, State
from .streams import Piece

__all__ = [
    "DISCARD",
    "PIPE",
    "Change",
    "Collect",
    "CommandFailed",
    "CommandTimedOut",
    "Copied",
    "Edited",
    "Entry",
    "Failure",
    "Foreground",
    "Globbed",
    "Grepped",
    "Info",
    "LifetimeOver",
    "Line",
    "Listed",
    "Notice",
    "Outcome",
    "OutcomeUnknown",
    "Output",
    "OutputState",
    "Piece",
    "Process",
    "ProtocolError",
    "Quarantined",
    "Refused",
    "RemoteError",
    "RunError",
    "RunResult",
    "Sandbox",
    "SandfleetError",
    "Search",
    "State",
    "Summary",
    "Welcome",
    "Written",
]
