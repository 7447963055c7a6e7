import { randomBytes } from 'node:crypto';
import type { Context } from '@deepseek-ai/cordis';
import { SandboxFileSystem } from './fs/provider.js';
import { configSchema, settle, type Config as Entry } from './owner/config.js';
import { SandboxConfinement } from './owner/confinement.js';
import { SandboxWorld, type Spawn } from './owner/sandbox_world.js';
import { RemoteSandbox, SandboxOwner } from './owner/services.js';
import { SandboxSubprocesses } from './subprocess/provider.js';

// The plugin: one entry in cordis.yml moves files, commands and terminals of a harness into a
// Sandbox.

export const name = 'sandfleet';
export type Config = Entry;
export const Config = configSchema;

export async function apply(ctx: Context, entry: Config): Promise<void> {
  const config = settle(entry ?? {}, () => `dsh-${randomBytes(5).toString('hex')}`);
  const log = (line: string): void => ctx.get('logger')?.('sandfleet').warn(line);
  if (entry?.apiKey !== undefined) log('"apiKey" is not used here: the key belongs into the Secret of the SandboxProvider');

  const world = await SandboxWorld.open(ctx, config, log);
  const subprocess = new SandboxSubprocesses(ctx, world, () => world.privateFolder());
  const spawn: Spawn = (spec) => subprocess.start(spec);
  // What runs in the sandbox ends first, and is known to have ended.
  ctx.effect(
    () => async () => {
      subprocess.close();
      await world.carryOut(spawn);
      try {
        await subprocess.dispose();
      } finally {
        await world.leave();
      }
    },
    'sandfleet: the end of the execution world',
  );
  new SandboxOwner(ctx, world);
  new RemoteSandbox(ctx, world, spawn);
  new SandboxConfinement(ctx);
  new SandboxFileSystem(ctx, world);
  await world.begin(spawn);
}

export { SandboxFileSystem, SandboxSubprocesses, SandboxConfinement, SandboxOwner, RemoteSandbox };
export type { SyncContext, SyncFunction } from './owner/sync.js';
