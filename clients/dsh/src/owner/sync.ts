import { spawn } from 'node:child_process';
import { lstat, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Readable, Writable } from 'node:stream';
import type { SubprocessHandle, SubprocessSpawnSpec } from '@deepseek-ai/dsh-subprocess';

/** What carrying a workspace over has to do with. */
export interface SyncContext {
  hostDir: string;
  sandboxCwd: string;
  excludes: readonly string[];
  /** Runs a command in the sandbox. */
  spawn: (spec: SubprocessSpawnSpec) => SubprocessHandle;
}
export type SyncFunction = (context: SyncContext) => Promise<void>;

const graceMs = 5_000;
const errorsMax = 4_096;

/** Names of path segments, and not patterns. */
const excluding = (names: readonly string[]): string[] => names.map((name) => `--exclude=${name.replace(/[\\*?[\]]/g, '\\$&')}`);

/** The host's workspace into the sandbox's: what is there is replaced, nothing is removed. */
export const syncIn: SyncFunction = async ({ hostDir, sandboxCwd, excludes, spawn: spawnThere }) => {
  const here = hostTar(['-c', '-f', '-', ...excluding(excludes), '-C', hostDir, '.']);
  const there = sandboxTar(spawnThere, ['-x', '-f', '-', '--no-same-owner', '-C', sandboxCwd], 'in');
  const carried = pipeline(here.stdout, there.stdin);
  await allOf('carrying the workspace in', [carried, here.ended, there.ended]);
};

/**
 * The sandbox's workspace into the host's. What comes is not trusted: it is unpacked into a folder
 * of its own, and from there each entry takes its place through no link that stands in the host's.
 */
export const syncOut: SyncFunction = async ({ hostDir, sandboxCwd, excludes, spawn: spawnThere }) => {
  const staging = await mkdtemp(join(dirname(hostDir), '.sandfleet-'));
  try {
    const there = sandboxTar(spawnThere, ['-c', '-f', '-', ...excluding(excludes), '-C', sandboxCwd, '.'], 'out');
    const here = hostTar(['-x', '-f', '-', '--no-same-owner', '-C', staging]);
    const carried = pipeline(there.stdout, here.stdin);
    await allOf('carrying the workspace out', [carried, here.ended, there.ended]);
    await moveInto(staging, hostDir);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
};

/** Each entry of `from` takes the place of its like in `to`; folders are joined, links are replaced and never followed. */
export async function moveInto(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const place = join(to, entry.name);
    const there = await lstat(place).catch(() => undefined);
    if (entry.isDirectory() && there?.isDirectory()) {
      await moveInto(source, place);
      continue;
    }
    if (there !== undefined && (there.isDirectory() || entry.isDirectory())) await rm(place, { recursive: true });
    await rename(source, place);
  }
}

interface Tar {
  stdin: Writable;
  stdout: Readable;
  ended: Promise<void>;
}

function hostTar(argv: string[]): Tar {
  const child = spawn('tar', argv, { stdio: ['pipe', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => (errors = (errors + text.toString()).slice(-errorsMax)));
  if (argv[0] === '-c') child.stdin.end();
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(`tar on the host exited ${code}: ${errors.trim()}`))));
  });
  return { stdin: child.stdin, stdout: child.stdout, ended };
}

function sandboxTar(spawnThere: SyncContext['spawn'], argv: string[], way: 'in' | 'out'): Tar {
  const stdio: SubprocessSpawnSpec['stdio'] = {
    stdin: way === 'in' ? 'pipe' : 'ignore',
    stdout: way === 'in' ? { maxBytes: errorsMax } : 'pipe',
    stderr: { maxBytes: errorsMax },
  };
  const handle = spawnThere({ argv: ['tar', ...argv], cwd: '/', stdio, graceMs });
  const ended = handle.done.then(({ exitCode, signal }) => {
    if (exitCode !== 0) throw new Error(`tar in the sandbox exited ${exitCode ?? signal}: ${handle.collected.stderr?.readFrom(0).text.trim()}`);
  });
  return { stdin: handle.stdin!, stdout: handle.stdout!, ended };
}

/** All have come to an end, one way or the other; the first failure that says something is told. */
async function allOf(what: string, steps: Promise<unknown>[]): Promise<void> {
  const ends = await Promise.allSettled(steps);
  const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as Error] : []));
  const telling = failures.find((failure) => failure.message.startsWith('tar ')) ?? failures[0];
  if (telling !== undefined) throw new Error(`${what} failed: ${telling.message}`, { cause: telling });
}

