import type { Readable, Writable } from 'node:stream';
import type {
  SubprocessOutcome, SubprocessTerminalForeground, SubprocessTerminalHandle, SubprocessTerminalSignal, SubprocessTerminalSpawnSpec,
} from '@deepseek-ai/dsh-subprocess';
import type { JsonObject } from '../wire/fields.js';
import { nameToWire } from '../wire/name.js';
import type { Calls } from '../link/calls.js';
import { RemoteFailure } from '../session/failure.js';
import { readablePipe, writablePipe } from './pipes.js';
import { isGone, spawnError, type Prepared } from './process.js';
import { environment, newHandle, wholeMs } from './spec.js';
import type { Waits } from './waits.js';

const scrollbackBytes = 4 << 20; // What the sandbox keeps for a reader that is behind.

/** A terminal in the sandbox, with all that runs in its session. */
export class SandboxTerminal implements SubprocessTerminalHandle {
  readonly done: Promise<SubprocessOutcome>;
  private readonly closing = new AbortController();
  private readonly underWay = new Set<Promise<unknown>>();
  private exited = false;
  private terminating: Promise<void> | undefined;

  private constructor(
    private readonly calls: Calls,
    private readonly waits: Waits,
    private readonly handle: string,
    readonly pid: number,
    readonly output: Readable,
    private readonly input: Writable,
    private readonly typed: number, // The stream behind it.
  ) {
    this.done = waits.until(handle, 'exit').then(({ exitCode, signal }) => ({
      exitCode: exitCode ?? null,
      signal: (signal ?? null) as NodeJS.Signals | null,
    }));
    const end = (): void => void (this.exited = true);
    this.done.then(end, end);
  }

  /** The signal cancels this alone: what was begun by then is ended again. */
  static async open(calls: Calls, waits: Waits, spec: SubprocessTerminalSpawnSpec, prepared: Prepared): Promise<SandboxTerminal> {
    const { connection } = calls;
    const handle = newHandle();
    const [shown, typed] = [connection.newStream(), connection.newStream()];
    const output = readablePipe(connection, shown);
    const input = writablePipe(connection, typed);
    const args: JsonObject = {
      handle,
      argv: prepared.argv.map(nameToWire),
      cwd: nameToWire(prepared.cwd),
      env: environment(spec.env),
      graceMs: wholeMs(spec.graceMs),
      stdin: { pipe: typed },
      stdout: { collect: { maxBytes: scrollbackBytes, stream: shown } },
      stderr: 'discard',
      terminal: { rows: spec.rows, columns: spec.cols },
    };
    const { signal } = spec;
    try {
      const ok = await calls.call('process.spawn', args, { mutating: true, signal, toClient: [shown], toServer: [typed], ...prepared.narrowing });
      const terminal = new SandboxTerminal(calls, waits, handle, ok.pid as number, output, input, typed);
      if (!signal?.aborted) return terminal;
      terminal.done.catch(() => {});
      await terminal.terminate();
    } catch (error) {
      if (!signal?.aborted) throw spawnError(error, prepared.argv[0]!);
    }
    output.destroy();
    throw signal!.reason;
  }

  async write(data: string): Promise<void> {
    this.refuseAtTheEnd();
    await this.join(
      new Promise<void>((resolve, reject) => {
        this.closing.signal.addEventListener('abort', () => reject(ended()), { once: true });
        this.input.write(data, (error) => (error ? reject(error) : resolve()));
      }),
    );
  }

  /** Whoever waits for input does so after all that was written before. */
  async inspectForeground(): Promise<SubprocessTerminalForeground | undefined> {
    this.refuseAtTheEnd();
    try {
      const { processGroup, inputWaiting } = await this.ask('terminal.foreground', this.behindWhatWasTyped(), false);
      if (processGroup === undefined || processGroup === null) return undefined;
      return { processGroupId: processGroup as number, inputWaiting: inputWaiting === true };
    } catch (error) {
      if (error instanceof RemoteFailure && error.code === 'CONFLICT') return undefined; // It has just ended.
      throw error;
    }
  }

  /** It acts behind all that was written before. */
  async signalForeground(signal: SubprocessTerminalSignal): Promise<number> {
    this.refuseAtTheEnd();
    const { processGroup } = await this.ask('terminal.signal', { signal, ...this.behindWhatWasTyped() }, true);
    return processGroup as number;
  }

  terminate(): Promise<void> {
    if (this.terminating !== undefined) return this.terminating;
    const ending = this.end();
    ending.catch(() => (this.terminating = undefined)); // May be asked again.
    return (this.terminating = ending);
  }

  private async end(): Promise<void> {
    this.closing.abort();
    await Promise.allSettled(this.underWay);
    try {
      await this.calls.call('process.terminate', { handle: this.handle }, { mutating: true });
      await this.waits.until(this.handle, 'empty');
      await this.calls.call('process.release', { handle: this.handle }, { mutating: true });
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  /** Requests overtake what is on its way as data. */
  private behindWhatWasTyped(): { typed: number } {
    return { typed: this.calls.connection.appended(this.typed) };
  }

  private ask(op: string, args: JsonObject, mutating: boolean): Promise<JsonObject> {
    return this.join(this.calls.call(op, { handle: this.handle, ...args }, { mutating, signal: this.closing.signal }));
  }

  /** Terminating waits for it. */
  private async join<T>(step: Promise<T>): Promise<T> {
    this.underWay.add(step);
    try {
      return await step;
    } finally {
      this.underWay.delete(step);
    }
  }

  private refuseAtTheEnd(): void {
    if (this.exited || this.closing.signal.aborted) throw ended();
  }
}

const ended = (): Error => new Error('the terminal has ended');
