import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SubprocessTerminalHandle, SubprocessTerminalSpawnSpec } from '@deepseek-ai/dsh-subprocess';
import { Streams } from '../src/session/streams.js';
import { run, sharedHarness, until } from './chain.js';

// Terminals over the real chain, bare and under the published backend of dsh's terminal tools.

const shared = await sharedHarness();
const { ctx, subprocess, cwd } = shared;
const skip = shared.features.includes('terminals') ? false : 'this executor has no terminals';

// The published backend is written for Node 22, which has this.
const promises = Promise as unknown as { withResolvers?: () => object };
promises.withResolvers ??= () => {
  let resolve, reject;
  const promise = new Promise((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
};

interface Shown {
  text: string;
  ended: boolean;
}
async function terminal(script: string, more: Partial<SubprocessTerminalSpawnSpec> = {}): Promise<[SubprocessTerminalHandle, Shown]> {
  const handle = await subprocess.spawnTerminal({ argv: ['bash', '-c', script], cwd, rows: 40, cols: 160, graceMs: 1_000, ...more });
  const shown: Shown = { text: '', ended: false };
  handle.output.on('data', (bytes: Buffer) => (shown.text += bytes.toString()));
  handle.output.on('end', () => (shown.ended = true));
  return [handle, shown];
}

test('a terminal is one, with the size that was asked for, from its first byte on', { skip }, async () => { // covers: Y5
  const [handle, shown] = await terminal('printf first; tty -s && stty size');
  assert.deepEqual(await handle.done, { exitCode: 0, signal: null });
  await until('all was shown', () => shown.ended);
  assert.equal(shown.text, 'first40 160\r\n');
  await assert.rejects(handle.write('x'), /ended/); // covers: Y4
  await handle.terminate();
});

test('what waits for input is known to, and gets what is typed', { skip }, async () => { // covers: Y3
  const [handle, shown] = await terminal('read -r line; echo "got $line"; exec sleep 300');
  await until('it waits for input', async () => (await handle.inspectForeground())?.inputWaiting === true);
  await handle.write('some words\r');
  await until('it was read', () => shown.text.includes('got some words'));
  await until('nobody waits for input', async () => (await handle.inspectForeground())?.inputWaiting === false);
  await handle.terminate();
  await until('the output ends', () => shown.ended);
});

test('nobody waits for input while some is on its way', { skip }, async (t) => { // covers: Y3
  const [handle, shown] = await terminal('exec cat');
  const waits = async (): Promise<boolean> => (await handle.inspectForeground())?.inputWaiting === true;
  await until('it waits for input', waits);
  const held = t.mock.method(Streams.prototype as unknown as { nextData(): undefined }, 'nextData', () => undefined); // Requests overtake it.
  await handle.write('one\r');
  assert.equal(await waits(), false);
  held.mock.restore();
  await handle.write('two\r');
  await until('both came back', () => shown.text.split('two').length === 3);
  await until('it waits for input again', waits);
  await handle.terminate();
});

test('a signal goes to the group in the foreground, also where typing would not do', { skip }, async () => { // covers: Y2
  const [handle, shown] = await terminal('set -m; stty raw; bash -c "trap \\"echo caught; exit 5\\" INT; echo ready; while :; do sleep 0.1; done"; echo "then $?"');
  await until('it has begun', () => shown.text.includes('ready'));
  const group = (await handle.inspectForeground())!.processGroupId;
  assert.notEqual(group, handle.pid);
  assert.equal(await handle.signalForeground('SIGINT'), group);
  await until('it was caught', () => shown.text.includes('then 5'));
  await handle.terminate();
});

test('terminating ends every group of the session, and what waits is joined', { skip }, async () => { // covers: Y4 T7
  const [handle, shown] = await terminal('set -m; trap "" TERM HUP; sleep 301 & setsid sleep 302 & echo begun; read -r x');
  await until('it has begun', () => shown.text.includes('begun'));
  await handle.terminate();
  await handle.terminate();
  await handle.done;
  const left = await run(shared, ['bash', '-c', 'grep -lzE "^30[12]$" /proc/[0-9]*/cmdline 2>/dev/null | wc -l'], '/');
  assert.equal(left.stdout.trim(), '0');
  await assert.rejects(handle.inspectForeground(), /ended/);
  await assert.rejects(handle.signalForeground('SIGINT'), /ended/);
});

test('what is cancelled while it begins leaves nothing', { skip }, async () => { // covers: Y1
  const aborter = new AbortController();
  const begun = subprocess.spawnTerminal({ argv: ['bash', '-c', 'sleep 303'], cwd, rows: 40, cols: 160, graceMs: 300, signal: aborter.signal });
  aborter.abort(new Error('changed its mind'));
  await assert.rejects(begun, /changed its mind/);
  const left = await run(shared, ['bash', '-c', 'grep -lzE "^303$" /proc/[0-9]*/cmdline 2>/dev/null | wc -l'], '/');
  assert.equal(left.stdout.trim(), '0');
});

test('dsh-terminal-bash keeps a shell, sees at once when it is ready, and interrupts what runs in it', { skip }, async () => {
  const [backend, policy] = await Promise.all([import('@deepseek-ai/dsh-terminal-bash'), import('@deepseek-ai/dsh-sandbox-policy')]);
  await ctx.plugin(policy.default as never, { mode: 'danger-full-access', workspaceRoot: cwd } as never);
  let registered: { spawn(spec: object): Promise<Session> } | undefined;
  interface Session {
    startSend(request: object): { done: Promise<{ viewport: string; waitReason: string }>; cancel(): boolean };
    close(reason: string): Promise<void>;
  }
  ctx.provide('terminals' as never, { registerBackend: (one: never) => (registered = one), hasOwnerActivity: () => false } as never);
  await ctx.plugin(backend as never, {} as never);
  const owner = { id: 'agent-1', ctx, session: { id: 'session-1', events: [], header: { cwd } } };
  const session = await registered!.spawn({ sessionId: 's', owner, cwd });
  const began = performance.now();
  const sent = await session.startSend({ text: 'cd / && echo "in $PWD"', submit: true }).done;
  assert.match(sent.viewport, /in \/\n/);
  assert.equal(sent.waitReason, 'stdin_read', 'it is ready by proof, not by silence');
  assert.ok(performance.now() - began < 20_000);
  const waiting = session.startSend({ text: 'sleep 304', submit: true });
  await until('it runs', async () => (await run(shared, ['bash', '-c', 'grep -lzxE "304" /proc/[0-9]*/cmdline 2>/dev/null'], '/')).exitCode === 0);
  waiting.cancel();
  assert.equal((await waiting.done).waitReason, 'stdin_read');
  await session.close('the test is over');
});
