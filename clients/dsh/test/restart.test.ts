import assert from 'node:assert/strict';
import { spawn as spawnHere, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { harness, run, until } from './chain.js';

// agentd itself comes and goes; what it carries does not notice.

const argv = JSON.parse(process.env.SANDFLEET_AGENTD_ARGV!) as [string, ...string[]];

const answers = (socket: string): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = net.connect(socket, () => resolve(true)).on('error', () => resolve(false));
    probe.once('connect', () => probe.destroy());
  });

async function startAgentd(socket: string): Promise<ChildProcess> {
  const started = spawnHere(argv[0], [...argv.slice(1), '--socket', socket], { stdio: 'ignore' });
  await until('agentd listens', () => answers(socket));
  return started;
}

async function kill(agentd: ChildProcess): Promise<void> {
  const gone = once(agentd, 'exit');
  agentd.kill('SIGKILL');
  await gone;
}

test('agentd is killed and started anew, while a command runs, a file is written and a stream is read', async () => { // covers: 4.7 O1 X4
  const folder = await mkdtemp(join(tmpdir(), 'agentd-'));
  const socket = join(folder, 's');
  let agentd = await startAgentd(socket);
  const shared = await harness({ socket });
  try {
    const { fs, subprocess, cwd, remote } = shared;
    const handle = subprocess.spawn({
      argv: ['bash', '-c', 'for i in $(seq 1 60); do seq 1 2000; sleep 0.02; done'], cwd, graceMs: 10_000,
      stdio: { stdin: 'ignore', stdout: 'pipe', stderr: { maxBytes: 100 } },
    });
    let bytes = 0;
    const read = (async () => {
      for await (const part of handle.stdout!) bytes += (part as Buffer).length;
    })();
    const target = await fs.resolve('written', { cwd });
    for (let i = 0; i < 3; i++) {
      await until('more was read', () => bytes > i * 100_000);
      await kill(agentd);
      const written = fs.writeText(target, `${i}`, i === 0 ? { kind: 'createIfAbsent' } : undefined);
      agentd = await startAgentd(socket);
      assert.equal((await written).after, `${i}`);
    }
    await read;
    assert.deepEqual(await handle.done, { exitCode: 0, signal: null });
    assert.equal(bytes, 60 * 8_893);
    assert.equal((await run(shared, ['cat', 'written'], cwd)).stdout, '2');
    assert.equal(remote.consumeRecoveryNotice(), undefined, 'nothing of note has happened');
  } finally {
    await shared.dispose();
    await kill(agentd);
    await rm(folder, { recursive: true });
  }
});

test('an entry that leads nowhere fails to load and says where it led', async () => {
  await assert.rejects(harness({ socket: '/nowhere/agentd.sock', leaseMs: 1_000 }), /\/nowhere\/agentd.sock/);
});
