import { once } from 'node:events';
import net from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { Context } from '@deepseek-ai/cordis';
import * as plugin from '../src/index.js';

// The plugin, told from outside what to call: `node bridge.js SOCKET` listens there, and each connection is a harness of its
// own. A line is a JSON object, {"id", "call", "args", "aborted"?} or {"id", "abort": true}; each call is answered by {"id", "ok"} or
// {"id", "error": {"code"?, "message"}}. Bytes travel in base64. tests/conformance is who speaks to it.

type Args = { [name: string]: any };
type Call = (args: Args, signal: AbortSignal) => unknown;

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

async function allOf(readable: Readable): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of readable) pieces.push(piece as Buffer);
  return base64(Buffer.concat(pieces));
}

/** What one connection has opened, and is called by number. */
class Opened<T> {
  private readonly all = new Map<number, T>();
  private last = 0;

  add(one: T): number {
    this.all.set(++this.last, one);
    return this.last;
  }
  get(number: number): T {
    const one = this.all.get(number);
    if (one === undefined) throw new Error(`nothing is open under ${number}`);
    return one;
  }
}

async function openHarness(entry: Args): Promise<{ ctx: Context; dispose: () => Promise<void> }> {
  const ctx = new Context();
  const fiber = ctx.plugin(plugin as never, entry as never);
  await fiber;
  return { ctx, dispose: async () => void (await fiber.dispose()) };
}

function fileCalls({ fs }: Context): { [name: string]: Call } {
  const texts = new Opened<AsyncIterator<string>>();
  return {
    resolve: ({ path, cwd }, signal) => fs.resolve(path, { cwd, signal }),
    processPath: ({ target }) => fs.processPath(target),
    fileUrl: ({ target }) => fs.fileUrl(target),
    contains: ({ parent, child }) => fs.contains(parent, child),
    sandboxMode: () => fs.sandboxMode,
    stat: ({ target }, signal) => fs.stat(target, signal),
    lstat: ({ path, cwd }, signal) => fs.lstat(path, { cwd }, signal),
    readText: ({ target }, signal) => fs.readText(target, signal),
    readBytes: async ({ target, maxBytes }, signal) => base64(await fs.readBytes(target, signal, maxBytes)),
    streamText: async ({ target }, signal) => texts.add((await fs.streamText(target, signal))[Symbol.asyncIterator]()),
    nextText: async ({ stream }) => {
      const { done, value } = await texts.get(stream).next();
      return done ? undefined : value;
    },
    leaveText: async ({ stream }) => void (await texts.get(stream).return?.()),
    listDir: ({ target }, signal) => fs.listDir(target, signal),
    writeText: ({ target, content, intent, policy }, signal) => fs.writeText(target, content, intent, signal, policy),
    editText: ({ target, edit, version, policy }, signal) =>
      fs.editText(target, edit, version === undefined ? undefined : { version }, signal, policy),
  };
}

/** A variable that is to be removed travels as null. */
const environment = (env: Args): NodeJS.ProcessEnv => Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value ?? undefined]));

function processCalls({ subprocess, e2b, sandbox }: Context): { [name: string]: Call } {
  const processes = new Opened<ReturnType<typeof subprocess.spawn>>();
  return {
    privateFolder: () => (e2b as unknown as { world: { privateFolder(): Promise<string> } }).world.privateFolder(),
    confine: ({ argv, policy }) => (sandbox as unknown as { confine(argv: string[], policy: Args): { argv: string[] } }).confine(argv, policy).argv,
    endProcesses: () => (subprocess as unknown as { dispose(): Promise<void> }).dispose(),
    resolveExecutable: ({ command, env }, signal) => subprocess.resolveExecutable(command, env, signal),
    spawn: (spec, signal) => 
      // A number that JSON does not have travels as its name.
      processes.add(subprocess.spawn({ ...spec, graceMs: Number(spec.graceMs), env: environment(spec.env), signal } as never)),
    pid: ({ process }) => processes.get(process).pid,
    done: ({ process }) => processes.get(process).done,
    output: ({ process, name }) => allOf(processes.get(process)[name as 'stdout' | 'stderr']!),
    readFrom: ({ process, name, fromByte }) => processes.get(process).collected[name as 'stdout' | 'stderr']!.readFrom(fromByte),
    writeInput: ({ process, data }) =>
      new Promise<void>((resolve, reject) => processes.get(process).stdin!.write(Buffer.from(data, 'base64'), (error) => (error ? reject(error) : resolve()))),
    endInput: ({ process }) => void processes.get(process).stdin!.end(),
    terminate: ({ process }) => processes.get(process).terminate(),
    waitForExit: ({ process }, signal) => processes.get(process).waitForExit(signal),
  };
}

function terminalCalls({ subprocess }: Context): { [name: string]: Call } {
  type Handle = Awaited<ReturnType<typeof subprocess.spawnTerminal>>;
  interface Terminal {
    handle: Handle;
    shown: Buffer[];
    ended: boolean;
  }
  const terminals = new Opened<Terminal>();
  const handleOf = ({ terminal }: Args): Handle => terminals.get(terminal).handle;
  return {
    openTerminal: async (spec, signal) => {
      const handle = await subprocess.spawnTerminal({ ...spec, env: environment(spec.env), signal } as never);
      const terminal: Terminal = { handle, shown: [], ended: false };
      handle.output.on('data', (bytes: Buffer) => terminal.shown.push(bytes));
      handle.output.on('end', () => (terminal.ended = true));
      return { terminal: terminals.add(terminal), pid: handle.pid };
    },
    shown: ({ terminal }) => {
      const { shown, ended } = terminals.get(terminal);
      return { bytes: base64(Buffer.concat(shown)), ended };
    },
    typeInto: (args) => handleOf(args).write(args.text),
    inspectForeground: (args) => handleOf(args).inspectForeground(),
    signalForeground: (args) => handleOf(args).signalForeground(args.signal),
    terminateTerminal: (args) => handleOf(args).terminate(),
    terminalDone: (args) => handleOf(args).done,
  };
}

function serve(socket: net.Socket): void {
  let harness: Awaited<ReturnType<typeof openHarness>> | undefined;
  const underWay = new Map<number, AbortController>();
  const calls: { [name: string]: Call } = {
    open: async ({ entry }) => {
      harness = await openHarness(entry);
      Object.assign(calls, fileCalls(harness.ctx), processCalls(harness.ctx), terminalCalls(harness.ctx));
    },
    dispose: async () => {
      await harness?.dispose();
      harness = undefined;
    },
  };
  const answer = async ({ id, call, args, aborted }: Args): Promise<void> => {
    const giveUp = new AbortController();
    if (aborted) giveUp.abort();
    underWay.set(id, giveUp);
    try {
      const ok = await calls[call]!(args, giveUp.signal);
      socket.write(`${JSON.stringify({ id, ok })}\n`);
    } catch (thrown) {
      const { code, message } = thrown as { code?: string; message: string };
      socket.write(`${JSON.stringify({ id, error: { code, message } })}\n`);
    }
  };
  createInterface({ input: socket }).on('line', (line) => {
    const told = JSON.parse(line) as Args;
    if (told.abort) underWay.get(told.id)?.abort();
    else void answer(told);
  });
  socket.on('error', () => {});
  socket.on('close', () => void harness?.dispose().catch(() => {}));
}

const server = net.createServer(serve);
server.listen(process.argv[2]);
await once(server, 'listening');
process.on('SIGTERM', () => process.exit(0));
