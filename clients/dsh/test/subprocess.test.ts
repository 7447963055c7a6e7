import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { SubprocessHandle, SubprocessSpawnSpec } from '@deepseek-ai/dsh-subprocess';
import { lastingStreamsMost } from '../src/session/under_way.js';
import { harness, run, sharedHarness, until } from './chain.js';

// `ctx.subprocess` over the real chain.

const shared = await sharedHarness();
const { fs, subprocess, cwd } = shared;
const collect = { stdout: { maxBytes: 64_000 }, stderr: { maxBytes: 64_000 } };
const spawn = (script: string, more: Partial<SubprocessSpawnSpec> = {}): SubprocessHandle =>
  subprocess.spawn({ argv: ['bash', '-c', script], cwd, stdio: { stdin: 'ignore', ...collect }, graceMs: 5_000, ...more });
const out = (handle: SubprocessHandle): string => handle.collected.stdout!.readFrom(0).text;

/** Whether a process is there, as the sandbox itself sees it; a zombie is not. */
const lives = async (pid: string): Promise<boolean> =>
  (await run(shared, ['bash', '-c', 'grep -q "^State:[[:space:]]*[RSDTtI]" "/proc/$0/status" 2>/dev/null', pid], '/')).exitCode === 0;

test('a command runs in the sandbox, and its end is the kernel’s word', async () => { // covers: X1 X3
  const handle = spawn('echo out; echo err >&2; exit 3');
  assert.deepEqual(await handle.done, { exitCode: 3, signal: null });
  assert.ok(handle.pid > 0);
  assert.deepEqual(handle.collected.stdout!.readFrom(0), { text: 'out\n', nextOffset: 4, lossy: false });
  assert.deepEqual(handle.collected.stderr!.readFrom(0), { text: 'err\n', nextOffset: 4, lossy: false });
  assert.equal(await handle.waitForExit(), true);
  assert.deepEqual(await spawn('kill -SEGV $$').done, { exitCode: null, signal: 'SIGSEGV' });
  assert.deepEqual(await spawn('trap "exit 7" TERM; kill -TERM $$; sleep 60').done, { exitCode: 7, signal: null });
});

test('what cannot be is refused at once; what cannot be started rejects, and leaves nothing to wait for', async () => { // covers: P1 P2
  for (const wrong of [{ argv: [] }, { argv: [''] }, { graceMs: 0 }, { graceMs: 2 ** 31 }, { signal: AbortSignal.abort() }, { env: { 'a=': 'x' } }]) {
    assert.throws(() => spawn('true', wrong), JSON.stringify(wrong));
  }
  const missing = spawn('', { argv: ['/no/such/program'] });
  await assert.rejects(missing.done, (error: NodeJS.ErrnoException) => error.code === 'ENOENT' && error.path === '/no/such/program');
  assert.equal(missing.pid, -1);
  assert.equal(await missing.waitForExit(), true);
  await assert.rejects(spawn('true', { cwd: '/no/such/folder' }).done, (error: NodeJS.ErrnoException) => error.code === 'ENOENT' && error.path === undefined);
});

test('a program is found in the sandbox', async () => { // covers: 4.1
  assert.match(await subprocess.resolveExecutable('bash'), /^\/.*\/bash$/);
  await assert.rejects(subprocess.resolveExecutable(''));
  await assert.rejects(subprocess.resolveExecutable('./bash'));
  await assert.rejects(subprocess.resolveExecutable('no-such-program'));
  await assert.rejects(subprocess.resolveExecutable('bash', { PATH: '/nowhere' }));
});

test('the environment is the sandbox’s without secrets, and then the caller’s', async () => { // covers: 4.3
  process.env.HOST_ONLY_VALUE = 'host';
  const { stdout } = await run(shared, ['env', '-0'], cwd);
  const names = stdout.split('\0').map((entry) => entry.split('=')[0]!);
  assert.ok(names.includes('PATH'));
  assert.ok(!names.includes('HOST_ONLY_VALUE'));
  for (const name of names) assert.doesNotMatch(name, /KEY|PASSWORD|SECRET|TOKEN|^DSH_/i);
  const handle = spawn('printf "%s|%s|%s" "$DSH_X" "$MY_TOKEN" "${HOME-none}"', { env: { DSH_X: '1', MY_TOKEN: 't', HOME: undefined } });
  await handle.done;
  assert.equal(out(handle), '1|t|none');
});

test('stdin is what is given, as data or as a pipe', async () => {
  const large = 'x'.repeat(3_000_000);
  assert.equal((await run(shared, ['wc', '-c'], cwd, large)).stdout.trim(), '3000000');
  assert.equal((await run(shared, ['wc', '-c'], cwd, '')).stdout.trim(), '0');
  assert.equal((await run(shared, ['true'], cwd, large)).exitCode, 0, 'that nobody reads it is no error');
  const cat = spawn('', { argv: ['cat'], stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' } });
  cat.stdin!.write('one ');
  cat.stdin!.end('two €');
  assert.equal(await text(cat.stdout!), 'one two €');
  assert.deepEqual(await cat.done, { exitCode: 0, signal: null });
  const all = Buffer.alloc(5 << 20, 'abcdefg');
  const big = spawn('', { argv: ['cat'], stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' } });
  big.stdin!.end(all);
  const parts: Buffer[] = [];
  for await (const part of big.stdout!) parts.push(part as Buffer);
  assert.ok(Buffer.concat(parts).equals(all));
});

test('who does not read a pipe holds its process back, and nobody else', async () => { // covers: O5
  const handle = spawn('head -c 20000000 /dev/zero; echo done >&2', { stdio: { stdin: 'ignore', stdout: 'pipe', stderr: { maxBytes: 100 } } });
  assert.equal((await run(shared, ['echo', 'hi'], cwd)).stdout, 'hi\n');
  assert.equal(handle.collected.stderr!.readFrom(0).text, '');
  let bytes = 0;
  for await (const part of handle.stdout!) bytes += (part as Buffer).length;
  assert.equal(bytes, 20_000_000);
  await handle.done;
  assert.equal(handle.collected.stderr!.readFrom(0).text, 'done\n');
});

test('writing to a process that reads no more ends with EPIPE at most', async () => {
  const handle = spawn('exec <&-; echo closed; sleep 60', { stdio: { stdin: 'pipe', stdout: { maxBytes: 100 }, stderr: { maxBytes: 100 } } });
  await until('it has closed its stdin', () => out(handle) === 'closed\n');
  const errors: NodeJS.ErrnoException[] = [];
  handle.stdin!.on('error', (error) => errors.push(error));
  const more = (): void => void (handle.stdin!.writable && handle.stdin!.write('x'.repeat(100_000), () => setImmediate(more)));
  more();
  await until('its end is noticed', () => handle.stdin!.destroyed);
  for (const error of errors) assert.equal(error.code, 'EPIPE'); // There is one when a write was under way.
  handle.terminate();
  assert.equal(await handle.waitForExit(), true);
});

test('an output keeps its last bytes, and all of it in a file of the sandbox', async () => { // covers: O1 O2 O3
  const spilling = { maxBytes: 1_000, spill: { maxBytes: 1 << 20 } };
  const handle = spawn('seq 1 20000', { stdio: { stdin: 'ignore', stdout: spilling, stderr: spilling } });
  await handle.done;
  const all = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('');
  const read = handle.collected.stdout!.readFrom(0);
  assert.deepEqual([read.text, read.nextOffset, read.lossy], [all.slice(-1_000), all.length, true]);
  assert.equal(await fs.readText(await fs.resolve(read.spillPath!)), all);
  assert.deepEqual(handle.collected.stderr!.readFrom(0), { text: '', nextOffset: 0, lossy: false });
  const exact = spawn('head -c 1000 /dev/zero', { stdio: { stdin: 'ignore', stdout: spilling, stderr: spilling } });
  await exact.done;
  assert.deepEqual([exact.collected.stdout!.readFrom(0).lossy, exact.collected.stdout!.readFrom(0).spillPath], [false, undefined]);
});

test('an output that is much is no burden: the tail is exact and memory bounded', async () => { // covers: O2 O5
  const before = process.memoryUsage().rss;
  const handle = spawn('head -c 200000000 /dev/zero; echo end', { stdio: { stdin: 'ignore', stdout: { maxBytes: 10_000 }, stderr: { maxBytes: 100 } } });
  await handle.done;
  const read = handle.collected.stdout!.readFrom(0);
  assert.equal(read.nextOffset, 200_000_004);
  assert.equal(read.text.length, 10_000);
  assert.ok(read.text.endsWith('\0end\n'));
  assert.ok(process.memoryUsage().rss - before < 64 << 20, `${process.memoryUsage().rss - before}`);
});

test('an output is read while it comes, by offsets of the reader’s own', async () => { // covers: O1
  const handle = spawn('echo one; read -r line; echo "$line"', { stdio: { stdin: 'pipe', ...collect } });
  await until('the first line is there', () => out(handle) === 'one\n');
  const { nextOffset } = handle.collected.stdout!.readFrom(0);
  handle.stdin!.write('two\n');
  await handle.done;
  assert.equal(handle.collected.stdout!.readFrom(nextOffset).text, 'two\n');
});

test('a descendant that holds an output keeps nobody waiting longer than the grace', async () => { // covers: X2
  const handle = spawn('sleep 300 & echo $!; exit 5', { graceMs: 500 });
  assert.deepEqual(await handle.done, { exitCode: 5, signal: null });
  const pid = out(handle).trim();
  assert.ok(await lives(pid));
  const short = AbortSignal.timeout(300);
  assert.equal(await handle.waitForExit(short), false, 'it is still there');
  handle.terminate();
  assert.equal(await handle.waitForExit(), true);
  assert.ok(!(await lives(pid)));
});

test('terminating ends the whole tree, also who left the group and who minds no signal', async () => { // covers: T1 T2 T4 T7 M7
  const handle = spawn('trap "" TERM; setsid bash -c "trap \\"\\" TERM; echo \\$\\$; while :; do sleep 1; done" & echo $$; wait; while :; do sleep 1; done', { graceMs: 300 });
  await until('both have begun', () => out(handle).split('\n').length === 3);
  const pids = out(handle).trim().split('\n');
  for (const pid of pids) assert.ok(await lives(pid), pid);
  handle.terminate();
  handle.terminate();
  assert.deepEqual(await handle.done, { exitCode: null, signal: 'SIGKILL' });
  assert.equal(await handle.waitForExit(), true);
  for (const pid of pids) assert.ok(!(await lives(pid)), pid);
});

test('an abort is a termination, whenever it comes', async () => { // covers: T1 T5
  for (const when of ['at once', 'once it runs'] as const) {
    const aborter = new AbortController();
    const handle = spawn('echo $$; exec sleep 300', { signal: aborter.signal });
    if (when === 'once it runs') await until('it runs', () => out(handle) !== '');
    aborter.abort();
    const { exitCode, signal } = await handle.done;
    assert.deepEqual([exitCode, signal], [null, 'SIGTERM'], when);
    assert.equal(await handle.waitForExit(), true);
    const pid = out(handle).trim();
    if (pid !== '') assert.ok(!(await lives(pid)), when);
  }
});

test('an inherited output is copied to the harness’s own', async () => {
  const seen: string[] = [];
  const write = process.stderr.write; // Standard output is the runner's own.
  process.stderr.write = ((chunk: Uint8Array | string, ...rest: never[]) => {
    seen.push(chunk.toString());
    return write.call(process.stderr, '', ...rest);
  }) as typeof process.stderr.write;
  try {
    await spawn('echo inherited >&2', { stdio: { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' } }).done;
    await until('it was copied', () => seen.join('').includes('inherited\n'));
  } finally {
    process.stderr.write = write;
  }
});

test('many commands run at once', async () => {
  const ends = await Promise.all(Array.from({ length: 100 }, (_, i) => run(shared, ['bash', '-c', `echo ${i}`], cwd)));
  assert.deepEqual(ends.map(({ stdout }) => stdout), Array.from({ length: 100 }, (_, i) => `${i}\n`));
});

test('more processes than a session can carry are refused, and what is short still works', async () => {
  const most = lastingStreamsMost / 2;
  const handles = Array.from({ length: most + 1 }, () => spawn('exec sleep 300', { graceMs: 200 }));
  await assert.rejects(handles.at(-1)!.done, /streams of processes/);
  assert.ok(await fs.stat(await fs.resolve('/')));
  for (const handle of handles) handle.terminate();
  for (const handle of handles) assert.equal(await handle.waitForExit(), true);
});

test('at the end of the harness nothing of it is left, and it starts nothing more', async () => { // covers: T6 W5
  const other = await harness();
  const handle = other.subprocess.spawn({ argv: ['bash', '-c', 'setsid sleep 300 & echo $!; wait'], cwd: '/', stdio: { stdin: 'ignore', ...collect }, graceMs: 300 });
  await until('it runs', () => out(handle) !== '');
  const pid = out(handle).trim();
  assert.ok(await lives(pid));
  await other.dispose();
  assert.ok(!(await lives(pid)));
  assert.throws(() => other.subprocess.spawn({ argv: ['true'], cwd: '/', stdio: { stdin: 'ignore', ...collect }, graceMs: 300 }), /disposed/);
});

test('while the workspace is carried out nobody but who carries it begins anything', async () => { // covers: T6
  let refused: unknown, code: number | null = null;
  const stdio = { stdin: 'ignore' as const, ...collect };
  const one = await harness({
    syncOut: async ({ spawn: carry }) => {
      try {
        one.subprocess.spawn({ argv: ['sleep', '1000'], cwd: '/', stdio, graceMs: 100 });
      } catch (thrown) {
        refused = thrown;
      }
      code = (await carry({ argv: ['bash', '-c', 'exit 7'], cwd: '/', stdio, graceMs: 100 }).done).exitCode;
    },
  });
  await one.dispose();
  assert.match(String(refused), /nothing is started/);
  assert.equal(code, 7);
});
