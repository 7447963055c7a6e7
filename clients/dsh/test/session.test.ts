import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../src/wire/fields.js';
import { type Frame } from '../src/wire/frame.js';
import { limits, toFrame, toMessage, type Message, type MessageOf, type Sending } from '../src/wire/message.js';
import type { Call } from '../src/session/requests.js';
import type { SessionEvent } from '../src/session/event.js';
import { Session, openWithinMs } from '../src/session/session.js';
import { lastingStreamsMost } from '../src/session/under_way.js';
import { deadAfterMs, pingAfterMs } from '../src/session/pulse.js';
import { chunkBytes } from '../src/session/streams.js';

/** A session of the client, and a server that says what a test tells it to. */
class Scene {
  readonly session = new Session({ client: 'test', features: ['files'], leaseSeconds: 300 });
  now = 0;
  private links = 0;

  /** Everything that is due. */
  sent(): Message[] {
    const messages: Message[] = [];
    for (let frame = this.session.next(); frame !== undefined; frame = this.session.next()) messages.push(toMessage(frame));
    return messages;
  }
  only<T extends Message['type']>(type: T): MessageOf<T>[] {
    return this.sent().filter((message): message is MessageOf<T> => message.type === type);
  }
  say(sending: Sending, more: Partial<Frame> = {}): void {
    this.session.receive({ ...toFrame(sending), ...more }, this.now);
  }
  events(): SessionEvent[] {
    return this.session.takeEvents();
  }
  welcome(resumed = false, session = 'a'.repeat(32), more: JsonObject = {}): void {
    const link = `link-${++this.links}`;
    this.say({
      type: 'welcome',
      header: {
        version: 1, link, session, resumed, instance: 'i', uid: 'u', epoch: 1, incarnation: 1, cwd: '/w', workspaceRoot: '/w',
        ceiling: 'WorkspaceWrite', leaseMs: 300_000, expiresMs: 0, features: ['files'], limits, ...more,
      },
    });
  }
  resume(receiving: unknown[] = []): void {
    this.say({ type: 'resume', header: { receiving } });
  }
  link(resumed = false, receiving: unknown[] = [], session?: string): Message[] {
    this.session.dial('token', this.now);
    const said = this.sent();
    this.welcome(resumed, session);
    said.push(...this.sent());
    this.resume(receiving);
    return said;
  }
  ask(op: string, more: Partial<Call> = {}): number {
    return this.session.underWay.ask({ op, args: {}, ...more });
  }
  reply(id: number, ok: JsonObject = {}, more: Partial<Sending> = {}): void {
    this.say({ type: 'reply', stream: id, header: { ok }, ...more });
  }
}

const bytes = (count: number, of = 7): Uint8Array => new Uint8Array(count).fill(of);

test('nothing but the resume is sent before the server has sent its own, and it names the link', () => {
  const scene = new Scene();
  scene.ask('fs.stat');
  scene.session.dial('secret', 0);
  const [hello] = scene.only('hello');
  assert.equal(hello!.token, 'secret');
  assert.deepEqual([hello!.session, hello!.uid], [undefined, undefined]);
  scene.welcome();
  const [resume, ...others] = scene.sent();
  assert.equal((resume as MessageOf<'resume'>).link, 'link-1');
  assert.deepEqual((resume as MessageOf<'resume'>).requests, []);
  assert.deepEqual(others, []);
  scene.resume();
  assert.equal(scene.only('request').length, 1);
  scene.session.dial('secret', 0);
  const [again] = scene.only('hello');
  assert.deepEqual([again!.session, again!.uid], ['a'.repeat(32), 'u'], 'into that sandbox and no other');
});

test('mutating requests are numbered, and a reply is acknowledged with the next of them or at the next tick', () => {
  const scene = new Scene();
  scene.link();
  const first = scene.ask('fs.write', { mutating: true });
  scene.ask('fs.stat');
  const second = scene.ask('fs.write', { mutating: true });
  assert.deepEqual(scene.only('request').map(({ seq }) => seq), [1, undefined, 2]);
  scene.reply(second);
  scene.session.tick(1_000);
  assert.deepEqual(scene.only('ack').map(({ through, also }) => [through, also]), [[undefined, [2]]]);
  scene.reply(first);
  scene.ask('fs.write', { mutating: true });
  assert.deepEqual(scene.only('request').map(({ seq, kept }) => [seq, kept]), [[3, 2]]);
});

test('after a cut all that is unanswered is asked again in order, with the same numbers and without payload', () => {
  const scene = new Scene();
  scene.link();
  const write = scene.ask('fs.write', { mutating: true, up: true });
  scene.session.underWay.append(write, bytes(10));
  scene.session.underWay.end(write);
  const stat = scene.ask('fs.stat');
  const before = scene.only('request');
  assert.deepEqual(before.map(({ payload, end }) => [payload.length, end]), [[10, true], [0, false]]);
  scene.session.cut();
  const said = scene.link(true);
  assert.deepEqual((said.at(-1) as MessageOf<'resume'>).requests, [write, stat]);
  const again = scene.sent();
  assert.deepEqual(again.filter(({ type }) => type === 'request').map((m) => [m.stream, m.type === 'request' && m.seq, m.payload.length]), [[write, 1, 0], [stat, undefined, 0]]);
  const data = again.filter((m): m is MessageOf<'data'> => m.type === 'data');
  assert.deepEqual(data.map(({ offset, payload, end }) => [offset, payload.length, end]), [[0, 10, true]], 'the server had not seen it');
});

test('what a cut left unsent follows what it had sent, so that no number overtakes another', () => {
  const scene = new Scene();
  scene.link();
  const sent = scene.ask('fs.write', { mutating: true });
  scene.sent();
  const unsent = scene.ask('fs.write', { mutating: true });
  scene.session.cut();
  scene.link(true);
  assert.deepEqual(scene.only('request').map(({ stream, seq }) => [stream, seq]), [[sent, 1], [unsent, 2]]);
});

test('an upload goes on where the server says, within the credit that it gives', () => {
  const scene = new Scene();
  scene.link();
  const write = scene.ask('fs.write', { mutating: true, up: true });
  const total = limits.firstBytes + 3 * chunkBytes;
  scene.session.underWay.append(write, bytes(total));
  scene.session.underWay.end(write);
  assert.equal(scene.only('request')[0]!.payload.length, limits.firstBytes);
  assert.deepEqual(scene.sent(), [], 'no credit, no data');
  scene.session.cut();
  scene.events();
  scene.link(true, [[write, 1_000, 1_000 + chunkBytes]]);
  assert.deepEqual(scene.events().map(({ what }) => what), ['welcomed', 'room'], 'whoever fills it may go on');
  const data = scene.only('data');
  assert.deepEqual(data.map(({ payload }) => payload.length), [2_048, 4_096, 8_192, 16_384, 32_768, 2_048], 'small ones first');
  assert.deepEqual([data[0]!.offset, data.at(-1)!.offset + 2_048], [1_000, 1_000 + chunkBytes]);
  scene.say({ type: 'credit', stream: write, header: { received: total, limit: total, ended: true } });
  assert.equal(scene.events().at(-1)!.what, 'closed', 'it received more than was sent');
  assert.equal(scene.only('close')[0]!.reason, 'protocol');
});

test('in a session that is new, what was sent and acts ends as unknown, and what only looks is asked again', () => {
  const scene = new Scene();
  scene.link();
  const sent = scene.ask('fs.write', { mutating: true });
  const look = scene.ask('fs.stat');
  scene.sent();
  scene.session.cut();
  const unsent = scene.ask('fs.write', { mutating: true });
  scene.link(false, [], 'b'.repeat(32));
  const failed = scene.events().filter((event) => event.what === 'failed');
  assert.deepEqual(failed.map((event) => [event.what === 'failed' && event.id, event.what === 'failed' && event.failure.code]), [[sent, 'OUTCOME_UNKNOWN']]);
  assert.deepEqual(scene.only('request').map(({ stream, seq }) => [stream, seq]), [[look, undefined], [unsent, 1]]);
});

test('streams of an answered request end as lost with their session, after what was had of them', () => {
  const scene = new Scene();
  scene.link();
  const out = scene.session.underWay.newStream();
  const spawn = scene.ask('process.spawn', { mutating: true, toClient: [out] });
  scene.sent();
  scene.reply(spawn);
  scene.say({ type: 'data', stream: out, header: { offset: 0 }, payload: bytes(5) });
  scene.session.cut();
  scene.link(false, [], 'b'.repeat(32));
  const piece = scene.session.underWay.take(out)!;
  assert.equal(piece.bytes.length, 5);
  assert.equal(piece.end, true);
  assert.equal(piece.error!.code, 'LOST');
});

test('a receiver skips what it has, and hangs up on a gap, on too much, and behind an end', () => {
  const cases: [string, number, number, boolean][] = [
    ['a gap', 11, 1, false],
    ['beyond the limit', 10, limits.streamBytes, false],
    ['an end before what came', 2, 3, true],
  ];
  for (const [name, offset, count, end] of cases) {
    const scene = new Scene();
    scene.link();
    const out = scene.session.underWay.newStream();
    scene.ask('x', { toClient: [out] });
    scene.sent();
    scene.say({ type: 'data', stream: out, header: { offset: 0 }, payload: bytes(10) });
    scene.say({ type: 'data', stream: out, header: { offset: 5 }, payload: bytes(5) });
    assert.equal(scene.session.open, true);
    for (let at = offset, left = count; left > 0; ) {
      const now = Math.min(left, 256 << 10);
      scene.say({ type: 'data', stream: out, header: { offset: at }, payload: bytes(now), end: end && left === now });
      at += now;
      left -= now;
    }
    assert.equal(scene.session.over, true, name);
  }
});

test('credit is sent when half of what was granted is used and read, and END counts by a credit that says so', () => {
  const scene = new Scene();
  scene.link();
  const out = scene.session.underWay.newStream();
  scene.ask('x', { toClient: [out] });
  assert.equal(scene.only('request')[0]!.streams[0]!.limit, limits.streamBytes);
  const push = (offset: number, end = false): void => scene.say({ type: 'data', stream: out, header: { offset }, payload: bytes(limits.streamBytes / 4), end });
  push(0);
  push(limits.streamBytes / 4);
  assert.deepEqual(scene.only('credit'), [], 'nothing of it was read');
  scene.session.underWay.take(out);
  assert.deepEqual(scene.only('credit'), []);
  scene.session.underWay.take(out);
  assert.deepEqual(scene.only('credit').map(({ received, limit }) => [received, limit]), [[limits.streamBytes / 2, limits.streamBytes * 1.5]]);
  push(limits.streamBytes / 2, true);
  assert.equal(scene.only('credit')[0]!.ended, true);
});

test('what was let go of a mirror shows in the offset, and is answered with new credit', () => {
  const scene = new Scene();
  scene.link();
  const out = scene.session.underWay.newStream();
  scene.ask('x', { toClient: [out] });
  scene.sent();
  scene.say({ type: 'data', stream: out, header: { offset: 1_000_000_000 } }, { dropped: true });
  assert.equal(scene.session.underWay.take(out), undefined, 'there is nothing to read of it');
  assert.deepEqual(scene.only('credit').map(({ received, limit }) => [received, limit - received]), [[1_000_000_000, limits.streamBytes]]);
  scene.say({ type: 'data', stream: out, header: { offset: 1_000_000_000 }, payload: bytes(3) });
  assert.equal(scene.session.underWay.take(out)!.offset, 1_000_000_000);
});

test('a request that only looks is given up at once; one that acts says what became of it', () => {
  const scene = new Scene();
  scene.link();
  const look = scene.ask('fs.readText', { down: true });
  const act = scene.ask('fs.write', { mutating: true });
  scene.sent();
  scene.session.underWay.cancel(look);
  scene.session.underWay.cancel(act);
  assert.deepEqual(scene.events().filter(({ what }) => what === 'failed').length, 1);
  assert.deepEqual(scene.only('cancel').map(({ stream }) => stream), [look, act]);
  scene.reply(act, { version: 'v' });
  assert.deepEqual(scene.events().map(({ what }) => what), ['answered']);
});

test('what is given up is told before more is asked', () => {
  const scene = new Scene();
  scene.link();
  const running = scene.ask('fs.readBytes', { down: true });
  const looked = scene.ask('fs.stat');
  scene.sent();
  scene.reply(running);
  scene.session.underWay.stop(running);
  scene.session.underWay.cancel(looked);
  const asked = scene.ask('fs.stat');
  assert.deepEqual(scene.sent().map((message) => [message.type, 'stream' in message && message.stream]), [['cancel', looked], ['stop', running], ['request', asked]]);
});

test('of a stream the server hears once it knows it', () => {
  const scene = new Scene();
  scene.link();
  scene.welcome(true, undefined, { limits: { ...limits, requests: 1 } });
  scene.sent();
  scene.resume();
  const before = scene.ask('fs.stat');
  const [stdin, stdout] = [scene.session.underWay.newStream(), scene.session.underWay.newStream()];
  const spawned = scene.ask('process.spawn', { mutating: true, toServer: [stdin], toClient: [stdout] });
  scene.session.underWay.end(stdin);
  scene.session.underWay.stop(stdout);
  assert.ok(!scene.sent().some(({ type }) => type === 'data'));
  scene.reply(before);
  assert.deepEqual(scene.sent().map((message) => [message.type, 'stream' in message && message.stream]), [['request', spawned], ['stop', stdout], ['data', stdin]]);
});

test('a session that another executor has is not gone on with', () => {
  const scene = new Scene();
  scene.link();
  scene.ask('fs.write', { mutating: true });
  scene.sent();
  scene.session.cut();
  scene.session.dial('token', 0);
  scene.sent();
  scene.welcome(true, undefined, { instance: 'another' });
  assert.deepEqual(scene.sent().map(({ type }) => type), ['close']);
  assert.ok(scene.session.over);
});

test('a welcome on an open link begins a new one, and nothing goes out before its resume', () => {
  const scene = new Scene();
  scene.link();
  const look = scene.ask('fs.stat');
  scene.sent();
  scene.welcome(true);
  assert.deepEqual(scene.sent().map(({ type }) => type), ['resume']);
  scene.resume();
  assert.deepEqual(scene.only('request').map(({ stream }) => stream), [look]);
});

test('no more requests are under way, and no more replies unacknowledged, than the server keeps', () => {
  const scene = new Scene();
  scene.link();
  for (let i = 0; i < limits.requests; i++) scene.ask('fs.write', { mutating: true });
  assert.equal(scene.session.underWay.hasRoomFor({ op: 'fs.stat', args: {} }), false);
  assert.throws(() => scene.ask('fs.stat'), /too many requests/);
  const requests = scene.only('request');
  assert.equal(requests.length, limits.requests);
  scene.reply(requests.at(-1)!.stream);
  scene.ask('fs.write', { mutating: true });
  const sent = scene.sent();
  assert.deepEqual(sent.map(({ type }) => type), ['ack', 'request'], 'what it acknowledges makes room');
});

test('processes have so many streams that there is always room for what is short', () => {
  const scene = new Scene();
  scene.link();
  const streams = (): number[] => [scene.session.underWay.newStream(), scene.session.underWay.newStream()];
  for (let i = 0; i < lastingStreamsMost / 2; i++) {
    const spawn = scene.ask('process.spawn', { mutating: true, toClient: streams() });
    scene.sent();
    scene.reply(spawn);
  }
  assert.throws(() => scene.ask('process.spawn', { mutating: true, toClient: streams() }), /more than 320 streams/);
  assert.equal(scene.session.underWay.streamsOpen, lastingStreamsMost);
  let short = 0;
  for (const call = { op: 'fs.write', args: {}, mutating: true, up: true, down: true }; scene.session.underWay.hasRoomFor(call); short++) scene.session.underWay.ask(call);
  assert.ok(short >= 60, `${short}`);
  assert.ok(scene.session.underWay.streamsOpen <= limits.streams);
});

test('a silent link is asked, and hung up when it does not answer; a slow handshake too', () => {
  const scene = new Scene();
  scene.link();
  scene.session.tick(pingAfterMs);
  assert.deepEqual(scene.only('ping').length, 1);
  scene.session.tick(deadAfterMs);
  assert.equal(scene.only('close')[0]!.reason, 'silent');
  const slow = new Scene();
  slow.session.dial(undefined, 0);
  slow.sent();
  slow.session.tick(openWithinMs);
  assert.equal(slow.only('close')[0]!.reason, 'silent');
});

test('a notice is heard once and acknowledged, also when it is told again on the next link', () => {
  const scene = new Scene();
  scene.link();
  const notice = { type: 'notice', header: { number: 3, kind: 'restored', message: 'from a snapshot' } } as const;
  scene.say(notice);
  scene.say(notice);
  assert.equal(scene.events().filter(({ what }) => what === 'noticed').length, 1);
  scene.session.tick(1_000);
  assert.equal(scene.only('ack')[0]!.notices, 3);
  scene.session.cut();
  scene.link(true);
  scene.say(notice);
  assert.equal(scene.events().filter(({ what }) => what === 'noticed').length, 0);
});

test('a server that is not reached any more leaves nothing waiting', () => {
  const scene = new Scene();
  scene.link();
  const act = scene.ask('fs.write', { mutating: true });
  scene.sent();
  scene.session.cut();
  const look = scene.ask('fs.stat');
  scene.session.abandon('it is gone');
  const failed = scene.events().filter((event) => event.what === 'failed');
  assert.deepEqual(failed.map((event) => event.what === 'failed' && [event.id, event.failure.code]), [[act, 'OUTCOME_UNKNOWN'], [look, 'UNAVAILABLE']]);
  scene.session.dial('t', 0);
  assert.equal(scene.only('hello')[0]!.session, undefined);
});

test('a whole download with its reply needs no credit, and is taken to its end', () => {
  const scene = new Scene();
  scene.link();
  const read = scene.ask('fs.readText', { down: true });
  scene.sent();
  scene.reply(read, {}, { payload: bytes(4), end: true });
  const piece = scene.session.underWay.take(read)!;
  assert.deepEqual([piece.bytes.length, piece.end], [4, true]);
  assert.deepEqual(scene.sent(), []);
  assert.equal(scene.session.underWay.streamsOpen, 0);
  assert.equal(scene.session.underWay.take(read), undefined);
});

