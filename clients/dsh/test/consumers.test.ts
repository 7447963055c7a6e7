import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context } from '@deepseek-ai/cordis';
import { sharedHarness, until } from './chain.js';

// Packages of dsh that compose above `ctx.fs` and `ctx.subprocess`, as they are published.

const shared = await sharedHarness();
const { ctx, fs, cwd } = shared;
const load = async (plugin: unknown, config: object = {}): Promise<void> => {
  await ctx.plugin(plugin as never, config as never);
};

interface Shell {
  resolve(request: object): object;
  run(spec: object): Promise<{ exitCode: number | null; signal: string | null; timedOut: boolean; aborted: boolean; stdout: Out; stderr: Out }>;
  start(spec: object): { status: string; exitCode: number | null; signal: string | null; done: Promise<void>; readOutput(): { delta: string; lossy: boolean; stdoutSpillPath?: string }; kill(): boolean };
}
interface Out { text: string; truncated: boolean; spillPath?: string }

await load((await import('@deepseek-ai/dsh-bash-local')).default, { graceMs: 2_000 });
const shell = (ctx as unknown as { shell: Shell }).shell;
const spec = (command: string, more: object = {}): object => shell.resolve({ command, workdir: cwd, ...more });

test('bash-local runs commands in the sandbox', async () => {
  const ran = await shell.run(spec('echo "$TERM $PAGER"; pwd; cat; exit 3', { stdin: 'given' }));
  assert.equal(ran.exitCode, 3);
  assert.equal(ran.stdout.text, `dumb cat\n${cwd}\ngiven`);
  assert.deepEqual([ran.timedOut, ran.aborted, ran.stdout.truncated], [false, false, false]);
});

test('bash-local tells where the whole of a long output is, and that file opens in the sandbox', async () => {
  const { stdout } = await shell.run(spec('seq 1 30000'));
  assert.equal(stdout.truncated, true);
  assert.equal(Buffer.byteLength(stdout.text), 64_000);
  const whole = await fs.readText(await fs.resolve(stdout.spillPath!));
  assert.ok(whole.startsWith('1\n2\n') && whole.endsWith('30000\n'));
});

test('bash-local ends what takes too long, and tells why', async () => {
  const late = await shell.run(spec('trap "" TERM; sleep 300 & wait; sleep 300', { timeoutMs: 500 }));
  assert.deepEqual([late.timedOut, late.aborted, late.exitCode], [true, false, null]);
  const aborter = new AbortController();
  const running = shell.run(spec('sleep 300', { signal: aborter.signal }));
  aborter.abort();
  const aborted = await running;
  assert.deepEqual([aborted.timedOut, aborted.aborted, aborted.exitCode], [false, true, null]);
});

test('bash-local reads what a command in the background says as it comes, and kills it', async () => {
  const task = shell.start(spec('echo one; read -r x < /dev/zero; sleep 300'));
  let read = '';
  await until('the first line is there', () => (read += task.readOutput().delta) === 'one\n');
  assert.equal(task.readOutput().delta, '');
  assert.equal(task.kill(), true);
  await task.done;
  assert.deepEqual([task.status, task.exitCode], ['killed', null]);
});

test('the search tools find with ripgrep what is in the sandbox, though they name the host’s', async () => {
  const search = await import('@deepseek-ai/dsh-tool-fs-search');
  await fs.writeText(await fs.resolve('src/a.txt', { cwd }), 'needle here\n');
  await fs.writeText(await fs.resolve('src/b.txt', { cwd }), 'nothing\n');
  const exec = { signal: new AbortController().signal, agent: { session: { header: { cwd } } } };
  const found = await search.runRipgrep(ctx as Context as never, exec as never, 'grep', ['-n', 'needle', '.'], 1_000_000, 3_000, 65_536);
  assert.equal(found.stdout, './src/a.txt:1:needle here\n');
  assert.equal(found.workdir, cwd);
  const none = await search.runRipgrep(ctx as Context as never, exec as never, 'grep', ['-n', 'absent', '.'], 1_000_000, 3_000, 65_536);
  assert.equal(none.noMatches, true);
  await assert.rejects(search.runRipgrep(ctx as Context as never, exec as never, 'grep', ['(', '.'], 1_000_000, 3_000, 65_536), /pattern rejected/);
});

