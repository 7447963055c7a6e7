"""The ways `executor` and `agentd`: the session protocol itself, on the executor's own port or through agentd's socket."""

import codecs
import contextlib
import secrets

from alone import alone_executor
from ground import Ground
from names import from_wire, to_wire
from outgoing import FIRST_BYTES, Outgoing
from seam import (Collect, Command, Edited, Entry, Failure, Foreground, Info, Outcome, Pending, Read, Seam, Target, Terminal, Written,
                  raw_intent)
from session import DirectSession, Session

NEW_FILE_MODE = 0o600  # As dsh asks for it.
DIFF_BYTES_MAX = 10 << 20
MODES = {"read-only": "ReadOnly", "workspace-write": "WorkspaceWrite", "danger-full-access": "DangerFullAccess"}
TAIL_READ_BYTES = 16 << 20
SCROLLBACK_BYTES = 4 << 20


def with_lf(text):
    return text.replace("\r\n", "\n")


def as_text(content):
    """As who shows it decodes it: a byte order mark at the beginning is no part of it."""
    return content.decode("utf-8-sig")


class WireSeam(Seam):
    def __init__(self, stage, ground, way, sandbox="default/box"):
        super().__init__(stage, ground)
        self.way, self.session = way, self.new_session(stage, way, sandbox)

    @staticmethod
    def new_session(stage, way, sandbox):
        if way == "agentd":
            return Session(stage["agentd"]["socket"], sandbox).connect()
        return DirectSession(tuple(stage["executor"]["address"]), stage["executor"]["token"]).connect()

    def another(self, ground=None, **sandbox):
        return WireSeam(self.stage, ground or self.ground, self.way, **sandbox)

    @contextlib.contextmanager
    def counted(self):
        yield self, lambda: self.session.requests

    @contextlib.contextmanager
    def own_executor(self, grouped=False):
        with alone_executor(**self.stage["executor"]["how"], grouped=grouped) as executor:
            mine = self.with_executor(executor)
            yield executor, mine
            mine.session.close()

    def with_executor(self, executor):
        """A session with it, as it is now."""
        return WireSeam(self.stage | {"executor": executor.told()}, Ground("", str(executor.home)), "executor")

    def close(self):
        self.session.end()

    # Files.

    def begin(self, op, args, **how):
        """A request whose reply is all."""
        number = self.session.ask(op, args, **how)
        return Pending(lambda: self.session.reply_to(number), lambda: self.session.cancel(number))

    def begin_with_body(self, op, args, **how):
        """(reply, the bytes that came with it)"""
        number = self.session.ask(op, args, down=True, **how)
        return Pending(lambda: (self.session.reply_to(number), self.session.body_of(number)), lambda: self.session.cancel(number))

    def begin_resolve(self, path, cwd=None):
        return self.begin("fs.resolve", self._place(path, cwd)).then(
            lambda ok: Target(from_wire(ok["target"]), from_wire(ok["displayPath"])))

    def begin_stat(self, target):
        return self.begin("fs.stat", _at(target)).then(lambda ok: Info.of(ok.get("info")))

    def begin_lstat(self, path, cwd=None):
        return self.begin("fs.lstat", self._place(path, cwd)).then(lambda ok: Info.of(ok.get("info")))

    def begin_read_text(self, target):
        return self.begin_with_body("fs.readText", _at(target)).then(lambda told: as_text(told[1]))

    def begin_read_bytes(self, target, max_bytes):
        return self.begin_with_body("fs.readBytes", _at(target) | {"maxBytes": max_bytes}).then(lambda told: told[1])

    def stream_text(self, target):
        number = self.session.ask("fs.readText", _at(target), down=True)
        self.session.reply_to(number)
        stream, decoder, taken = self.session.streams[number], codecs.getincrementaldecoder("utf-8-sig")(), 0
        try:
            while True:
                self.session.wait(lambda: stream.ended or len(stream.content) > taken)
                piece, taken = bytes(stream.content[taken:]), len(stream.content)
                if text := decoder.decode(piece, final=stream.ended and not stream.error):
                    yield text
                if stream.error:
                    raise Failure(stream.error["code"], stream.error["message"])
                if stream.ended:
                    return
        finally:
            if not stream.ended:
                self.session.stop(number)

    def begin_list(self, target):
        return Pending(lambda: self._all_pages(target), lambda: None)

    def _all_pages(self, target):
        entries, after, more = [], None, True
        while more:
            page = self.session.call("fs.listDir", _at(target) | ({"after": after} if after else {}))
            entries += page["entries"]
            more, after = page["more"], page["entries"][-1]["name"] if page["entries"] else None
        return [_entry(target, each) for each in entries]

    def begin_write(self, target, content, intent=None, policy=None):
        upload = content.encode()
        args = _at(target) | {"size": len(upload), "mode": NEW_FILE_MODE, "diffBytesMax": DIFF_BYTES_MAX}
        args |= {"intent": raw_intent(intent)} if intent else {}

        def written(told):
            ok, body = told
            before = body.decode() if ok.get("before") is not None and len(upload) < DIFF_BYTES_MAX else None
            return Written(ok["operation"], ok["version"], before, with_lf(content))
        return self.begin_with_body("fs.write", args, mutating=True, upload=upload, **_narrowing(policy)).then(written)

    def begin_unfinished_write(self, target, content, intent=None, policy=None):
        """A write of which a part has arrived, and the rest is kept back until `finish`."""
        whole = content.encode()
        sending = Outgoing(whole[:2 * FIRST_BYTES])
        assert len(whole) > 2 * FIRST_BYTES, "it would be whole"
        args = _at(target) | {"size": len(whole), "mode": NEW_FILE_MODE} | ({"intent": raw_intent(intent)} if intent else {})
        number = self.session.ask("fs.write", args, mutating=True, upload=sending, **_narrowing(policy))
        self.session.wait(lambda: sending.sent == len(sending.content) or number in self.session.replies)

        def finish():
            sending.content += whole[2 * FIRST_BYTES:]
            sending.ended = True
            self.session.send_on(number)
            return self.session.reply_to(number)
        return Pending(finish, lambda: self.session.cancel(number))

    def begin_edit(self, target, old, new, replace_all=False, version=None, policy=None):
        before = old.encode()
        args = _at(target) | {"oldBytes": len(before), "replaceAll": replace_all, "diffBytesMax": DIFF_BYTES_MAX}
        args |= {"version": version} if version else {}

        def edited(told):
            ok, body = told
            size = ok["before"]["bytes"]
            return Edited(ok["version"], body[:size].decode(), body[size:].decode())
        return self.begin_with_body("fs.editText", args, mutating=True, upload=before + new.encode(), **_narrowing(policy)).then(edited)

    def _place(self, path, cwd):
        return {"path": to_wire(path), "cwd": to_wire(cwd or self.session.welcomes[0]["cwd"])} if path else {"path": path}

    # Processes.

    def run_confined(self, argv, policy):
        args = {"handle": secrets.token_hex(16), "argv": argv, "cwd": to_wire(self.folder), "graceMs": 5_000, "stdin": "ignore",
                "stdout": {"collect": {"maxBytes": 1 << 20}}, "stderr": "discard"}
        self.session.call("process.spawn", args, mutating=True, **_narrowing(policy))
        state = self.session.call("process.wait", {"handle": args["handle"], "until": "settled"})["state"]
        number = self.session.ask("process.read", {"handle": args["handle"], "output": "stdout", "from": 0}, down=True)
        self.session.reply_to(number)
        return state.get("exitCode"), self.session.body_of(number).decode()

    def resolve_executable(self, command, env=None):
        ok = self.session.call("process.resolveExecutable", {"command": command, "env": list((env or {}).items())})
        return from_wire(ok["path"])

    def spawn(self, argv, cwd=None, stdin="ignore", stdout=Collect(1 << 20), stderr=Collect(1 << 20), grace_ms=5_000, env=None):
        return WireCommand(self.session, argv, cwd or self.folder, {"stdin": stdin, "stdout": stdout, "stderr": stderr}, grace_ms, env or {})


    def begin_terminal(self, argv, cwd=None, rows=24, columns=80, grace_ms=5_000, env=None):
        handle, typed, shown = secrets.token_hex(16), self.session.new_stream(), self.session.new_stream()
        args = {"handle": handle, "argv": [to_wire(each) for each in argv], "cwd": to_wire(cwd or self.folder), "graceMs": grace_ms,
                "env": [[name, value] for name, value in (env or {}).items()], "stdin": {"pipe": typed}, "stderr": "discard",
                "stdout": {"collect": {"maxBytes": SCROLLBACK_BYTES, "stream": shown}}, "terminal": {"rows": rows, "columns": columns}}
        return self.begin("process.spawn", args, mutating=True, streams=[shown], incoming=[typed]).then(
            lambda ok: WireTerminal(self.session, handle, ok["pid"], typed, shown))


class WireTerminal(Terminal):
    def __init__(self, session, handle, pid, typed, shown):
        self.session, self.handle, self.pid, self.typed, self.stream = session, handle, pid, typed, session.streams[shown]

    def shown(self):
        self.session.call("process.wait", {"handle": self.handle, "until": "exit", "timeoutMs": 0})  # And reads what has come.
        return bytes(self.stream.content)

    def ended(self):
        self.shown()
        return self.stream.ended

    def begin_write(self, text):
        self.shown()  # Whether nothing is taken any more has been read by then.
        outgoing = self.session.outgoing[self.typed]
        outgoing.content += text.encode()
        self.session.send_on(self.typed)

        def taken():
            self.session.wait(lambda: outgoing.stopped or outgoing.sent == len(outgoing.content))
            if outgoing.sent < len(outgoing.content):
                raise Failure("CONFLICT", "nothing is taken any more")
        return Pending(taken, lambda: None)

    def foreground(self):
        typed = len(self.session.outgoing[self.typed].content)
        ok = self.session.call("terminal.foreground", {"handle": self.handle, "typed": typed})
        return Foreground(ok["processGroup"], ok.get("inputWaiting") is True) if ok.get("processGroup") else None

    def signal(self, name):
        typed = len(self.session.outgoing[self.typed].content)
        return self.session.call("terminal.signal", {"handle": self.handle, "signal": name, "typed": typed}, mutating=True)["processGroup"]

    def resize(self, rows, columns):
        self.session.call("terminal.resize", {"handle": self.handle, "rows": rows, "columns": columns}, mutating=True)

    def begin_terminate(self):
        asked = self.session.ask("process.terminate", {"handle": self.handle}, mutating=True)

        def over():
            self.session.reply_to(asked)
            self.session.call("process.wait", {"handle": self.handle, "until": "empty"})
        return Pending(over, lambda: None)

    def done(self):
        state = self.session.call("process.wait", {"handle": self.handle, "until": "exit"})["state"]
        return Outcome(state.get("exitCode"), state.get("signal"))


class WireCommand(Command):
    def __init__(self, session, argv, cwd, ends, grace_ms, env):
        self.session, self.handle, self.pid, self.failed = session, secrets.token_hex(16), -1, None
        self.streams, toward_us, toward_it = {}, [], []
        args = {"handle": self.handle, "argv": [to_wire(each) for each in argv], "cwd": to_wire(cwd), "graceMs": grace_ms,
                "env": [[name, value] for name, value in env.items()], "stdin": "ignore"}
        upload = None
        if ends["stdin"] == "pipe":
            self.streams["stdin"] = session.new_stream()
            toward_it.append(self.streams["stdin"])
            args["stdin"] = {"pipe": self.streams["stdin"]}
        elif isinstance(ends["stdin"], bytes):
            args["stdin"], upload = "data", Outgoing(ends["stdin"], ended=True)
        for name in ("stdout", "stderr"):
            args[name], stream = self._output(ends[name])
            if stream:
                self.streams[name] = stream
                toward_us.append(stream)
        try:
            self.pid = session.call("process.spawn", args, mutating=True, upload=upload, streams=toward_us, incoming=toward_it)["pid"]
        except Failure as failure:
            if failure.code != "SPAWN_FAILED":
                raise
            self.failed = failure

    def _output(self, mode):
        if mode == "pipe":
            stream = self.session.new_stream()
            return {"pipe": stream}, stream
        collect = {"maxBytes": mode.max_bytes}
        if mode.spill_bytes is not None:
            collect["spill"] = {"maxBytes": mode.spill_bytes}
        return {"collect": collect}, None

    def begin_done(self):
        if self.failed:
            return Pending(self._raise_failed, lambda: None)
        return self._begin_wait("settled").then(lambda state: Outcome(state.get("exitCode"), state.get("signal")))

    def _raise_failed(self):
        raise self.failed

    def _begin_wait(self, until):
        number = self.session.ask("process.wait", {"handle": self.handle, "until": until})
        return Pending(lambda: self.session.reply_to(number)["state"], lambda: self.session.cancel(number))

    def state(self):
        return self.session.call("process.wait", {"handle": self.handle, "until": "exit", "timeoutMs": 0})["state"]

    def output(self, name="stdout"):
        return self.session.body_of(self.streams[name])

    def read_from(self, from_byte=0, name="stdout"):
        args = {"handle": self.handle, "output": name, "from": from_byte, "maxBytes": TAIL_READ_BYTES}
        number = self.session.ask("process.read", args, down=True)
        ok, body = self.session.reply_to(number), self.session.body_of(number)
        spill = ok.get("spillPath")
        return Read(body.decode(errors="replace"), ok["next"], ok["lossy"], spill and from_wire(spill))

    def write(self, data):
        outgoing = self.session.outgoing[self.streams["stdin"]]
        outgoing.content += data
        self.session.send_on(self.streams["stdin"])
        self.session.wait(lambda: outgoing.stopped or outgoing.sent == len(outgoing.content))

    def end_input(self):
        self.session.outgoing[self.streams["stdin"]].ended = True
        self.session.send_on(self.streams["stdin"])

    def terminate(self):
        if not self.failed:
            self.session.call("process.terminate", {"handle": self.handle}, mutating=True)

    def begin_wait_for_exit(self):
        if self.failed:
            return Pending(lambda: True, lambda: None)
        return self._begin_wait("empty").then(lambda state: state["empty"])


def _at(target):
    return {"target": to_wire(target.key)}


def _entry(folder, raw):
    name = from_wire(raw["name"])
    display = f"{folder.display.rstrip('/')}/{name}"
    key = from_wire(raw["target"]) if raw.get("target") is not None else display
    kind = raw["type"] if raw["type"] in ("file", "directory") else "other"
    return Entry(name, kind, Target(key, display), raw.get("version"), raw.get("size"))


def _narrowing(policy):
    """A mode that nobody knows goes as it is: refusing it is the executor's."""
    if policy is None:
        return {}
    mode = MODES.get(policy.mode, policy.mode)
    return {"permissionMode": mode} | ({"workspaceRoot": policy.root} if mode == "WorkspaceWrite" else {})
