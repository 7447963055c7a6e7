"""The way `dsh`: the providers of clients/dsh in a Node process (clients/dsh/test/bridge.ts), told in lines of JSON what to call.
Each connection to it is a harness of its own."""

import base64
import contextlib
import json
import socket
import struct

import world
from counted import Counted
from seam import (Collect, Command, Edited, Entry, Failure, Foreground, Info, Outcome, Pending, Read, Seam, Target, Terminal, Written,
                  raw_intent)

PATIENCE_S = 60


class Bridge:
    def __init__(self, path, entry):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.lines, self.answers, self.last = self.socket.makefile("rb"), {}, 0
        self.call("open", entry=entry)

    def begin(self, what, *, aborted=False, **args):
        """`aborted`: its signal is, before it is called."""
        self.last += 1
        number = self.last
        self._send({"id": number, "call": what, "args": args, "aborted": aborted})
        return Pending(lambda: self._answer_to(number), lambda: self._send({"id": number, "abort": True}))

    def call(self, what, **args):
        return self.begin(what, **args).result()

    def _answer_to(self, number):
        while number not in self.answers:
            line = self.lines.readline()
            assert line, "the bridge hung up"
            answer = json.loads(line)
            self.answers[answer["id"]] = answer
        answer = self.answers.pop(number)
        if "error" in answer:
            raise Failure(answer["error"].get("code"), answer["error"]["message"])
        return answer.get("ok")

    def peer(self):
        """The process that all harnesses are in."""
        return struct.unpack("3i", self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def close(self):
        """Disposes of the harness, and waits until that is done."""
        self.call("dispose")
        self.socket.close()

    def _send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")


class DshSeam(Seam):
    way = "dsh"

    def __init__(self, stage, ground, **entry):
        super().__init__(stage, ground)
        self.entry = {"sandbox": "default/box", "socket": stage["agentd"]["socket"]} | entry
        self.bridge = Bridge(stage["dsh"]["socket"], self.entry)

    def another(self, ground=None, **entry):
        """`entry`: what the plugin's entry says otherwise."""
        return DshSeam(self.stage, ground or self.ground, **self.entry | entry)

    def end_processes(self):
        """What the end of the harness does first; cordis logs its failures, and here they are raised."""
        self.bridge.call("endProcesses")

    def private_folder(self):
        """The harness's own in the sandbox, made when it is first asked for."""
        return self.bridge.call("privateFolder")

    def close(self):
        self.bridge.close()

    @contextlib.contextmanager
    def counted(self):
        with world.temporary_folder("counted") as folder:
            counted = Counted(str(folder / "sock"), self.entry["socket"])
            with contextlib.closing(counted), DshSeam(self.stage, self.ground, **self.entry | {"socket": counted.path}) as mine:
                yield mine, lambda: counted.requests

    def begin_aborted(self, what, **args):
        """By the name that the bridge has for it."""
        return self.begin(what, aborted=True, **args)

    def begin(self, what, **args):
        return self.bridge.begin(what, **{name: value for name, value in args.items() if value is not None})

    # Files.

    def begin_resolve(self, path, cwd=None):
        return self.begin("resolve", path=path, cwd=cwd).then(_target)

    def begin_stat(self, target):
        return self.begin("stat", target=_raw(target)).then(Info.of)

    def begin_lstat(self, path, cwd=None):
        return self.begin("lstat", path=path, cwd=cwd).then(Info.of)

    def begin_read_text(self, target):
        return self.begin("readText", target=_raw(target))

    def begin_read_bytes(self, target, max_bytes):
        return self.begin("readBytes", target=_raw(target), maxBytes=max_bytes).then(base64.b64decode)

    def stream_text(self, target):
        stream = self.bridge.call("streamText", target=_raw(target))
        try:
            while (text := self.bridge.call("nextText", stream=stream)) is not None:
                yield text
        finally:
            self.bridge.call("leaveText", stream=stream)

    def begin_list(self, target):
        return self.begin("listDir", target=_raw(target)).then(lambda raws: [
            Entry(raw["name"], raw["type"], _target(raw["target"]), raw.get("version"), raw.get("size")) for raw in raws])

    def begin_write(self, target, content, intent=None, policy=None):
        return self.begin("writeText", target=_raw(target), content=content, intent=raw_intent(intent), policy=_policy(policy)).then(
            lambda raw: Written(raw["operation"], raw["version"], raw["before"], raw["after"]))

    def begin_edit(self, target, old, new, replace_all=False, version=None, policy=None):
        edit = {"oldString": old, "newString": new, "replaceAll": replace_all}
        return self.begin("editText", target=_raw(target), edit=edit, version=version, policy=_policy(policy)).then(
            lambda raw: Edited(raw["version"], raw["before"], raw["after"]))

    # What is said of a target without asking.

    def process_path(self, target):
        return self.bridge.call("processPath", target=_raw(target))

    def file_url(self, target):
        return self.bridge.call("fileUrl", target=_raw(target))

    def contains(self, parent, child):
        return self.bridge.call("contains", parent=_raw(parent), child=_raw(child))

    def sandbox_mode(self):
        return self.bridge.call("sandboxMode")

    # Processes.

    def run_confined(self, argv, policy):
        outcome, shown = self.run(*self.bridge.call("confine", argv=argv, policy=_policy(policy)))
        return outcome.exit_code, shown

    def resolve_executable(self, command, env=None):
        return self.bridge.call("resolveExecutable", command=command, env=env or {})

    def spawn(self, argv, cwd=None, stdin="ignore", stdout=Collect(1 << 20), stderr=Collect(1 << 20), grace_ms=5_000, env=None):
        data = {"data": stdin.decode()} if isinstance(stdin, bytes) else stdin
        stdio = {"stdin": data, "stdout": _output(stdout), "stderr": _output(stderr)}
        started = self.bridge.call("spawn", argv=argv, cwd=cwd or self.folder, stdio=stdio, graceMs=grace_ms, env=env or {})
        return DshCommand(self.bridge, started)


    def begin_terminal(self, argv, cwd=None, rows=24, columns=80, grace_ms=5_000, env=None):
        opened = self.begin("openTerminal", argv=argv, cwd=cwd or self.folder, rows=rows, cols=columns, graceMs=grace_ms, env=env or {})
        return opened.then(lambda raw: DshTerminal(self.bridge, raw["terminal"], raw["pid"]))


class DshTerminal(Terminal):
    def __init__(self, bridge, number, pid):
        self.bridge, self.number, self.pid = bridge, number, pid

    def _ask(self, what, **args):
        return self.bridge.begin(what, terminal=self.number, **args)

    def shown(self):
        return base64.b64decode(self._ask("shown").result()["bytes"])

    def ended(self):
        return self._ask("shown").result()["ended"]

    def begin_write(self, text):
        return self._ask("typeInto", text=text)

    def foreground(self):
        raw = self._ask("inspectForeground").result()
        return raw and Foreground(raw["processGroupId"], raw["inputWaiting"])

    def signal(self, name):
        return self._ask("signalForeground", signal=name).result()

    def begin_terminate(self):
        return self._ask("terminateTerminal")

    def done(self):
        return self._ask("terminalDone").then(lambda raw: Outcome(raw["exitCode"], raw["signal"])).result()


class DshCommand(Command):
    def __init__(self, bridge, number):
        self.bridge, self.number = bridge, number

    def _ask(self, what, **args):
        return self.bridge.begin(what, process=self.number, **args)

    @property
    def pid(self):
        return self._ask("pid").result()

    def begin_done(self):
        return self._ask("done").then(lambda raw: Outcome(raw["exitCode"], raw["signal"]))

    def output(self, name="stdout"):
        return base64.b64decode(self._ask("output", name=name).result())

    def read_from(self, from_byte=0, name="stdout"):
        raw = self._ask("readFrom", name=name, fromByte=from_byte).result()
        return Read(raw["text"], raw["nextOffset"], raw["lossy"], raw.get("spillPath"))

    def write(self, data):
        self._ask("writeInput", data=base64.b64encode(data).decode()).result()

    def end_input(self):
        self._ask("endInput").result()

    def terminate(self):
        self._ask("terminate").result()

    def begin_wait_for_exit(self):
        return self._ask("waitForExit")


def _raw(target):
    return {"targetKey": target.key, "displayPath": target.display}


def _target(raw):
    return Target(raw["targetKey"], raw["displayPath"])


def _policy(policy):
    return policy and {"mode": policy.mode, "workspaceRoot": policy.root}


def _output(mode):
    if isinstance(mode, str):
        return mode
    return {"maxBytes": mode.max_bytes} | ({"spill": {"maxBytes": mode.spill_bytes}} if mode.spill_bytes is not None else {})
