import { posix } from 'node:path';
import type { Context } from '@deepseek-ai/cordis';
import type { SubprocessHandle, SubprocessSpawnSpec } from '@deepseek-ai/dsh-subprocess';
import { Calls } from '../link/calls.js';
import { Connection } from '../link/connection.js';
import { unixSocket } from '../link/endpoint.js';
import { readToken } from '../link/token.js';
import type { Welcome } from '../wire/message.js';
import { nameToWire } from '../wire/name.js';
import type { Settled } from './config.js';
import { Declaration } from './declaration.js';
import { isMode, modeOf, narrower, type Mode } from './mode.js';
import { Notices } from './notices.js';
import * as sync from './sync.js';
import type { World } from './world.js';

const version = '0.1.0';

export type Spawn = (spec: SubprocessSpawnSpec) => SubprocessHandle;

/** The Sandbox that this plugin stands for: declared where it must be, reached through agentd, left as the entry says. */
export class SandboxWorld implements World {
  readonly notices: Notices;
  readonly title: string;
  readonly hostWorkspace: string;
  private readonly connection: Connection;
  readonly calls: Calls;
  private said: Welcome | undefined;
  private folder: Promise<string> | undefined;

  private constructor(
    private readonly ctx: Context,
    private readonly config: Settled,
    private readonly log: (line: string) => void,
    private readonly declaration: Declaration | undefined,
    private readonly isNew: boolean,
  ) {
    this.title = `${config.namespace}/${config.sandbox}`;
    this.hostWorkspace = config.hostWorkspace;
    this.notices = new Notices(config.notify);
    const { tokenFile } = config;
    this.connection = new Connection({
      client: `sandfleet-dsh ${version}`,
      features: ['files', 'processes', 'terminals'],
      sandbox: { namespace: config.namespace, name: config.sandbox },
      leaseSeconds: Math.round(config.leaseMs / 1_000),
      dial: unixSocket(config.socket),
      ...(tokenFile === undefined ? {} : { token: () => readToken(tokenFile) }),
      log,
      onWelcome: (welcome) => this.onWelcome(welcome),
      onNotice: (notice) => this.notices.add(notice),
    });
    this.calls = new Calls(this.connection);
  }

  /** Once it is reached and its workspace is there. */
  static async open(ctx: Context, config: Settled, log: (line: string) => void): Promise<SandboxWorld> {
    const declaration = config.declares ? new Declaration(config) : undefined;
    const made = (await declaration?.begin())?.made ?? false;
    const world = new SandboxWorld(ctx, config, log, declaration, made);
    try {
      await world.calls.call('fs.stat', { path: '/' });
      await world.calls.call('fs.mkdir', { path: nameToWire(world.cwd), parents: true }, { mutating: true });
      return world;
    } catch (error) {
      await world.leave().catch((failed: Error) => log(failed.message));
      throw new Error(`the Sandbox ${world.title} cannot be used through ${config.socket}: ${(error as Error).message}`, { cause: error });
    }
  }

  get welcome(): Welcome {
    if (this.said === undefined) throw new Error(`the Sandbox ${this.title} was not reached yet`);
    return this.said;
  }
  get cwd(): string {
    return this.config.cwd ?? this.welcome.cwd;
  }
  get runtimeRoot(): string {
    return posix.join(this.cwd, '.dsh-e2b');
  }

  defaultMode(): Mode | undefined {
    const policy = (this.ctx.get('sandboxPolicy') as { defaultMode?: string } | undefined)?.defaultMode;
    const ceiling = modeOf(this.welcome.ceiling);
    if (policy !== undefined && isMode(policy)) return narrower(policy, ceiling);
    return ceiling === 'danger-full-access' ? undefined : ceiling;
  }

  /** The folder of the harness, made when it is first needed: a real one, that only its user enters. */
  privateFolder(): Promise<string> {
    if (this.folder !== undefined) return this.folder;
    const made = this.makePrivateFolder();
    made.catch(() => (this.folder = undefined));
    return (this.folder = made);
  }

  private async makePrivateFolder(): Promise<string> {
    const path = nameToWire(this.runtimeRoot);
    await this.calls.call('fs.mkdir', { path, parents: true, mode: 0o700 }, { mutating: true });
    const { info } = await this.calls.call('fs.lstat', { path });
    const { type, mode = 0 } = (info ?? {}) as { type?: string; mode?: number };
    if (type === 'directory' && (mode & 0o077) === 0) return this.runtimeRoot;
    throw new Error(`${this.runtimeRoot} in the sandbox must be a folder that only its user enters; it is a ${type}, mode ${(mode & 0o777).toString(8)}`);
  }

  /** Carries the workspace in, where the entry says so. */
  async begin(spawn: Spawn): Promise<void> {
    if (this.config.syncIn ?? this.isNew) await this.syncIn(spawn);
  }

  syncIn(spawn: Spawn): Promise<void> {
    return this.sync(this.config.syncIn, sync.syncIn, spawn);
  }
  syncOut(spawn: Spawn): Promise<void> {
    return this.sync(this.config.syncOut, sync.syncOut, spawn);
  }

  private sync(how: Settled['syncIn'], otherwise: sync.SyncFunction, spawn: Spawn): Promise<void> {
    const { excludes } = this.config;
    const carry = typeof how === 'function' ? how : otherwise;
    return carry({ hostDir: this.hostWorkspace, sandboxCwd: this.cwd, excludes, spawn });
  }

  /** The last chance to carry the workspace out. What cannot be carried is told, and keeps nothing from ending. */
  async carryOut(spawn: Spawn): Promise<void> {
    if (!(this.config.syncOut ?? this.declaration !== undefined)) return;
    await this.syncOut(spawn).catch((error: Error) => this.log(error.message));
  }

  /** Ends the session, and leaves the Sandbox as the entry says. */
  async leave(): Promise<void> {
    await this.connection.close();
    await (this.config.pauseOnDispose ? this.declaration?.pause() : this.declaration?.kill());
  }

  private onWelcome(welcome: Welcome): void {
    const isFirst = this.said === undefined;
    this.said = welcome;
    if (isFirst || welcome.resumed) return;
    this.folder = undefined;
    this.notices.lost(this.cwd);
  }
}
