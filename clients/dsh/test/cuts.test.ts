import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Cutter, agentdSocket, harness, run, until } from './chain.js';

// Links that break, in every place: what goes on is exact to the byte, and what acts acts once.

const cutter = await new Cutter(agentdSocket).listen();
const shared = await harness({ socket: cutter.path });
after(async () => {
  cutter.cutEvery(undefined);
  await shared.dispose();
  cutter.close();
});
const { fs, subprocess, cwd } = shared;

const seeded = (seed: number) => (): number => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed;
};

test('a stream that is cut goes on where it was, again and again', async () => { // covers: O1 X4
  const random = seeded(1);
  cutter.cutEvery(() => 10_000 + (random() % 60_000));
  const handle = subprocess.spawn({ argv: ['seq', '1', '200000'], cwd, stdio: { stdin: 'ignore', stdout: 'pipe', stderr: { maxBytes: 100 } }, graceMs: 10_000 });
  let next = 1;
  let rest = '';
  for await (const part of handle.stdout!) {
    const lines = (rest + (part as Buffer).toString()).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line !== `${next++}`) assert.fail(`${line} in the place of ${next - 1}`);
  }
  cutter.cutEvery(undefined);
  assert.equal(next, 200_001);
  assert.deepEqual(await handle.done, { exitCode: 0, signal: null });
  assert.ok(cutter.cuts >= 20, `${cutter.cuts}`);
});

test('what is written to a process arrives once and in order, whatever is cut', async () => {
  const random = seeded(2);
  const before = cutter.cuts;
  cutter.cutEvery(() => 10_000 + (random() % 40_000)); // Less than a whole frame may have.
  const lines = Array.from({ length: 100_000 }, (_, i) => `${i}\n`).join('');
  const ran = await run(shared, ['bash', '-c', 'md5sum; exit 4'], cwd, lines);
  const handle = subprocess.spawn({ argv: ['md5sum'], cwd, stdio: { stdin: 'pipe', stdout: { maxBytes: 100 }, stderr: { maxBytes: 100 } }, graceMs: 10_000 });
  handle.stdin!.end(lines);
  await handle.done;
  cutter.cutEvery(undefined);
  assert.ok(cutter.cuts - before >= 30, `${cutter.cuts - before}`);
  const { createHash } = await import('node:crypto');
  const sum = createHash('md5').update(lines).digest('hex');
  assert.equal(ran.stdout.slice(0, 32), sum);
  assert.equal(ran.exitCode, 4);
  assert.equal(handle.collected.stdout!.readFrom(0).text.slice(0, 32), sum);
});

test('each of many changes is made once, whatever is cut', async () => { // covers: C2
  const target = await fs.resolve('counter', { cwd });
  await fs.writeText(target, 'x');
  const random = seeded(3);
  cutter.cutEvery(() => 1_200 + (random() % 5_000)); // A link that opens takes a kilobyte.
  for (let i = 0; i < 20; i++) await fs.editText(target, { oldString: 'x', newString: `x${i},`, replaceAll: false });
  const handles = Array.from({ length: 8 }, (_, i) => run(shared, ['bash', '-c', `echo ${i} >> appended`], cwd));
  await Promise.all(handles);
  cutter.cutEvery(undefined);
  const expected = `x${Array.from({ length: 20 }, (_, i) => `${19 - i},`).join('')}`;
  assert.equal(await fs.readText(target), expected);
  const appended = (await fs.readText(await fs.resolve('appended', { cwd }))).trim().split('\n').map(Number);
  assert.deepEqual(appended.sort((a, b) => a - b), Array.from({ length: 8 }, (_, i) => i));
});

test('a cut at each byte of a short conversation changes nothing of what it says', async () => {
  const target = await fs.resolve('short', { cwd });
  for (let at = 1; at < 2_400; at += 191) {
    let once: number | undefined = at;
    cutter.cutEvery(() => {
      const budget = once ?? Infinity;
      once = undefined;
      return budget;
    });
    const wrote = await fs.writeText(target, `${at}`);
    const { stdout } = await run(shared, ['cat', 'short'], cwd);
    assert.deepEqual([wrote.after, stdout], [`${at}`, `${at}`]);
  }
  cutter.cutEvery(undefined);
});

test('a process outlives the link, and what it said meanwhile is read', async () => { // covers: 4.7
  const handle = subprocess.spawn({ argv: ['bash', '-c', 'echo one; read -r x; echo two; sleep 0.2; echo three'], cwd, stdio: { stdin: 'pipe', stdout: { maxBytes: 100 }, stderr: { maxBytes: 100 } }, graceMs: 10_000 });
  await until('it has begun', () => handle.collected.stdout!.readFrom(0).text === 'one\n');
  cutter.cut();
  handle.stdin!.write('go\n');
  assert.deepEqual(await handle.done, { exitCode: 0, signal: null });
  assert.equal(handle.collected.stdout!.readFrom(0).text, 'one\ntwo\nthree\n');
});

test('a mirror that was behind holds the exact tail after a cut', async () => { // covers: O2 4.7
  const random = seeded(4);
  cutter.cutEvery(() => 20_000 + (random() % 100_000));
  const handle = subprocess.spawn({ argv: ['seq', '1', '500000'], cwd, stdio: { stdin: 'ignore', stdout: { maxBytes: 50_000 }, stderr: { maxBytes: 100 } }, graceMs: 10_000 });
  await handle.done;
  cutter.cutEvery(undefined);
  const all = Array.from({ length: 500_000 }, (_, i) => `${i + 1}\n`).join('');
  const read = handle.collected.stdout!.readFrom(0);
  assert.deepEqual([read.nextOffset, read.text === all.slice(-50_000), read.lossy], [all.length, true, true]);
});

test('a server that breaks the protocol ends the session and nothing else: what is asked later goes on in another', async () => {
  const target = await fs.resolve('pid', { cwd });
  const handle = subprocess.spawn({ argv: ['bash', '-c', 'echo $$ > pid; exec sleep 300'], cwd, stdio: { stdin: 'ignore', stdout: { maxBytes: 10 }, stderr: { maxBytes: 10 } }, graceMs: 300 });
  await until('it runs', async () => (await fs.stat(target))?.size !== undefined && (await fs.readText(target)) !== '');
  const pid = (await fs.readText(target)).trim();
  cutter.spoil();
  await assert.rejects(handle.done);
  await until('what it had begun is gone', async () => (await run(shared, ['bash', '-c', `kill -0 ${pid}`], cwd)).exitCode === 1);
});

test('a token that is not there when a link is dialled again costs nothing, and one that never was is told', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'token-'));
  const tokenFile = join(folder, 'token');
  const way = await new Cutter(agentdSocket).listen();
  try {
    await assert.rejects(harness({ socket: way.path, tokenFile }), /its token cannot be read: .*no such file/);
    await writeFile(tokenFile, 'of nobody');
    await assert.rejects(harness({ socket: way.path, tokenFile }), /holds no token/);
    await writeFile(tokenFile, 'some.token');
    const brief = await harness({ socket: way.path, tokenFile });
    const { connection } = (brief.owner as unknown as { world: { connection: { lastTrouble: string } } }).world;
    await writeFile(tokenFile, '');
    way.cut();
    const asked = brief.fs.resolve('/');
    await until('it misses its token', () => connection.lastTrouble.includes('there is no token'));
    await writeFile(tokenFile, 'some.token');
    await asked;
    await brief.dispose();
  } finally {
    way.close();
    await rm(folder, { recursive: true });
  }
});

test('without a link for longer than the lease what waits fails, and afterwards work goes on', async () => {
  const dead = await new Cutter(agentdSocket).listen();
  const brief = await harness({ socket: dead.path, leaseMs: 1_000 });
  try {
    await brief.fs.stat(await brief.fs.resolve('/'));
    const running = brief.subprocess.spawn({ argv: ['sleep', '300'], cwd: '/', stdio: { stdin: 'ignore', stdout: { maxBytes: 10 }, stderr: { maxBytes: 10 } }, graceMs: 300 });
    await until('it runs', () => running.pid > 0);
    dead.cutEvery(() => -1); // Nothing passes any more.
    dead.cut();
    await assert.rejects(brief.fs.resolve('/'), /not reached for 1 s/);
    await assert.rejects(running.done);
    dead.cutEvery(undefined);
    assert.ok(await brief.fs.stat(await brief.fs.resolve('/')));
    assert.equal((await run(brief, ['echo', 'again'], '/')).stdout, 'again\n');
  } finally {
    await brief.dispose();
    dead.close();
  }
});
