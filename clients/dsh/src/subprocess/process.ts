import type { Readable, Writable } from 'node:stream';
import type {
  SubprocessCollectedOutputs, SubprocessHandle, SubprocessOutcome, SubprocessOutputMode, SubprocessSpawnSpec,
} from '@deepseek-ai/dsh-subprocess';
import type { JsonObject } from '../wire/fields.js';
import { nameFromWire, nameToWire } from '../wire/name.js';
import type { FailureCode } from '../wire/message.js';
import { RemoteFailure } from '../session/failure.js';
import type { Calls } from '../link/calls.js';
import type { Narrowing } from '../owner/narrowing.js';
import { Mirror } from './mirror.js';
import { fillMirror, readablePipe, writablePipe } from './pipes.js';
import { environment, newHandle, outputMode, wholeMs } from './spec.js';
import { Waits, type ProcessState } from './waits.js';

/** What is run, once that is known: a program of the sandbox, its folder, and what it is confined to. */
export interface Prepared {
  argv: readonly string[];
  cwd: string;
  narrowing: Narrowing;
}

type OutputName = 'stdout' | 'stderr';

/** The process went with its session or its sandbox: nothing of it is left. */
const goneCodes: ReadonlySet<FailureCode> = new Set<FailureCode>(['LOST', 'NOT_FOUND']);
export const isGone = (error: unknown): boolean => error instanceof RemoteFailure && goneCodes.has(error.code);

/** A command in the sandbox. It is asked for at once, and what is said to it meanwhile follows in order. */
export class SandboxProcess implements SubprocessHandle {
  pid = -1;
  readonly stdin: Writable | undefined;
  readonly stdout: Readable | undefined;
  readonly stderr: Readable | undefined;
  readonly collected: SubprocessCollectedOutputs;
  readonly done: Promise<SubprocessOutcome>;

  private readonly handle = newHandle();
  private readonly mirrors: { [output in OutputName]?: Mirror } = {};
  private readonly streams: { stdin?: number; stdout: number; stderr: number };
  private readonly started: Promise<boolean>; // False: it never was.
  private asked = false; // The request to spawn is on its way.
  private terminated = false;
  private terminating: Promise<void> | undefined;
  private news: (() => void)[] = [];
  private brokeOff: RemoteFailure | undefined;
  private empty = false; // Nothing of it is left, as the sandbox said.

  constructor(
    private readonly calls: Calls,
    private readonly waits: Waits,
    private readonly spec: SubprocessSpawnSpec,
    prepare: () => Promise<Prepared>,
  ) {
    const { connection } = calls;
    const { stdio, signal } = spec;
    this.streams = { stdout: connection.newStream(), stderr: connection.newStream() };
    if (stdio.stdin === 'pipe') {
      this.streams.stdin = connection.newStream();
      this.stdin = writablePipe(connection, this.streams.stdin);
    }
    this.stdout = this.output('stdout', stdio.stdout);
    this.stderr = this.output('stderr', stdio.stderr);
    this.collected = this.mirrors;
    const spawned = this.spawn(prepare);
    this.started = spawned.then(
      () => true,
      () => false,
    );
    this.done = spawned.then((begun) => (begun ? this.settle() : { exitCode: null, signal: 'SIGTERM' }));
    this.done.catch(() => {}); // Whoever waits hears of it; nobody must.
    if (signal !== undefined) {
      const terminate = (): void => this.terminate();
      signal.addEventListener('abort', terminate, { once: true });
      this.whenGone(() => signal.removeEventListener('abort', terminate));
    }
  }

  terminate(): void {
    this.terminated = true;
    if (!this.asked || this.empty) return;
    this.terminating ??= this.askToTerminate();
    this.terminating.catch(() => {}); // Whoever waits for the exit hears of it.
  }

  /** `then` runs once it is proven that nothing of it is left. */
  whenGone(then: () => void): void {
    const wait = (): Promise<void> => this.waitForExit().then(then, () => {});
    this.done.then(wait, wait);
  }

  async waitForExit(signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted) return false;
    const aborted = new Promise<false>((resolve) => signal?.addEventListener('abort', () => resolve(false), { once: true }));
    const exited = this.exited(signal);
    exited.catch(() => {});
    return Promise.race([exited, aborted]);
  }

  private async exited(signal?: AbortSignal): Promise<boolean> {
    if (!(await this.started)) return true;
    await this.terminating;
    if (this.empty) return true;
    try {
      await this.waits.until(this.handle, 'empty', signal);
      return true;
    } catch (error) {
      if (isGone(error)) return true;
      if (error instanceof RemoteFailure && error.code === 'CANCELLED') return false;
      if (error instanceof RemoteFailure && error.code === 'TERMINATE_FAILED') this.terminating = undefined; // May be asked again.
      throw error;
    }
  }

  private output(name: OutputName, mode: SubprocessOutputMode): Readable | undefined {
    const { connection } = this.calls;
    const stream = this.streams[name];
    if (mode === 'pipe') return readablePipe(connection, stream);
    if (mode === 'inherit') {
      readablePipe(connection, stream).pipe(process[name], { end: false });
      return undefined;
    }
    const mirror = (this.mirrors[name] = new Mirror(mode.maxBytes));
    fillMirror(connection, stream, mirror, (failed) => {
      this.brokeOff ??= failed;
      for (const wake of this.news.splice(0)) wake();
    });
    return undefined;
  }

  /** False: it was terminated before it was asked for, so nothing was started. */
  private async spawn(prepare: () => Promise<Prepared>): Promise<boolean> {
    const prepared = await prepare();
    if (this.terminated) return false;
    const { stdio, env, graceMs } = this.spec;
    const { stdin: input, stdout, stderr } = this.streams;
    const data = typeof stdio.stdin === 'object' ? Buffer.from(stdio.stdin.data, 'utf8') : undefined;
    const args: JsonObject = {
      handle: this.handle,
      argv: prepared.argv.map(nameToWire),
      cwd: nameToWire(prepared.cwd),
      env: environment(env),
      graceMs: wholeMs(graceMs),
      stdin: data !== undefined ? 'data' : input !== undefined ? { pipe: input } : 'ignore',
      stdout: outputMode(stdio.stdout, stdout),
      stderr: outputMode(stdio.stderr, stderr),
    };
    const begun = (): void => {
      this.asked = true;
      if (this.terminated) this.terminate();
    };
    try {
      const ok = await this.calls.call('process.spawn', args, {
        mutating: true,
        upload: data,
        toClient: [stdout, stderr],
        toServer: input === undefined ? [] : [input],
        begun,
        ...prepared.narrowing,
      });
      this.pid = ok.pid as number;
      return true;
    } catch (error) {
      throw spawnError(error, prepared.argv[0]!);
    }
  }

  private async settle(): Promise<SubprocessOutcome> {
    const state = await this.waits.until(this.handle, 'settled');
    for (const name of ['stdout', 'stderr'] as const) await this.mirrored(name, state);
    // A spill is gone when its handle is released; the session's end does that.
    const spilled = state.stdout?.spillPath !== undefined || state.stderr?.spillPath !== undefined;
    this.empty = state.empty;
    if (state.empty && !spilled) this.calls.call('process.release', { handle: this.handle }, { mutating: true }).catch(() => {});
    return { exitCode: state.exitCode ?? null, signal: (state.signal ?? null) as NodeJS.Signals | null };
  }

  /** Until the mirror holds the last byte of what was there when the command settled. */
  private async mirrored(name: OutputName, state: ProcessState): Promise<void> {
    const mirror = this.mirrors[name];
    const there = state[name];
    if (mirror === undefined || there === undefined) return;
    while (there.ended ? !mirror.ended : mirror.total < there.bytes) {
      if (this.brokeOff !== undefined) throw this.brokeOff;
      await new Promise<void>((resolve) => this.news.push(resolve));
    }
    mirror.end();
    if (there.spillPath !== undefined) mirror.spillPath = nameFromWire(there.spillPath);
  }

  private async askToTerminate(): Promise<void> {
    try {
      await this.calls.call('process.terminate', { handle: this.handle, graceMs: wholeMs(this.spec.graceMs) }, { mutating: true });
    } catch (error) {
      this.terminating = undefined; // May be asked again; waiting tells whether anything is left.
      if (!isGone(error)) throw error;
    }
  }
}

/** As Node tells it, where the command itself could not be run. */
export function spawnError(error: unknown, program: string): unknown {
  if (!(error instanceof RemoteFailure) || error.code !== 'SPAWN_FAILED') return error;
  const { errno = 'EIO', step } = (error.detail ?? {}) as { errno?: string; step?: string };
  const path = step === 'exec' ? program : undefined;
  return Object.assign(new Error(`spawn ${program} ${errno}: ${error.message}`, { cause: error }), {
    code: errno,
    syscall: `spawn ${program}`,
    ...(path === undefined ? {} : { path }),
  });
}
