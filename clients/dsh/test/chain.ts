import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { after } from 'node:test';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { Context } from '@deepseek-ai/cordis';
import type FileSystem from '@deepseek-ai/dsh-fs';
import type SubprocessRuntime from '@deepseek-ai/dsh-subprocess';
import * as plugin from '../src/index.js';
import type { RemoteSandbox, SandboxOwner } from '../src/owner/services.js';

// The plugin in a context of its own, over the real chain: agentd, and the executor in a sandbox.
// Between the two ends of the socket stands a proxy that a test can cut.

export const agentdSocket = process.env.SANDFLEET_AGENTD!;
export const sandboxName = process.env.SANDFLEET_SANDBOX ?? 'box';

/** A Unix socket that leads to another. `cut` ends what goes through it; what comes next goes through again. */
export class Cutter {
  readonly path = join(tmpdir(), `cut-${randomBytes(6).toString('hex')}.sock`);
  private readonly pairs = new Set<[net.Socket, net.Socket]>();
  private readonly server: net.Server;
  private budget = Infinity; // Bytes that pass before the next cut.
  private nextBudget: (() => number) | undefined;
  cuts = 0;

  constructor(to: string) {
    this.server = net.createServer((near) => {
      const far = net.connect(to);
      const pair: [net.Socket, net.Socket] = [near, far];
      this.pairs.add(pair);
      for (const [from, other] of [pair, [far, near] as const]) {
        from.on('error', () => {});
        from.on('close', () => {
          this.pairs.delete(pair);
          if (from === near) far.end();
          else near.destroy();
        });
        from.on('data', (bytes: Buffer) => this.pass(bytes, other));
      }
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(this.path, resolve));
    return this;
  }

  private pass(bytes: Buffer, to: net.Socket): void {
    this.budget -= bytes.length;
    if (this.budget >= 0) return void to.write(bytes);
    to.write(bytes.subarray(0, Math.max(0, bytes.length + this.budget))); // Cut within a frame.
    this.budget = this.nextBudget?.() ?? Infinity;
    this.cut();
  }

  cut(): void {
    this.cuts++;
    for (const [near, far] of this.pairs) {
      near.destroy();
      far.removeAllListeners('data').resume().end(); // What has passed is there; a reset would take it back.
    }
  }

  /** What comes to this side is no frame of the protocol. */
  spoil(): void {
    for (const [near] of this.pairs) near.write(Buffer.alloc(16));
  }

  /** Cuts whenever so many bytes have passed, either way, as `next` says each time. */
  cutEvery(next: (() => number) | undefined): void {
    this.nextBudget = next;
    this.budget = next?.() ?? Infinity;
  }

  close(): void {
    this.cutEvery(undefined);
    this.cut();
    this.server.close();
  }
}

export interface Harness {
  ctx: Context;
  fs: FileSystem;
  subprocess: SubprocessRuntime;
  owner: SandboxOwner;
  remote: RemoteSandbox;
  cwd: string; // A folder of this test alone.
  features: string[]; // Of the executor.
  dispose(): Promise<void>;
}

type Entry = plugin.Config;

/** The plugin as cordis loads it. */
export async function harness(entry: Entry = {}): Promise<Harness> {
  const ctx = new Context();
  const fiber = ctx.plugin(plugin as never, { sandbox: sandboxName, socket: agentdSocket, ...entry } as never);
  await fiber;
  const { fs, subprocess, e2b: owner, remoteSandbox: remote } = ctx;
  const cwd = `${owner.cwd}/test-${randomBytes(6).toString('hex')}`;
  await run({ subprocess }, ['mkdir', '-p', cwd], '/');
  const { features } = (owner as unknown as { world: { welcome: { features: string[] } } }).world.welcome;
  return { ctx, fs, subprocess, owner, remote, cwd, features, dispose: async () => void (await fiber.dispose()) };
}

/** One for all tests of a file. */
export async function sharedHarness(entry: Entry = {}): Promise<Harness> {
  const shared = await harness(entry);
  after(() => shared.dispose());
  return shared;
}

export interface Ran {
  exitCode: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

/** A command to its end. */
export async function run({ subprocess }: Pick<Harness, 'subprocess'>, argv: string[], cwd: string, data?: string): Promise<Ran> {
  const stdin = data === undefined ? ('ignore' as const) : { data };
  const handle = subprocess.spawn({ argv, cwd, stdio: { stdin, stdout: { maxBytes: 1 << 20 }, stderr: { maxBytes: 1 << 20 } }, graceMs: 5_000 });
  const { exitCode, signal } = await handle.done;
  return { exitCode, signal, stdout: handle.collected.stdout!.readFrom(0).text, stderr: handle.collected.stderr!.readFrom(0).text };
}

/** Until it is so; a test that waits for what does not come fails by its deadline. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`it did not come to be that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
