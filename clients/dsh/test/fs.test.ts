import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { FsError, type FsErrorCode, type FsTarget } from '@deepseek-ai/dsh-fs';
import { harness, run, sharedHarness } from './chain.js';

// `ctx.fs` over the real chain. Each test works in a folder of its own.

const shared = await sharedHarness();
const { fs, owner } = shared;
let folders = 0;
const folder = (): string => `${owner.cwd}/fs-${process.pid}-${randomBytes(4).toString('hex')}-${folders++}`;
const code = (expected: FsErrorCode) => (error: unknown) => {
  assert.ok(error instanceof FsError, String(error));
  assert.equal(error.code, expected, error.message);
  return true;
};
const at = (path: string, cwd?: string): Promise<FsTarget> => fs.resolve(path, cwd === undefined ? undefined : { cwd });

test('a path has a target by what it leads to, before and after it is there', async () => { // covers: F1 F2 F3 F6
  const root = folder();
  for (const blank of ['', '  ', '\n']) await assert.rejects(fs.resolve(blank), code('FS_NOT_FOUND'));
  const before = await at('a/../b/f', root);
  assert.equal(before.displayPath, `${root}/b/f`);
  assert.equal(fs.processPath(before), `${root}/b/f`);
  assert.equal(fs.fileUrl(before), `file://${root}/b/f`);
  assert.equal(await fs.stat(before), undefined);
  assert.equal(await fs.lstat('b/f', { cwd: root }), undefined);
  await fs.writeText(before, 'x');
  const after = await at(`${root}/b/f`);
  assert.equal(after.targetKey, before.targetKey);
  assert.equal(fs.contains(await at(root), after), true);
  assert.equal(fs.contains(await at(`${root}/b`), await at(`${root}/bc`)), false);
  assert.equal(await fs.lstat(`${root}/b/f/below`), undefined);
  await assert.rejects(at(`${root}/b/f/below`), code('FS_NOT_FOUND')); // covers: F4
});

test('names with newlines and of other alphabets survive, also in listings', async () => { // covers: F5 R8
  const root = folder();
  const names = ['ü€', 'a\nb', 'A', '_', '1', 'b'];
  for (const name of names) await fs.writeText(await at(name, root), name);
  const listed = await fs.listDir(await at(root));
  assert.deepEqual(listed.map(({ name }) => name), [...names].sort((a, b) => a.localeCompare(b)));
  for (const { name, type, target, size } of listed) {
    assert.equal(type, 'file');
    assert.equal(size, Buffer.byteLength(name));
    assert.equal(await fs.readText(target), name);
    assert.equal(target.targetKey, (await at(name, root)).targetKey);
  }
  await assert.rejects(fs.listDir(await at('b', root)), code('FS_NOT_DIRECTORY'));
  await assert.rejects(fs.listDir(await at('none', root)), code('FS_NOT_FOUND'));
});

test('a folder of more than a page is listed whole and once', async () => { // covers: R8
  const root = folder();
  const names = Array.from({ length: 1_205 }, (_, i) => `f${i}`);
  const made = await run(shared, ['bash', '-c', 'mkdir -p "$0" && cd "$0" && touch f{0..1204}', root], '/');
  assert.equal(made.exitCode, 0, made.stderr);
  const listed = (await fs.listDir(await at(root))).map(({ name }) => name);
  assert.equal(listed.length, names.length);
  assert.equal(new Set(listed).size, names.length);
});

test('text comes back as it is stored, but for a byte order mark', async () => { // covers: R2 R3
  const target = await at('t', folder());
  await fs.writeText(target, '\ufeffone\r\ntwo\r€');
  assert.equal(await fs.readText(target), 'one\r\ntwo\r€');
  assert.equal(Buffer.from(await fs.readBytes(target, undefined, 100)).subarray(0, 3).toString('hex'), 'efbbbf');
  await fs.writeText(target, 'a\0b');
  await assert.rejects(fs.readText(target), code('FS_NOT_TEXT'));
  await assert.rejects(fs.readText(await at('none', folder())), code('FS_NOT_FOUND'));
  await assert.rejects(fs.readText(await at('/dev/null')), code('FS_NOT_REGULAR_FILE')); // covers: R1
  await assert.rejects(fs.readText(await at('/tmp')), code('FS_NOT_REGULAR_FILE'));
});

test('a large text is streamed in pieces that are text, and whoever leaves off ends the reading', async () => { // covers: R4
  const target = await at('large', folder());
  const text = '€uro '.repeat(600_000);
  await fs.writeText(target, text);
  let pieces = 0;
  let read = '';
  for await (const piece of await fs.streamText(target)) {
    pieces++;
    assert.ok(!piece.includes('\ufffd'));
    read += piece;
  }
  assert.ok(pieces > 1);
  assert.ok(read === text);
  for await (const piece of await fs.streamText(target)) {
    assert.ok(piece.length > 0);
    break;
  }
  assert.equal((await fs.stat(target))?.size, Buffer.byteLength(text), 'the session goes on');
  await assert.rejects(fs.streamText(await at('none', folder())), code('FS_NOT_FOUND'));
});

test('bytes are read up to a bound that counts, and never fewer than there are', async () => { // covers: R5
  const target = await at('b', folder());
  await fs.writeText(target, '12345');
  assert.equal((await fs.readBytes(target, undefined, 5)).length, 5);
  await assert.rejects(fs.readBytes(target, undefined, 4), (error: FsError) => error.code === 'FS_TOO_LARGE');
  await fs.writeText(target, '');
  assert.deepEqual(await fs.readBytes(target, undefined, 0), new Uint8Array(0));
});

test('what was aborted is told as aborted, and changes nothing', async () => { // covers: R6
  const target = await at('x', folder());
  const gone = AbortSignal.abort();
  await assert.rejects(fs.stat(target, gone), code('FS_ABORTED'));
  await assert.rejects(fs.readText(target, gone), code('FS_ABORTED'));
  await assert.rejects(fs.writeText(target, 'x', undefined, gone), code('FS_ABORTED'));
  assert.equal(await fs.stat(target), undefined);
});

test('a write is guarded as it says', async () => { // covers: A2 A3 A6 A7 2.3
  const root = folder();
  const target = await at('deep/er/f', root);
  const made = await fs.writeText(target, 'one\r\n', { kind: 'createIfAbsent' });
  assert.deepEqual([made.operation, made.before, made.after], ['create', null, 'one\n']);
  assert.equal((await fs.stat(target))!.version, made.version);
  await assert.rejects(fs.writeText(target, 'two', { kind: 'createIfAbsent' }), code('FS_NOT_OBSERVED'));
  const changed = await fs.writeText(target, 'two', { kind: 'replaceIfVersion', version: made.version });
  assert.deepEqual([changed.operation, changed.before, changed.after], ['update', 'one\n', 'two']);
  await assert.rejects(fs.writeText(target, 'three', { kind: 'replaceIfVersion', version: made.version }), code('FS_STALE_VERSION'));
  await assert.rejects(fs.writeText(await at('none', root), 'x', { kind: 'replaceIfVersion', version: made.version }), code('FS_STALE_VERSION'));
  await assert.rejects(fs.writeText(await at('deep', root), 'x', { kind: 'createIfAbsent' }), code('FS_NOT_REGULAR_FILE'));
  assert.equal(await fs.readText(target), 'two');
});

test('a difference is shown for text below its bound, on either side', async () => { // covers: A6
  const target = await at('f', folder());
  await fs.writeText(target, 'a\0\u{1f600}');
  assert.equal((await fs.writeText(target, 'text')).before, null, 'what was there is no text');
  const large = 'x'.repeat(10 << 20);
  assert.equal((await fs.writeText(target, large)).before, null);
  assert.equal((await fs.writeText(target, 'small')).before, null);
  const below = 'y'.repeat((10 << 20) - 1);
  await fs.writeText(target, below);
  assert.equal((await fs.writeText(target, 'small')).before, below);
});

test('an edit is literal, whatever stands in it', async () => { // covers: D1 D2 D3
  const target = await at('f', folder());
  await fs.writeText(target, 'a OLD b OLD\r\nc\r\n');
  await assert.rejects(fs.editText(target, { oldString: 'OLD', newString: 'x', replaceAll: false }), code('FS_AMBIGUOUS_EDIT'));
  await assert.rejects(fs.editText(target, { oldString: 'none', newString: 'x', replaceAll: false }), code('FS_EDIT_NOT_FOUND'));
  await assert.rejects(fs.editText(target, { oldString: '', newString: 'x', replaceAll: false }), code('FS_EDIT_NOT_FOUND'));
  const patterns = "$& $$ $' $` $1";
  const edited = await fs.editText(target, { oldString: 'b OLD\nc', newString: patterns, replaceAll: false });
  assert.deepEqual([edited.before, edited.after], ['a OLD b OLD\nc\n', `a OLD ${patterns}\n`]);
  assert.equal(await fs.readText(target), `a OLD ${patterns}\r\n`);
  assert.equal((await fs.stat(target))!.version, edited.version);
  await fs.editText(target, { oldString: 'OLD', newString: 'N\nN', replaceAll: true }, { version: edited.version });
  assert.equal(await fs.readText(target), `a N\r\nN ${patterns}\r\n`);
  await assert.rejects(fs.editText(target, { oldString: 'a', newString: 'b', replaceAll: false }, { version: edited.version }), code('FS_STALE_VERSION'));
  await assert.rejects(fs.editText(await at('none', folder()), { oldString: 'a', newString: 'b', replaceAll: false }), code('FS_STALE_VERSION'));
});

test('an edit keeps the byte order mark on disk and out of sight', async () => { // covers: R3
  const target = await at('f', folder());
  await fs.writeText(target, '\ufeffone');
  const edited = await fs.editText(target, { oldString: 'one', newString: 'two', replaceAll: false });
  assert.deepEqual([edited.before, edited.after], ['one', 'two']);
  assert.equal(Buffer.from(await fs.readBytes(target, undefined, 100)).toString('hex'), 'efbbbf74776f');
});

test('many things at once wait for each other where a session has no room for all', async () => { // covers: C2
  const root = folder();
  const names = Array.from({ length: 300 }, (_, i) => `f${i}`);
  await Promise.all(names.map(async (name) => fs.writeText(await at(name, root), name)));
  assert.equal((await fs.listDir(await at(root))).length, names.length);
});

test('of many edits that are guarded by one version exactly one is made', async () => { // covers: C1 C2
  const target = await at('f', folder());
  const { version } = await fs.writeText(target, 'n');
  const second = await harness();
  try {
    const edits = Array.from({ length: 10 }, (_, i) =>
      (i % 2 ? fs : second.fs).editText(target, { oldString: 'n', newString: `n${i}`, replaceAll: false }, { version }));
    const ends = await Promise.allSettled(edits);
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const end of ends) if (end.status === 'rejected') code('FS_STALE_VERSION')(end.reason);
  } finally {
    await second.dispose();
  }
});

test('each call may be held to less than the session', async () => { // covers: 2.6
  const target = await at('f', folder());
  const policy = (mode: string): never => ({ mode, workspaceRoot: owner.cwd }) as never;
  await assert.rejects(fs.writeText(target, 'x', undefined, undefined, policy('read-only')), code('FS_SANDBOX_DENIED'));
  await assert.rejects(fs.writeText(target, 'x', undefined, undefined, policy('anything')), code('FS_SANDBOX_DENIED'));
  await fs.writeText(target, 'x', undefined, undefined, policy('workspace-write'));
  const elsewhere = await at('/var/lib/sandfleet-test');
  await assert.rejects(fs.writeText(elsewhere, 'x', undefined, undefined, policy('workspace-write')), code('FS_SANDBOX_DENIED'));
  await assert.rejects(fs.editText(target, { oldString: 'x', newString: 'y', replaceAll: false }, undefined, undefined, policy('read-only')), code('FS_SANDBOX_DENIED'));
  assert.equal(await fs.readText(target), 'x');
});

test('no key is handed out, and the reason is told', async () => {
  await assert.rejects(owner.getSandbox(), /ctx\.fs and ctx\.subprocess/);
});
