import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { FrameReader, ProtocolError, decodeFrame, encodeFrame, headerBytesMax, payloadBytesMax, type Frame, type FrameType } from '../src/wire/frame.js';
import { limits, toFrame, toMessage } from '../src/wire/message.js';
import { nameFromBytes, nameFromWire, nameToBytes, nameToShow, nameToWire } from '../src/wire/name.js';

interface Vectors {
  frames: { name: string; bytes: string; means: { type: FrameType; header: object; stream?: number; payload?: string; end?: boolean; dropped?: boolean } }[];
  skipped: { name: string; bytes: string }[];
  refused: { name: string; by: 'frame' | 'message'; bytes: string }[];
  names: { name: string; json: string | { b64: string }; bytes: string }[];
}
const vectors = JSON.parse(readFileSync(process.env.SANDFLEET_VECTORS!, 'utf8')) as Vectors;
const bytesOf = (hex: string): Buffer => Buffer.from(hex, 'hex');

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => [k, sorted(v)]));
};

for (const { name, bytes, means } of vectors.frames) {
  test(`the frame ${name} means what the vectors say, and is written as they stand`, () => {
    const frame = decodeFrame(bytesOf(bytes))!;
    assert.equal(frame.type, means.type);
    assert.equal(frame.stream, means.stream ?? 0);
    assert.equal(frame.end, means.end ?? false);
    assert.equal(frame.dropped, means.dropped ?? false);
    assert.equal(Buffer.from(frame.payload).toString('hex'), means.payload ?? '');
    const header = Buffer.from(frame.header).toString() || '{}';
    assert.deepEqual(JSON.parse(header), means.header);
    toMessage(frame);
    const again: Frame = { ...toFrame({ type: means.type, header: sorted(means.header) as object as never }), stream: means.stream ?? 0, end: means.end ?? false, dropped: means.dropped ?? false, payload: frame.payload };
    assert.equal(Buffer.from(encodeFrame(again)).toString('hex'), bytes);
  });
}

for (const { name, bytes } of vectors.skipped) {
  test(`the frame ${name} is skipped`, () => assert.equal(decodeFrame(bytesOf(bytes)), undefined));
}

for (const { name, by, bytes } of vectors.refused) {
  test(`${name} is refused by the ${by}`, () => {
    const read = (): unknown => toMessage(decodeFrame(bytesOf(bytes))!);
    assert.throws(read, ProtocolError);
  });
}

for (const { name, json, bytes } of vectors.names) {
  test(`the name ${name} is those bytes, there and back`, () => {
    assert.equal(Buffer.from(nameToBytes(nameFromWire(json))).toString('hex'), bytes);
    assert.deepEqual(nameToWire(nameFromBytes(bytesOf(bytes))), json);
    assert.ok(!nameToShow(nameFromWire(json)).includes('\0'));
  });
}

test('frames that come in pieces of any size are the same frames', () => {
  const whole = Buffer.concat([...vectors.frames, ...vectors.skipped].map(({ bytes }) => bytesOf(bytes)));
  for (const size of [1, 7, 64, whole.length]) {
    const reader = new FrameReader();
    let seen = 0;
    for (let at = 0; at < whole.length; at += size) {
      reader.add(whole.subarray(at, at + size));
      while (reader.next() !== undefined) seen++;
    }
    assert.equal(seen, vectors.frames.length, `pieces of ${size}`);
  }
});

test('the largest frame is taken, and one byte more is refused before it came', () => {
  const header = Buffer.from(JSON.stringify({ op: 'x', args: { a: 'x'.repeat(headerBytesMax - 26) } }));
  assert.equal(header.length, headerBytesMax);
  const frame: Frame = { type: 'data', stream: 1, end: false, dropped: false, header, payload: new Uint8Array(payloadBytesMax) };
  const bytes = Buffer.from(encodeFrame(frame));
  const reader = new FrameReader();
  reader.add(bytes);
  assert.equal(reader.next()!.payload.length, payloadBytesMax);
  assert.throws(() => encodeFrame({ ...frame, payload: new Uint8Array(payloadBytesMax + 1) }), RangeError);
  bytes.writeUInt32BE(bytes.readUInt32BE(0) + 1, 0);
  reader.add(bytes.subarray(0, 4));
  assert.throws(() => reader.next(), ProtocolError);
});

test('a header that would become much more is refused before it is parsed', () => {
  const data = (header: string): Frame => ({ type: 'request', stream: 1, end: false, dropped: false, header: Buffer.from(header), payload: new Uint8Array(0) });
  const args = (inner: string): string => `{"op":"x","args":{"a":${inner}}}`;
  toMessage(data(args(`[${'1,'.repeat(65_000)}1]`)));
  assert.throws(() => toMessage(data(args(`[${'1,'.repeat(66_000)}1]`))), /too deep or holds too many/);
  toMessage(data(args('['.repeat(14) + ']'.repeat(14))));
  assert.throws(() => toMessage(data(args('['.repeat(15) + ']'.repeat(15)))), /too deep or holds too many/);
  toMessage(data(args(JSON.stringify('[{,'.repeat(66_000)))));
});

test('a message says its limit when it is broken', () => {
  const frame = toFrame({ type: 'credit', stream: 1, header: { received: -1, limit: 2 } });
  assert.throws(() => toMessage(frame), /credit refused: "received": it must be a whole number from 0/);
  const first = toFrame({ type: 'request', stream: 1, header: { op: 'fs.write', args: {}, up: true }, payload: new Uint8Array(limits.firstBytes + 1) });
  assert.throws(() => toMessage(first), /first bytes/);
});
