import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Connection } from '../src/link/connection.js';
import { Mirror } from '../src/subprocess/mirror.js';
import { readablePipe, writablePipe } from '../src/subprocess/pipes.js';

const push = (mirror: Mirror, text: string | Buffer): void => mirror.push(mirror.total, Buffer.from(text as string));

test('exactly the last bytes are kept, and as many as that have lost nothing', () => { // covers: O1 O2
  const mirror = new Mirror(5);
  push(mirror, 'abcde');
  assert.deepEqual(mirror.readFrom(0), { text: 'abcde', nextOffset: 5, lossy: false });
  push(mirror, 'f');
  assert.deepEqual(mirror.readFrom(0), { text: 'bcdef', nextOffset: 6, lossy: true });
  assert.deepEqual(mirror.readFrom(1), { text: 'bcdef', nextOffset: 6, lossy: false });
  assert.deepEqual(mirror.readFrom(6), { text: '', nextOffset: 6, lossy: false });
  assert.deepEqual(mirror.readFrom(99), { text: '', nextOffset: 6, lossy: false });
  push(mirror, 'x'.repeat(100));
  assert.deepEqual(mirror.readFrom(0), { text: 'xxxxx', nextOffset: 106, lossy: true });
});

test('readers of one output do not see each other', () => { // covers: O1
  const mirror = new Mirror(100);
  push(mirror, 'one');
  const first = mirror.readFrom(0);
  push(mirror, 'two');
  assert.equal(mirror.readFrom(first.nextOffset).text, 'two');
  assert.equal(mirror.readFrom(0).text, 'onetwo');
});

test('what was let go on the way empties the tail, and the rest is of its own offset', () => { // covers: O2 O5
  const mirror = new Mirror(4);
  push(mirror, 'abc');
  mirror.push(1_000, Buffer.from('yz'));
  assert.deepEqual(mirror.readFrom(3), { text: 'yz', nextOffset: 1_002, lossy: true });
});

test('a code point that is not whole yet is read when it is, and shows as broken at the end', () => { // covers: O4
  const mirror = new Mirror(100);
  const euro = Buffer.from('€');
  push(mirror, Buffer.concat([Buffer.from('a'), euro.subarray(0, 2)]));
  assert.deepEqual(mirror.readFrom(0), { text: 'a', nextOffset: 1, lossy: false });
  push(mirror, euro.subarray(2));
  assert.deepEqual(mirror.readFrom(1), { text: '€', nextOffset: 4, lossy: false });
  push(mirror, euro.subarray(0, 1));
  mirror.end();
  assert.deepEqual(mirror.readFrom(4), { text: '\ufffd', nextOffset: 5, lossy: false });
});

test('a tail that begins within a code point does not show the rest of it', () => { // covers: O4
  const mirror = new Mirror(4);
  push(mirror, '€€');
  assert.deepEqual(mirror.readFrom(0), { text: '€', nextOffset: 6, lossy: true });
});

test('bytes that are no text do not hold back what follows', () => {
  const mirror = new Mirror(100);
  push(mirror, Buffer.from([0x80, 0x80, 0x80, 0x80, 0x41]));
  assert.equal(mirror.readFrom(0).nextOffset, 5);
});

test('a mirror keeps its bound however small the pieces are, and none but its own memory alive', async () => { // covers: O5
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const mirror = new Mirror(1_000);
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 200; i++) mirror.push(mirror.total, Buffer.alloc(1 << 20, 'x').subarray(i, i + 3));
  for (let tries = 0; process.memoryUsage().arrayBuffers - before > 8 << 20; tries++) { // Of each mebibyte three bytes are kept.
    assert.ok(tries < 100);
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual([mirror.readFrom(0).text.length, mirror.total], [600, 600]);
});

test('a mirror of nothing tells how much there was', () => {
  const mirror = new Mirror(0);
  push(mirror, 'abc');
  assert.deepEqual(mirror.readFrom(0), { text: '', nextOffset: 3, lossy: true });
});

test('a stream that breaks off with nobody to hear of it ends no harness, and whoever reads on hears of it', async () => {
  let arrived = (): void => {};
  let unwanted = (): void => {};
  const lost = { offset: 0, bytes: new Uint8Array(), end: true, error: { code: 'LOST', message: 'its session was lost' } };
  const connection = {
    take: () => lost,
    stop: () => {},
    end: () => {},
    room: () => 0,
    append: () => {},
    use: (_stream: number, user: { arrived?: () => void; unwanted?: () => void }) => {
      arrived = user.arrived ?? arrived;
      unwanted = user.unwanted ?? unwanted;
    },
  } as unknown as Connection;

  const unheard = readablePipe(connection, 1).on('data', () => {}); // Nobody listens for errors.
  arrived();
  await new Promise((resolve) => unheard.on('close', resolve)); // An error that was nobody's would have ended this process.
  assert.match(String(unheard.errored), /its session was lost/);

  const read = readablePipe(connection, 2);
  await assert.rejects(async () => {
    for await (const _ of read);
  }, /its session was lost/);

  const written = writablePipe(connection, 3);
  const wrote = new Promise((resolve) => written.write('more', resolve));
  unwanted();
  assert.match(String(await wrote), /EPIPE/);
});
