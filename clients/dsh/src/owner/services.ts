import { Service, type Context } from '@deepseek-ai/cordis';
import type { SandboxWorld, Spawn } from './sandbox_world.js';

declare module '@deepseek-ai/cordis' {
  interface Context {
    e2b: SandboxOwner;
    remoteSandbox: RemoteSandbox;
  }
}

/** `ctx.e2b`: the owner of the execution world, by the name that packages for E2B ask for. */
export class SandboxOwner extends Service {
  readonly cwd: string;
  /** A folder in the sandbox for what the harness keeps there; only its user enters it. */
  readonly runtimeRoot: string;

  constructor(ctx: Context, private readonly world: SandboxWorld) {
    super(ctx, 'e2b');
    this.cwd = world.cwd;
    this.runtimeRoot = world.runtimeRoot;
  }

  /** There is no handle of E2B's SDK to be had: the key stays with the controller. */
  getSandbox(): Promise<never> {
    return Promise.reject(
      new Error(
        `the Sandbox ${this.world.title} has no handle of the E2B SDK, because its API key stays with its controller; ` +
          'use ctx.fs and ctx.subprocess',
      ),
    );
  }
}

/** `ctx.remoteSandbox`: what became of the sandbox, and its workspace carried in and out. */
export class RemoteSandbox extends Service {
  readonly cwd: string;
  readonly runtimeRoot: string;

  constructor(ctx: Context, private readonly world: SandboxWorld, private readonly spawn: Spawn) {
    super(ctx, 'remoteSandbox');
    this.cwd = world.cwd;
    this.runtimeRoot = world.runtimeRoot;
  }

  /** Hears each notice as it comes, in words for a model; may be set at any time. */
  get notify(): ((text: string) => void) | undefined {
    return this.world.notices.notify;
  }
  set notify(listener: ((text: string) => void) | undefined) {
    this.world.notices.notify = listener;
  }

  /** What happened since it was last asked; each is told once. */
  consumeRecoveryNotice(): string | undefined {
    return this.world.notices.consume();
  }

  syncIn(): Promise<void> {
    return this.world.syncIn(this.spawn);
  }
  syncOut(): Promise<void> {
    return this.world.syncOut(this.spawn);
  }
}
