import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FsError } from '@deepseek-ai/dsh-fs';
import { toFsError } from '../src/fs/errors.js';
import { contains, fileUrl, processPath } from '../src/fs/paths.js';
import { decoded, withLf } from '../src/fs/text.js';
import { backoffMs, renewAfterMs } from '../src/link/backoff.js';
import { NoToken, isFinal, readToken } from '../src/link/token.js';
import { configSchema, objectionsTo, settle, type Config } from '../src/owner/config.js';
import { confined, unconfined } from '../src/owner/confinement.js';
import { manifestOf } from '../src/owner/declaration.js';
import { narrower } from '../src/owner/mode.js';
import { narrowingOf } from '../src/owner/narrowing.js';
import { Notices } from '../src/owner/notices.js';
import { moveInto } from '../src/owner/sync.js';
import { inSandbox, type World } from '../src/owner/world.js';
import { RemoteFailure, failure } from '../src/session/failure.js';
import { isHostRipgrep } from '../src/subprocess/ripgrep.js';
import { environment, newHandle, objectionTo } from '../src/subprocess/spec.js';
import { nameFromBytes } from '../src/wire/name.js';

// Decisions that need no sandbox, as tables.

test('a path becomes a URI of the sandbox, each byte that is not plain percent-encoded', () => { // covers: F6
  assert.equal(fileUrl('/home/a b/ü#?%.ts'), 'file:///home/a%20b/%C3%BC%23%3F%25.ts');
  assert.equal(fileUrl('/a\nb'), 'file:///a%0Ab');
  assert.equal(fileUrl(nameFromBytes(Buffer.from([0x2f, 0xff]))), 'file:///%FF');
  assert.equal(processPath('/a/b'), '/a/b');
});

test('a folder holds what is below it by components', () => { // covers: F6
  const cases: [string, string, boolean][] = [
    ['/a/b', '/a/b', true], ['/a/b', '/a/b/c', true], ['/a/b', '/a/bc', false], ['/a/b', '/a', false], ['/', '/a', true],
  ];
  for (const [parent, child, held] of cases) assert.equal(contains(parent, child), held, `${parent} ${child}`);
});

async function* chunksOf(...chunks: number[][]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Uint8Array.from(chunk);
}

test('text that comes in pieces keeps its code points whole, loses its byte order mark, and fails late where it is none', async () => { // covers: R3 R4
  const euro = [...Buffer.from('€')];
  const all: string[] = [];
  for await (const text of decoded(chunksOf([0xef, 0xbb], [0xbf, 0x61, ...euro.slice(0, 1)], euro.slice(1), [0x0d, 0x0a]))) all.push(text);
  assert.deepEqual(all, ['a', '€', '\r\n']);
  for (const bad of [[[0x61], [0xff]], [[0x61], euro.slice(0, 2)]]) {
    const seen: string[] = [];
    await assert.rejects(
      async () => {
        for await (const text of decoded(chunksOf(...bad))) seen.push(text);
      },
      (error: RemoteFailure) => error.code === 'FS_NOT_TEXT',
    );
    assert.deepEqual(seen, ['a']);
  }
});

test('lines are shown with LF, and a carriage return that stands alone is left alone', () => { // covers: A6 D1
  assert.equal(withLf('a\r\nb\rc\r\r\nd'), 'a\nb\rc\r\nd');
});

test('a failure has one of the thirteen codes, and what is not of files says what it was', () => {
  const cases = [['FS_STALE_VERSION', 'FS_STALE_VERSION'], ['CANCELLED', 'FS_ABORTED'], ['DENIED', 'FS_PERMISSION_DENIED'], ['OUTCOME_UNKNOWN', 'FS_IO_ERROR'], ['UNAVAILABLE', 'FS_IO_ERROR']] as const;
  for (const [code, fs] of cases) {
    const error = toFsError('write "a"', new RemoteFailure(failure(code, 'why'))) as FsError;
    assert.ok(error instanceof FsError);
    assert.equal(error.code, fs);
    assert.match(error.message, /^write "a": why/);
    assert.ok(error.cause instanceof RemoteFailure);
  }
  const own = new TypeError('a bug');
  assert.equal(toFsError('x', own), own);
});

test('dialling again waits longer each time, to a bound, and not all at once', () => {
  assert.ok(backoffMs(0, () => 1) <= 50);
  assert.equal(backoffMs(100, () => 1), 5_000);
  assert.equal(backoffMs(100, () => 0), 2_500);
});

test('a credential is renewed before its end, and never again at once', () => {
  assert.equal(renewAfterMs(3_600_000), 2_880_000);
  assert.equal(renewAfterMs(1), 5_000);
  assert.equal(renewAfterMs(1e15), 0x7fff_ffff, 'which is all that a timer takes');
});

test('the workspace of the host is the one of the sandbox, and no other folder of the host is anything', () => { // covers: W2
  const world = { cwd: '/home/user/workspace', hostWorkspace: '/src/project' };
  assert.equal(inSandbox(world, '/src/project'), '/home/user/workspace');
  assert.equal(inSandbox(world, '/src/project/a/b'), '/home/user/workspace/a/b');
  assert.equal(inSandbox(world, '/src/project2'), '/src/project2');
  assert.equal(inSandbox(world, '/src'), '/src');
  assert.equal(inSandbox(world, '/tmp'), '/tmp');
  assert.equal(inSandbox(world, 'a'), 'a');
});

const world = { cwd: '/w', hostWorkspace: '/src', welcome: { workspaceRoot: '/w' } } as World;

test('a mode narrows what the session may; one that nobody knows allows nothing', () => {
  assert.deepEqual(narrowingOf(world, undefined), {});
  assert.deepEqual(narrowingOf(world, { mode: 'read-only', workspaceRoot: '/src' }), { permissionMode: 'ReadOnly' });
  assert.deepEqual(narrowingOf(world, { mode: 'workspace-write', workspaceRoot: '/src/a' }), { permissionMode: 'WorkspaceWrite', workspaceRoot: '/w/a' });
  assert.deepEqual(narrowingOf(world, { mode: 'workspace-write', workspaceRoot: '/else' }), { permissionMode: 'WorkspaceWrite' });
  assert.equal(narrowingOf(world, { mode: 'everything', workspaceRoot: '/src' }), undefined);
  assert.equal(narrower('danger-full-access', 'read-only'), 'read-only');
});

test('a confined argv carries its policy, and a plain one has none', () => {
  const policy = { mode: 'read-only', workspaceRoot: '/w' };
  assert.deepEqual(unconfined(confined(['bash', '-c', 'ls'], policy)), { argv: ['bash', '-c', 'ls'], policy });
  assert.deepEqual(unconfined(['bash']), { argv: ['bash'], policy: undefined });
});

test('a token that cannot be had now is waited for, and one that will not come is not', async () => {
  const cases: [unknown, boolean, boolean][] = [ // At first, and later.
    [new NoToken('', 'absent'), true, false], [new NoToken('', 'refused'), true, true], [new NoToken('', 'later'), false, false],
    [new Error('of another kind'), false, false],
  ];
  for (const [error, first, later] of cases) assert.deepEqual([isFinal(error, false), isFinal(error, true)], [first, later]);

  const folder = await mkdtemp(join(tmpdir(), 'token-'));
  const file = join(folder, 'token');
  const kindOf = (path: string) => readToken(path).then(() => 'none', (error: NoToken) => error.kind);
  try {
    assert.deepEqual([await kindOf(file), await kindOf(join(file, 'below'))], ['absent', 'absent']);
    await writeFile(file, ' a.b.c\n');
    assert.equal(await readToken(file), 'a.b.c');
    assert.equal(await kindOf(join(file, 'below')), 'absent');
    await writeFile(file, '\n');
    assert.equal(await kindOf(file), 'absent');
    assert.equal(await kindOf(folder), 'later');
  } finally {
    await rm(folder, { recursive: true });
  }
});

// As the other clients read it: clients/python/tests/token_file_test.py, cli/reach/way_test.cc.
test('nothing is taken for a token that is none', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'token-'));
  const file = join(folder, 'token');
  try {
    for (const token of ['!a.b~', 'x'.repeat(8_192)]) {
      await writeFile(file, ` \r\n\t${token}\n`);
      assert.equal(await readToken(file), token);
    }
    for (const content of ['x'.repeat(8_193), 'a b', 'a\nb', '\x7f', '\xff', '\xc3\xa9', 'a\0b', '\xa0a', '\xef\xbb\xbfa', '\va']) {
      await writeFile(file, content, 'latin1');
      await assert.rejects(readToken(file), (error: NoToken) => error.kind === 'refused' && error.message.endsWith(' holds no token'), content.slice(0, 9));
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("the host's ripgrep is known by its path, and no other program is taken for it", () => {
  assert.ok(isHostRipgrep('/x/node_modules/@vscode/ripgrep-linux-x64/bin/rg'));
  assert.ok(isHostRipgrep('/x/node_modules/@vscode/ripgrep/bin/rg'));
  assert.ok(isHostRipgrep('/opt/dsh-rg', '/opt/dsh'));
  for (const other of ['rg', '/usr/bin/rg', '/x/@vscode/ripgrep/bin/rg2', '/x/@vscode/other/bin/rg']) assert.ok(!isHostRipgrep(other), other);
});

test('a spawn that cannot be is refused before anything is done', () => { // covers: P1
  const spec = { argv: ['true'], graceMs: 1_000, env: {} };
  assert.equal(objectionTo(spec), undefined);
  const wrong: object[] = [
    { argv: [] }, { argv: [''] }, { argv: ['a\0'] }, { graceMs: 0 }, { graceMs: -1 }, { graceMs: NaN }, { graceMs: Infinity },
    { graceMs: 2 ** 31 }, { env: { '': 'a' } }, { env: { 'a=b': 'a' } }, { env: { 'a\0': 'a' } }, { env: { a: '\0' } },
  ];
  for (const one of wrong) assert.notEqual(objectionTo({ ...spec, ...one }), undefined, JSON.stringify(one));
  assert.equal(objectionTo({ ...spec, graceMs: 2 ** 31 - 1 }), undefined);
  assert.deepEqual(environment({ A: '1', B: undefined }), [['A', '1'], ['B', null]]);
  assert.match(newHandle(), /^[A-Za-z0-9_-]{16,64}$/);
});

test('an entry says which Sandbox it is about, and what is wrong with it is named', () => {
  const fine: Config[] = [{ sandbox: 'box' }, { sandbox: 'team/box' }, { template: 'base' }, { template: 'base', cwd: '/w', excludes: ['.cache'], syncIn: false, syncOut: async () => {} }];
  for (const entry of fine) assert.deepEqual(objectionsTo(entry), [], JSON.stringify(entry));
  const wrong: [Config | object, RegExp][] = [
    [{}, /"sandbox" names the Sandbox/],
    [{ sandbox: 'Box' }, /namespace\/name/],
    [{ sandbox: 'box', colour: 'red' }, /"colour" is not known/],
    [{ sandbox: 'box', cwd: 'w' }, /"cwd"/],
    [{ sandbox: 'box', timeoutMs: 0 }, /"timeoutMs"/],
    [{ sandbox: 'box', timeoutMs: 60_000, heartbeatMs: 30_000 }, /a third/],
    [{ sandbox: 'box', leaseMs: 10 }, /"leaseMs"/],
    [{ sandbox: 'box', excludes: ['a/b'] }, /"excludes"/],
    [{ sandbox: 'box', pauseOnDispose: 'yes' }, /"pauseOnDispose"/],
  ];
  for (const [entry, why] of wrong) assert.match(objectionsTo(entry).join('\n'), why);
  assert.deepEqual(configSchema['~standard'].validate({}), { issues: [{ message: objectionsTo({})[0]! }] });
});

test('a Sandbox that is declared has the lifetime of the entry, in the words of its schema', () => {
  const config = settle({ template: 'base', sandbox: 'team/box', timeoutMs: 600_000, heartbeatMs: 60_000, apiKey: 'e2b_0123' }, () => 'x');
  assert.deepEqual(JSON.parse(manifestOf(config)), {
    apiVersion: 'sandfleet.dev/v1alpha1',
    kind: 'Sandbox',
    metadata: { name: 'box', namespace: 'team' },
    spec: { template: { id: 'base' }, keepAlive: { timeoutSeconds: 600, heartbeatSeconds: 60 } },
  });
  const defaults = settle({ template: 'base' }, () => 'made-up');
  assert.deepEqual([defaults.sandbox, defaults.namespace, defaults.timeoutMs, defaults.heartbeatMs, defaults.pauseOnDispose], ['made-up', 'default', 300_000, 30_000, true]);
});

test('a notice is told as it comes and kept until it is asked for, once, and not without bound', () => {
  const heard: string[] = [];
  const notices = new Notices((text) => heard.push(text));
  assert.equal(notices.consume(), undefined);
  notices.add({ kind: 'restored', message: 'from snapshot s-1' });
  notices.lost('/w');
  assert.equal(heard.length, 2);
  assert.match(notices.consume()!, /^\[sandbox restored\] from snapshot s-1\n\[sandbox lost\]/);
  assert.equal(notices.consume(), undefined);
  for (let i = 0; i < 100; i++) notices.add({ kind: 'k', message: `${i}` });
  assert.equal(notices.consume()!.split('\n').length, 16);
});

test('what comes out of a sandbox takes its place through no link of the host', async () => {
  const root = await mkdtemp(join(tmpdir(), 'sync-'));
  try {
    const [from, to, outside] = ['from', 'to', 'outside'].map((name) => join(root, name)) as [string, string, string];
    for (const folder of [join(from, 'a'), join(from, 'c'), join(to, 'c'), outside]) await mkdir(folder, { recursive: true });
    await writeFile(join(from, 'a', 'f'), 'new');
    await writeFile(join(from, 'c', 'g'), 'new');
    await writeFile(join(to, 'c', 'kept'), 'kept');
    await writeFile(join(outside, 'f'), 'precious');
    await symlink(outside, join(to, 'a'));
    await symlink(join(outside, 'f'), join(to, 'c', 'g'));
    await moveInto(from, to);
    assert.equal(await readFile(join(outside, 'f'), 'utf8'), 'precious');
    assert.equal(await readFile(join(to, 'a', 'f'), 'utf8'), 'new');
    assert.equal(await readFile(join(to, 'c', 'g'), 'utf8'), 'new');
    assert.equal(await readFile(join(to, 'c', 'kept'), 'utf8'), 'kept');
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
