import { posix } from 'node:path';
import type { Context } from '@deepseek-ai/cordis';
import SubprocessRuntime, {
  type SubprocessHandle, type SubprocessSpawnSpec, type SubprocessTerminalHandle, type SubprocessTerminalSpawnSpec,
} from '@deepseek-ai/dsh-subprocess';
import { unconfined } from '../owner/confinement.js';
import { narrowingOf } from '../owner/narrowing.js';
import { inSandbox, type World } from '../owner/world.js';
import { nameFromWire } from '../wire/name.js';
import { SandboxProcess, type Prepared } from './process.js';
import { Ripgrep, isHostRipgrep } from './ripgrep.js';
import { environment, objectionTo } from './spec.js';
import { SandboxTerminal } from './terminal.js';
import { Waits } from './waits.js';

/** `ctx.subprocess`: commands in the sandbox. */
export class SandboxSubprocesses extends SubprocessRuntime {
  private readonly live = new Set<SandboxProcess>();
  private readonly terminals = new Set<SandboxTerminal>();
  private readonly waits: Waits;
  private readonly ripgrep: Ripgrep;
  private disposing = false;

  constructor(ctx: Context, private readonly world: World, runtimeRoot: () => Promise<string>) {
    super(ctx);
    this.waits = new Waits(world.calls);
    this.ripgrep = new Ripgrep(world.calls, runtimeRoot);
  }

  async resolveExecutable(command: string, env?: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<string> {
    if (command === '') throw new Error('the command to resolve is empty');
    if (command.includes('/') && !posix.isAbsolute(command)) throw new Error(`"${command}" is relative, and to no folder`);
    const ok = await this.world.calls.call('process.resolveExecutable', { command, env: environment(env) }, { signal });
    return nameFromWire(ok.path);
  }

  spawn(spec: SubprocessSpawnSpec): SubprocessHandle {
    this.refuseAtTheEnd();
    return this.start(spec);
  }

  /** The same for whom the end of the world has work for. */
  start(spec: SubprocessSpawnSpec): SubprocessHandle {
    const objection = objectionTo(spec);
    if (objection !== undefined) throw new Error(`spawn: ${objection}`);
    spec.signal?.throwIfAborted();
    const started = new SandboxProcess(this.world.calls, this.waits, spec, () => this.prepare(spec));
    this.live.add(started);
    started.whenGone(() => this.live.delete(started));
    return started;
  }

  async spawnTerminal(spec: SubprocessTerminalSpawnSpec): Promise<SubprocessTerminalHandle> {
    this.refuseAtTheEnd();
    const objection = objectionTo(spec);
    if (objection !== undefined) throw new Error(`spawnTerminal: ${objection}`);
    spec.signal?.throwIfAborted();
    if (!this.world.welcome.features.includes('terminals')) throw new Error('the executor of this sandbox has no terminals');
    const terminal = await SandboxTerminal.open(this.world.calls, this.waits, spec, await this.prepare(spec));
    this.terminals.add(terminal);
    const end = (): Promise<void> => terminal.terminate().then(() => void this.terminals.delete(terminal));
    terminal.done.then(end, end).catch(() => {}); // Whoever outlived the shell is ended too; what fails is tried at the end.
    return terminal;
  }

  /** From now on nobody begins anything. */
  close(): void {
    this.disposing = true;
  }

  /** Ends all and waits until nothing of them is left. What could not be ended is told, and tried again when it is asked again. */
  async dispose(): Promise<void> {
    this.close();
    const processes = [...this.live].map(async (one) => {
      one.terminate();
      await one.waitForExit();
      this.live.delete(one);
    });
    const terminals = [...this.terminals].map((one) => one.terminate());
    const ends = await Promise.allSettled([...processes, ...terminals]);
    const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} of ${ends.length} processes may still be there`);
  }

  private refuseAtTheEnd(): void {
    if (this.disposing) throw new Error('the sandbox is being disposed of; nothing is started in it any more');
  }

  private async prepare({ argv, cwd }: Pick<SubprocessSpawnSpec, 'argv' | 'cwd'>): Promise<Prepared> {
    const { argv: plain, policy } = unconfined(argv);
    const narrowing = narrowingOf(this.world, policy);
    if (narrowing === undefined) throw new Error(`nobody knows the mode "${policy?.mode}"`);
    const [program, ...rest] = plain as [string, ...string[]];
    const found = isHostRipgrep(program) ? await this.ripgrep.path(program) : program;
    return { argv: [found, ...rest], cwd: inSandbox(this.world, cwd), narrowing };
  }
}
