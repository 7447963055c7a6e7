"""What a harness asks of its execution world, as cases see it: one surface, whatever leads to the sandbox. A driver implements
the begin_* methods; each gives a Pending, so that what is asked can be given up, or be asked at once with something else."""

import contextlib
import dataclasses
import os

from world import wait_until

PATIENCE_S = 20
WAYS = ("executor", "agentd", "dsh")


class Failure(Exception):
    """What was asked failed. `code` is what callers act on; None: the surface gives no code there, only words."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


def not_through(*ways, why):
    """Above a case: the surface of these ways cannot express it. The generated page says why."""
    def mark(case):
        case.not_through = getattr(case, "not_through", {}) | dict.fromkeys(ways, why)
        return case
    return mark


def fails_without(*mechanisms):
    """Above a case that looks for what may leak: it must fail against an executor that has these left out
    (executor/testing/without_main.cc), by the way `executor`."""
    def mark(case):
        case.fails_without = ",".join(mechanisms)
        return case
    return mark


@contextlib.contextmanager
def fails(*codes):
    """The block must fail, with one of these codes; yields a list that then holds the failure."""
    met = []
    try:
        yield met
    except Failure as failure:
        assert failure.code in codes, f"expected {' or '.join(map(str, codes))}, got {failure}"
        met.append(failure)
        return
    raise AssertionError(f"expected {' or '.join(map(str, codes))}, but it was done")


class Pending:
    """Something that was asked for. `finish` waits for what came of it, `give_up` says that it is wanted no more."""

    def __init__(self, finish, give_up):
        self._finish, self._give_up = finish, give_up

    def result(self):
        return self._finish()

    def abort(self):
        """Returns at once; what came of it is still to be asked for."""
        self._give_up()
        return self

    def then(self, convert):
        return Pending(lambda: convert(self._finish()), self._give_up)


@dataclasses.dataclass(frozen=True)
class Target:
    key: str  # Opaque; equal for all ways to spell one file.
    display: str


@dataclasses.dataclass(frozen=True)
class Info:
    version: str
    type: str  # file, directory, other; symlink of lstat.
    size: int | None

    @staticmethod
    def of(raw):
        """From how it travels; None: there is none."""
        return raw and Info(raw["version"], raw["type"], raw.get("size"))


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str
    type: str
    target: Target
    version: str | None
    size: int | None


@dataclasses.dataclass(frozen=True)
class Written:
    operation: str  # create, update
    version: str
    before: str | None
    after: str


@dataclasses.dataclass(frozen=True)
class Edited:
    version: str
    before: str
    after: str


@dataclasses.dataclass(frozen=True)
class Policy:
    """What one call may change. `mode`: read-only, workspace-write, danger-full-access, or what nobody knows."""
    mode: str
    root: str


@dataclasses.dataclass(frozen=True)
class Collect:
    """An output of which the last bytes are kept; all of it in a file, once it is more."""
    max_bytes: int
    spill_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    exit_code: int | None
    signal: str | None


@dataclasses.dataclass(frozen=True)
class Read:
    text: str
    next: int
    lossy: bool
    spill_path: str | None


def raw_intent(intent):
    """What a write insists on, as it travels."""
    return intent and {"kind": intent[0]} | ({"version": intent[1]} if len(intent) > 1 else {})


class Command:
    """What was spawned."""

    pid: int

    def done(self):
        """Its Outcome, once it is known and its outputs are whole. Raises Failure when it could not be started."""
        return self.begin_done().result()

    def begin_done(self):
        raise NotImplementedError

    def output(self, name="stdout"):
        """All bytes of an output that is a pipe, to its end."""
        raise NotImplementedError

    def read_from(self, from_byte=0, name="stdout"):
        """What there is now of an output that is collected."""
        raise NotImplementedError

    def until_written(self, text, name="stdout"):
        """Until an output that is collected holds that."""
        wait_until(lambda: f"{text!r} in {self.read_from(0, name)!r:.300}", lambda: text in self.read_from(0, name).text)

    def until_total(self, total, name="stdout"):
        """Until so many bytes have been collected, kept or not."""
        wait_until(lambda: f"{total} bytes of {self.read_from(0, name)!r:.300}", lambda: self.read_from(0, name).next >= total)

    def write(self, data):
        """To a stdin that is a pipe, once it is taken."""
        raise NotImplementedError

    def end_input(self):
        raise NotImplementedError

    def terminate(self):
        raise NotImplementedError

    def wait_for_exit(self):
        """True: nothing of it is left, which is proven."""
        return self.begin_wait_for_exit().result()

    def begin_wait_for_exit(self):
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Foreground:
    group: int
    waiting: bool  # Proven to wait for input.


class Terminal:
    """A command that leads a terminal of its own."""

    pid: int

    def shown(self):
        """All bytes so far."""
        raise NotImplementedError

    def ended(self):
        """Whether nothing more is shown."""
        raise NotImplementedError

    def write(self, text):
        """Once it is taken. Raises Failure after the end."""
        return self.begin_write(text).result()

    def begin_write(self, text):
        raise NotImplementedError

    def foreground(self):
        """Foreground, or None: nobody is. Raises Failure after the end."""
        raise NotImplementedError

    def signal(self, name):
        """The process group in the foreground, which got it."""
        raise NotImplementedError

    def terminate(self):
        """Returns when nothing of it is left, which is proven."""
        return self.begin_terminate().result()

    def begin_terminate(self):
        raise NotImplementedError

    def done(self):
        """Its Outcome."""
        raise NotImplementedError

    def until_shown(self, text):
        wait_until(lambda: f"to see {text!r} in {self.shown()[-500:]!r}", lambda: text.encode() in self.shown())

    def until_waiting(self, waiting=True):
        """Whoever is in the foreground then: its group."""
        def so():
            found = self.foreground()
            return found and found.waiting == waiting and found.group
        return wait_until(lambda: f"waiting={waiting}: {self.foreground()}, {self.shown()[-500:]!r}", so)


class Seam:
    """One session with the sandbox. `ground` is the same machine by another hand; `folder` is the case's own, empty at first."""

    way: str

    def __init__(self, stage, ground):
        self.stage, self.ground, self.folder = stage, ground, ground.new_folder()
        self.patience_s = stage.get("patience_s", PATIENCE_S)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def at(self, *parts):
        """The target of a path in the case's folder."""
        return self.resolve(self.path(*parts))

    def wait_until(self, what, check):
        return wait_until(what, check, self.patience_s)

    def another(self, ground=None, **sandbox):
        """A second session by the same way. `sandbox` and its `ground`: with another sandbox."""
        raise NotImplementedError

    def counted(self):
        """A context: a session, and a function that says how many requests were made in it so far."""
        raise NotImplementedError

    def own_executor(self, grouped=False):
        """A context: an executor that is nobody else's, as AloneExecutor, and a session with it. `grouped`: it holds commands by
        control groups, and not by reapers."""
        raise NotImplementedError

    def close(self):
        """Ends the session; what it left running ends with it."""
        raise NotImplementedError

    # Files.

    def resolve(self, path, cwd=None):
        return self.begin_resolve(path, cwd).result()

    def stat(self, target):
        """Info, or None: there is none."""
        return self.begin_stat(target).result()

    def lstat(self, path, cwd=None):
        return self.begin_lstat(path, cwd).result()

    def read_text(self, target):
        return self.begin_read_text(target).result()

    def read_bytes(self, target, max_bytes=1 << 30):
        return self.begin_read_bytes(target, max_bytes).result()

    def stream_text(self, target):
        """An iterator over texts. Raises Failure where it breaks off; leaving off early ends the reading."""
        raise NotImplementedError

    def list(self, target):
        return self.begin_list(target).result()

    def write(self, target, content, intent=None, policy=None):
        """`intent`: ("createIfAbsent",) or ("replaceIfVersion", version)."""
        return self.begin_write(target, content, intent, policy).result()

    def begin_unfinished_write(self, target, content, intent=None, policy=None):
        """More than 128 KiB of which the executor has a part; result() lets the rest follow."""
        raise NotImplementedError

    def edit(self, target, old, new, replace_all=False, version=None, policy=None):
        return self.begin_edit(target, old, new, replace_all, version, policy).result()

    # Processes.

    def spawn(self, argv, cwd=None, stdin="ignore", stdout=Collect(1 << 20), stderr=Collect(1 << 20), grace_ms=5_000, env=None):
        """A Command. `stdin`: "ignore", "pipe" or bytes; an output: "pipe" or Collect; of `env`, None removes. Raises Failure when
        it is refused before anything is started."""
        raise NotImplementedError

    def run_confined(self, argv, policy):
        """(exit code, stdout) of a command that is held to a mode. Raises Failure where it cannot be."""
        raise NotImplementedError

    def terminal(self, argv, cwd=None, rows=24, columns=80, grace_ms=5_000, env=None):
        """A Terminal."""
        return self.begin_terminal(argv, cwd, rows, columns, grace_ms, env).result()

    def begin_terminal(self, argv, cwd=None, rows=24, columns=80, grace_ms=5_000, env=None):
        raise NotImplementedError

    def resolve_executable(self, command, env=None):
        raise NotImplementedError

    def run(self, *argv, **how):
        """A command to its end: (Outcome, stdout)."""
        command = self.spawn(list(argv), **how)
        outcome = command.done()
        return outcome, command.read_from().text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self.ground.remove(self.folder)
