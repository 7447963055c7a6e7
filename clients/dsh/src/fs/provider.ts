import type { Context } from '@deepseek-ai/cordis';
import FileSystem, {
  FsError, FsTargetKey, FsVersion, type FsDirEntry, type FsEditOutcome, type FsEditRequest, type FsInfo, type FsPathInfo,
  type FsTarget, type FsWriteIntent, type FsWriteOutcome,
} from '@deepseek-ai/dsh-fs';
import type { SandboxExecutionPolicy, SandboxMode } from '@deepseek-ai/dsh-sandbox';
import { whole } from '../link/calls.js';
import { narrowingOf, type Narrowing } from '../owner/narrowing.js';
import { inSandbox, type World } from '../owner/world.js';
import { nameFromWire, nameToShow, nameToWire } from '../wire/name.js';
import { toFsError } from './errors.js';
import * as paths from './paths.js';
import { decoded, withLf } from './text.js';
import { Turns } from './turns.js';

type Opts = { cwd?: string; signal?: AbortSignal } | undefined;
type Ok = { [name: string]: any };

const newFileMode = 0o600;
const diffBytesMax = 10 << 20; // Exclusive, of either side.

/** `ctx.fs`: the files of the sandbox. Each operation is one request, and what must be atomic is so in the sandbox. */
export class SandboxFileSystem extends FileSystem {
  private readonly turns = new Turns();

  constructor(ctx: Context, private readonly world: World) {
    super(ctx);
  }

  override get sandboxMode(): SandboxMode | undefined {
    return this.world.defaultMode();
  }

  async resolve(path: string, opts?: Opts): Promise<FsTarget> {
    if (path.trim() === '') throw new FsError('resolve: the path is empty', 'FS_NOT_FOUND');
    return this.doing(`resolve "${path}"`, async () => {
      const ok: Ok = await this.world.calls.call('fs.resolve', this.place(path, opts?.cwd), { signal: opts?.signal });
      return { targetKey: FsTargetKey(nameFromWire(ok.target)), displayPath: nameToShow(nameFromWire(ok.displayPath)) };
    });
  }

  processPath(target: FsTarget): string {
    return paths.processPath(target.targetKey);
  }
  fileUrl(target: FsTarget): string {
    return paths.fileUrl(target.targetKey);
  }
  contains(parent: FsTarget, child: FsTarget): boolean {
    return paths.contains(parent.targetKey, child.targetKey);
  }

  async stat(target: FsTarget, signal?: AbortSignal): Promise<FsInfo | undefined> {
    return this.doing(`stat "${target.displayPath}"`, async () => {
      const { info }: Ok = await this.world.calls.call('fs.stat', at(target), { signal });
      return info === null || info === undefined ? undefined : { version: FsVersion(info.version), type: info.type, size: info.size };
    });
  }

  async lstat(path: string, opts?: { cwd?: string }, signal?: AbortSignal): Promise<FsPathInfo | undefined> {
    if (path.trim() === '') throw new FsError('lstat: the path is empty', 'FS_NOT_FOUND');
    return this.doing(`lstat "${path}"`, async () => {
      const { info }: Ok = await this.world.calls.call('fs.lstat', this.place(path, opts?.cwd), { signal });
      return info === null || info === undefined ? undefined : { version: FsVersion(info.version), type: info.type, size: info.size };
    });
  }

  async readText(target: FsTarget, signal?: AbortSignal): Promise<string> {
    return this.doing(`read "${target.displayPath}"`, async () => {
      const { pieces } = await this.world.calls.open('fs.readText', at(target), { signal });
      const parts: string[] = [];
      for await (const text of decoded(pieces)) parts.push(text);
      return parts.join('');
    });
  }

  async streamText(target: FsTarget, signal?: AbortSignal): Promise<AsyncIterable<string>> {
    const what = `read "${target.displayPath}"`;
    const { pieces } = await this.doing(what, () => this.world.calls.open('fs.readText', at(target), { signal }));
    return translated(what, decoded(pieces));
  }

  async readBytes(target: FsTarget, signal: AbortSignal | undefined, maxBytes: number): Promise<Uint8Array> {
    return this.doing(`read "${target.displayPath}"`, async () => {
      const bound = { maxBytes: Math.max(0, Math.min(Math.floor(maxBytes), Number.MAX_SAFE_INTEGER)) };
      const { body } = await this.world.calls.fetch('fs.readBytes', { ...at(target), ...bound }, { signal });
      return new Uint8Array(body);
    });
  }

  async listDir(target: FsTarget, signal?: AbortSignal): Promise<FsDirEntry[]> {
    return this.doing(`list "${target.displayPath}"`, async () => {
      const entries: FsDirEntry[] = [];
      for (let after: unknown, more = true; more; ) {
        const page: Ok = await this.world.calls.call('fs.listDir', { ...at(target), after }, { signal });
        entries.push(...page.entries.map((entry: Ok) => this.entry(target, entry)));
        after = page.entries.at(-1)?.name;
        more = page.more && after !== undefined;
      }
      return entries.sort((left, right) => left.name.localeCompare(right.name));
    });
  }

  private entry(folder: FsTarget, entry: Ok): FsDirEntry {
    const wireName = nameFromWire(entry.name);
    const name = nameToShow(wireName);
    const displayPath = `${folder.displayPath === '/' ? '' : folder.displayPath}/${name}`;
    const listed: FsDirEntry = {
      name,
      type: entry.type === 'file' || entry.type === 'directory' ? entry.type : 'other',
      target: { targetKey: FsTargetKey(entry.target === undefined ? displayPath : nameFromWire(entry.target)), displayPath },
    };
    if (entry.version !== undefined) listed.version = FsVersion(entry.version);
    if (entry.size !== undefined) listed.size = entry.size;
    return listed;
  }

  async writeText(
    target: FsTarget, content: string, expected?: FsWriteIntent, signal?: AbortSignal, sandboxPolicy?: SandboxExecutionPolicy,
  ): Promise<FsWriteOutcome> {
    const what = `write "${target.displayPath}"`;
    return this.changing(what, target, signal, async () => {
      const upload = Buffer.from(content, 'utf8');
      const args = { ...at(target), size: upload.length, intent: expected, mode: newFileMode, diffBytesMax };
      const options = { mutating: true, signal, upload, ...this.narrowing(what, sandboxPolicy) };
      const { ok, pieces } = await this.world.calls.open('fs.write', args, options);
      const [before = null] = await texts(pieces, [ok.before as Ok]);
      return {
        operation: (ok as Ok).operation,
        version: FsVersion((ok as Ok).version),
        before: upload.length < diffBytesMax ? before : null,
        after: withLf(content),
      };
    });
  }

  async editText(
    target: FsTarget, edit: FsEditRequest, expected?: { version: FsVersion }, signal?: AbortSignal,
    sandboxPolicy?: SandboxExecutionPolicy,
  ): Promise<FsEditOutcome> {
    const what = `edit "${target.displayPath}"`;
    return this.changing(what, target, signal, async () => {
      const old = Buffer.from(edit.oldString, 'utf8');
      const upload = Buffer.concat([old, Buffer.from(edit.newString, 'utf8')]);
      const { replaceAll } = edit;
      const args = { ...at(target), oldBytes: old.length, replaceAll, version: expected?.version, diffBytesMax };
      const options = { mutating: true, signal, upload, ...this.narrowing(what, sandboxPolicy) };
      const { ok, pieces } = await this.world.calls.open('fs.editText', args, options);
      const [before, after] = await texts(pieces, [ok.before as Ok, ok.after as Ok]);
      return { version: FsVersion((ok as Ok).version), before: before ?? '', after: after ?? '' };
    });
  }

  private place(path: string, cwd: string | undefined): Ok {
    if (path.includes('\0')) throw new FsError(`"${path}" holds a NUL, which no path can`, 'FS_IO_ERROR');
    return { path, cwd: inSandbox(this.world, cwd ?? this.world.cwd) };
  }

  private narrowing(what: string, policy: SandboxExecutionPolicy | undefined): Narrowing {
    const deployment = this.ctx.get('sandboxPolicy') as { resolve(): SandboxExecutionPolicy } | undefined;
    const asked = policy ?? deployment?.resolve();
    const narrowing = narrowingOf(this.world, asked);
    if (narrowing === undefined) throw new FsError(`${what}: nobody knows the mode "${asked?.mode}"`, 'FS_SANDBOX_DENIED');
    return narrowing;
  }

  private changing<T>(what: string, target: FsTarget, signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
    return this.doing(what, () => this.turns.take(target.targetKey, signal, run));
  }

  private async doing<T>(what: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw toFsError(what, error);
    }
  }
}

const at = (target: FsTarget): { target: unknown } => ({ target: nameToWire(target.targetKey) });

async function* translated(what: string, chunks: AsyncIterable<string>): AsyncGenerator<string> {
  try {
    yield* chunks;
  } catch (error) {
    throw toFsError(what, error);
  }
}

/**
 * The texts that came with the reply to a change, one after the other. The change was made: when
 * they are lost on their way, it succeeded without them.
 */
async function texts(pieces: AsyncIterable<Uint8Array>, lengths: (Ok | null | undefined)[]): Promise<(string | null)[]> {
  let body: Uint8Array;
  try {
    body = await whole(pieces);
  } catch {
    return lengths.map(() => null);
  }
  let from = 0;
  return lengths.map((length) => {
    if (length === null || length === undefined) return null;
    from += length.bytes;
    return Buffer.from(body.subarray(from - length.bytes, from)).toString('utf8');
  });
}
