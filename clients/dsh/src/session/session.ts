import type { JsonObject } from '../wire/fields.js';
import { ProtocolError, type Frame } from '../wire/frame.js';
import {
  limits, toFrame, toMessage, type Close, type CloseReason, type Failure, type FailureCode, type Message, type MessageOf,
  type Notice, type Sending, type Welcome,
} from '../wire/message.js';
import { RemoteFailure, failure } from './failure.js';
import { Incoming, type Piece } from './incoming.js';
import { Outgoing } from './outgoing.js';
import { Pulse } from './pulse.js';
import { Requests, headerOf, streamsOf, type Call, type Waiting } from './requests.js';
import { Streams } from './streams.js';
import { Window } from './window.js';

export const openWithinMs = 15_000; // From dialling to the server's resume.
export const lastingStreamsMost = 320; // So that what is short always finds room.
const argsBytesMax = (1 << 20) - (64 << 10);

export interface SessionSettings {
  client: string; // For the server's log.
  features: string[];
  sandbox?: { namespace: string; name: string } | undefined;
  leaseSeconds: number;
}

export type SessionEvent =
  | { what: 'welcomed'; welcome: Welcome }
  | { what: 'answered'; id: number; ok: JsonObject } // Its download, if any, may go on.
  | { what: 'failed'; id: number; failure: Failure } // Its streams have ended.
  | { what: 'arrived'; stream: number } // There is something to take.
  | { what: 'room'; stream: number }
  | { what: 'unwanted'; stream: number }
  | { what: 'noticed'; notice: Notice }
  | { what: 'renewed'; expiresMs: number }
  | { what: 'closed'; close: Close }; // By the server, or by this side because of what the server did.

const refused = (code: FailureCode, why: string): RemoteFailure => new RemoteFailure(failure(code, why));

/**
 * A session across links: what was asked and how far it came, so that after a cut each request is
 * asked again that may be, and each stream goes on where it was. Pure: frames and times in, events
 * and frames out. One link at a time: dial, receive and next, then cut.
 */
export class Session {
  private readonly streams = new Streams();
  private readonly requests = new Requests();
  private readonly window = new Window();
  private readonly lasting = new Set<number>(); // Streams that may outlive their request's reply for long.
  private events: SessionEvent[] = [];
  private lastId = 0;

  // The session.
  private session: string | undefined;
  private uid: string | undefined; // A name may pass to another sandbox.
  private instance: string | undefined; // The executor that has it.
  private limits = limits;

  // The link.
  private phase: 'down' | 'dialled' | 'welcomed' | 'open' = 'down';
  private link = '';
  private dialledAt = 0;
  private pulse = new Pulse(0);
  private first: Sending | undefined; // A hello, or a renewal.
  private last: Sending | undefined; // A close.
  private resumeDue = false;
  private pingDue = false;
  private pongDue = false;

  constructor(private readonly settings: SessionSettings) {}

  /** Once next() has nothing more, hang up. */
  get over(): boolean {
    return this.phase === 'down';
  }
  get open(): boolean {
    return this.phase === 'open';
  }
  /** Whether it can be asked now; else when something else has ended. */
  hasRoomFor(call: Call): boolean {
    // The server may count the uploads of what it has not answered for longer.
    const streams = this.streams.size + this.requests.size + streamsOf(call) + 1;
    return this.requests.size < limits.requests && streams <= limits.streams;
  }
  get streamsOpen(): number {
    return this.streams.size;
  }

  // Links.

  dial(token: string | undefined, now: number): void {
    this.cut();
    this.phase = 'dialled';
    this.dialledAt = now;
    this.pulse = new Pulse(now);
    this.last = undefined;
    const { session, uid } = this;
    const { client, features, sandbox, leaseSeconds } = this.settings;
    const header = { protocol: { min: 1, max: 1 }, client, features, sandbox, uid, session, leaseSeconds, token };
    this.first = { type: 'hello', header };
  }

  renew(token: string): void {
    if (this.open) this.first = { type: 'renew', header: { token } };
  }

  /** The link was lost. */
  cut(): void {
    this.phase = 'down';
    this.beginLink();
  }

  /** The session ends, and with it what it has begun. */
  finish(): void {
    const had = this.phase !== 'down';
    this.cut();
    if (had) this.last = { type: 'close', header: { reason: 'end', message: '' } };
  }

  /** The server is not reached any more: nothing goes on, and the next link begins anew. */
  abandon(why: string): void {
    this.session = undefined;
    this.beginSession((sent) => failure(sent ? 'OUTCOME_UNKNOWN' : 'UNAVAILABLE', why), 'UNAVAILABLE', why);
    for (const [id] of this.requests.all) this.fail(id, failure('UNAVAILABLE', why));
  }

  tick(now: number): void {
    if (this.phase === 'down') return;
    this.window.due = true;
    if (this.pulse.dead(now) || (!this.open && now - this.dialledAt >= openWithinMs)) {
      return this.close('silent', 'nothing was heard of the server');
    }
    if (this.open && this.pulse.ask(now)) this.pingDue = true;
  }

  receive(frame: Frame, now: number): void {
    if (this.phase === 'down') return;
    this.pulse.heard(now);
    try {
      this.receiveMessage(toMessage(frame));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.close('protocol', error.message);
    }
  }

  /** What came is no frame at all. */
  refuse(why: string): void {
    if (this.phase !== 'down') this.close('protocol', why);
  }

  next(): Frame | undefined {
    const due = this.last ?? (this.phase === 'down' ? undefined : this.nextSending());
    this.last = undefined;
    return due && toFrame(due);
  }

  takeEvents(): SessionEvent[] {
    const events = this.events;
    this.events = [];
    return events;
  }

  // Requests.

  newStream(): number {
    return ++this.lastId;
  }

  /** Throws RemoteFailure: there is no room for it, or it is too long for a frame. */
  ask(call: Call): number {
    const { toClient = [], toServer = [] } = call;
    if (!this.hasRoomFor(call)) throw refused('BUSY', 'too many requests wait for their replies');
    if (this.lastingStreams + toClient.length + toServer.length > lastingStreamsMost) {
      throw refused('BUSY', `more than ${lastingStreamsMost} streams of processes would be open`);
    }
    if (Buffer.byteLength(JSON.stringify(call.args)) > argsBytesMax) throw refused('INVALID', 'the request is longer than a frame');
    const id = ++this.lastId;
    if (call.up) this.streams.outgoing.set(id, new Outgoing(limits.firstBytes));
    if (call.down) this.streams.incoming.set(id, new Incoming());
    for (const stream of toServer) this.streams.outgoing.set(stream, new Outgoing(0));
    for (const stream of toClient) this.streams.incoming.set(stream, new Incoming());
    for (const stream of [...toServer, ...toClient]) this.lasting.add(stream);
    this.requests.add(id, call);
    return id;
  }

  private get lastingStreams(): number {
    for (const id of this.lasting) {
      if (!this.streams.outgoing.has(id) && !this.streams.incoming.has(id)) this.lasting.delete(id);
    }
    return this.lasting.size;
  }

  cancel(id: number): void {
    const waiting = this.requests.get(id);
    if (waiting === undefined) return;
    this.requests.cancel(id);
    if (waiting.seq !== undefined) {
      waiting.cancelled = true; // Its reply tells what became of it.
      return;
    }
    this.streams.stop(id); // Should it have been answered meanwhile.
    this.fail(id, failure('CANCELLED', 'it was cancelled'));
  }

  // Streams, a request's own by its id.

  room(stream: number): number {
    return this.streams.room(stream);
  }
  append(stream: number, bytes: Uint8Array): void {
    this.streams.outgoing.get(stream)?.append(bytes);
  }
  /** How much so far, where it is still wanted. */
  appended(stream: number): number {
    return this.streams.outgoing.get(stream)?.appended ?? 0;
  }
  end(stream: number): void {
    this.streams.outgoing.get(stream)?.end();
  }
  take(stream: number): Piece | undefined {
    return this.streams.take(stream);
  }
  stop(stream: number): void {
    this.streams.stop(stream);
  }

  // What is true of one link only begins.
  private beginLink(): void {
    this.streams.cut();
    this.first = undefined;
    this.resumeDue = this.pingDue = this.pongDue = false;
    this.requests.beginLink();
    this.window.beginLink();
  }

  private close(reason: CloseReason, message: string): void {
    this.cut();
    const close: Close = { reason, message: message.slice(0, 256), retryAfterMs: undefined };
    this.last = { type: 'close', header: close };
    this.events.push({ what: 'closed', close });
  }

  private receiveMessage(message: Message): void {
    switch (message.type) {
      case 'close':
        this.cut();
        this.events.push({ what: 'closed', close: message });
        return;
      case 'welcome':
        if (this.phase !== 'dialled') this.beginLink(); // Whoever is between has dialled anew.
        return this.receiveWelcome(message);
      case 'ping':
        this.pongDue = true;
        return;
      case 'pong':
        return;
      case 'resume':
        return this.receiveResume(message);
    }
    if (!this.open) throw new ProtocolError('it did not begin with resume');
    switch (message.type) {
      case 'reply':
        return this.receiveReply(message);
      case 'data':
        if (this.streams.receiveData(message.stream, message)) this.events.push({ what: 'arrived', stream: message.stream });
        return;
      case 'credit':
        if (this.streams.receiveCredit(message)) this.events.push({ what: 'room', stream: message.stream });
        return;
      case 'stop':
        if (this.streams.receiveStop(message.stream)) this.events.push({ what: 'unwanted', stream: message.stream });
        return;
      case 'notice':
        if (this.window.hearNotice(message.number)) this.events.push({ what: 'noticed', notice: message });
        return;
      case 'renewed':
        this.events.push({ what: 'renewed', expiresMs: message.expiresMs });
        return;
      default:
        throw new ProtocolError(`a ${message.type} is not for a client`);
    }
  }

  private receiveWelcome(welcome: Welcome): void {
    const same = this.session === welcome.session && this.instance === welcome.instance;
    if (welcome.resumed && !same) throw new ProtocolError('it goes on with a session that is not this one');
    const anew = this.session !== undefined && !welcome.resumed;
    this.session = welcome.session;
    this.uid = welcome.uid;
    this.instance = welcome.instance;
    this.link = welcome.link;
    this.limits = welcome.limits;
    this.phase = 'welcomed';
    this.resumeDue = true;
    this.events.push({ what: 'welcomed', welcome });
    if (!anew) return;
    this.beginSession(
      (mutating) =>
        mutating
          ? failure('OUTCOME_UNKNOWN', 'its session was lost before the reply came')
          : failure('LOST', 'its session was lost while it was under way'),
      'LOST',
      'its session was lost',
    );
  }

  // The old session is gone, and what comes knows nothing of it. `judge` says what those become that cannot be asked again.
  private beginSession(judge: (mutating: boolean) => Failure, code: FailureCode, why: string): void {
    this.window.beginSession();
    for (const [id, waiting] of this.requests.all) {
      waiting.sent = false;
      const begun = this.streams.incoming.get(id)?.untouched === false || this.streams.outgoing.get(id)?.untouched === false;
      if (waiting.seq !== undefined || begun) this.fail(id, judge(waiting.seq !== undefined));
    }
    const first = this.firstCredit();
    for (const [id, stream] of [...this.streams.outgoing]) {
      const limit = first.get(id);
      if (limit !== undefined) stream.restart(limit);
      else this.forgetOutgoing(id);
    }
    for (const [id, stream] of this.streams.incoming) {
      if (first.has(id)) {
        this.streams.incoming.set(id, new Incoming());
      } else if (!stream.ended) {
        stream.breakOff(failure(code, why));
        this.events.push({ what: 'arrived', stream: id });
      }
    }
  }

  private get firstBytes(): number {
    return Math.min(this.limits.firstBytes, limits.firstBytes);
  }

  /** Of the streams of all that waits for a reply: what may be sent of each before the server says so. */
  private firstCredit(): Map<number, number> {
    const first = new Map<number, number>();
    for (const [id, { call }] of this.requests.all) {
      first.set(id, this.firstBytes);
      for (const stream of [...(call.toServer ?? []), ...(call.toClient ?? [])]) first.set(stream, 0);
    }
    return first;
  }

  private receiveResume(resume: MessageOf<'resume'>): void {
    if (this.phase !== 'welcomed') throw new ProtocolError('it resumed twice');
    this.phase = 'open';
    const named = new Map(resume.receiving.map((row) => [row[0], row]));
    const first = this.firstCredit();
    for (const [id, stream] of [...this.streams.outgoing]) {
      const row = named.get(id);
      const unseen = first.get(id);
      if (row !== undefined) {
        stream.goOn(row[1], row[2], row[3] ?? false);
        if (stream.done) this.forgetOutgoing(id);
        else this.events.push({ what: 'room', stream: id }); // What was received meanwhile is held no more.
      } else if (unseen === undefined) {
        this.forgetOutgoing(id);
      } else if (stream.untouched) {
        stream.restart(unseen);
      } // Else the reply is on its way, and nobody needs the rest.
    }
  }

  private forgetOutgoing(id: number): void {
    this.streams.outgoing.delete(id);
    this.events.push({ what: 'unwanted', stream: id });
  }

  private receiveReply({ stream: id, ok, error, payload, end }: MessageOf<'reply'>): void {
    const waiting = this.requests.get(id);
    if (waiting === undefined) return; // Again, or given up.
    if (error !== undefined) {
      this.fail(id, error);
      if (waiting.seq !== undefined && error.code === 'OUT_OF_SEQUENCE') throw new ProtocolError('it lost count of requests');
    } else {
      this.requests.remove(id);
      this.streams.outgoing.delete(id);
      this.events.push({ what: 'answered', id, ok: ok ?? {} });
      const download = this.streams.incoming.get(id);
      if (download !== undefined) {
        // A whole one needs no credit.
        if (end || payload.length > 0) download.receive({ offset: 0, payload, end, dropped: false, error: undefined });
        if (end) download.endIsKnown();
        this.streams.creditDue(id);
        this.events.push({ what: 'arrived', stream: id });
      }
    }
    if (waiting.seq !== undefined) this.window.answered(waiting.seq);
  }

  private fail(id: number, why: Failure): void {
    const { toClient = [], toServer = [] } = this.requests.get(id)!.call;
    for (const stream of [id, ...toServer]) this.streams.outgoing.delete(stream);
    for (const stream of [id, ...toClient]) this.streams.forgetIncoming(stream);
    this.requests.remove(id);
    this.events.push({ what: 'failed', id, failure: why });
  }

  // Answers and acknowledgements go before requests, requests before data. What is given up makes room for what is asked.
  private nextSending(): Sending | undefined {
    if (this.first !== undefined) {
      const first = this.first;
      this.first = undefined;
      return first;
    }
    if (this.resumeDue) {
      this.resumeDue = false;
      return this.resume();
    }
    if (!this.open) return undefined;
    if (this.pongDue) {
      this.pongDue = false;
      return { type: 'pong' };
    }
    if (this.pingDue) {
      this.pingDue = false;
      return { type: 'ping' };
    }
    return (
      this.nextAck() ??
      this.nextCancel() ??
      this.streams.nextStop() ??
      this.nextRequest() ??
      this.streams.next((id) => !this.requests.hasUnsent(id))
    );
  }

  private resume(): Sending {
    return { type: 'resume', header: { link: this.link, requests: this.requests.sent, receiving: this.streams.state() } };
  }

  private nextAck(): Sending | undefined {
    const header = this.window.acknowledgement();
    return header && { type: 'ack', header };
  }

  private nextCancel(): Sending | undefined {
    const stream = this.requests.nextCancel();
    return stream === undefined ? undefined : { type: 'cancel', stream };
  }

  private nextRequest(): Sending | undefined {
    const first = this.requests.takeFirst((waiting) => {
      const fits = this.fitsTheWindow(waiting);
      if (!fits) this.window.due = true; // What there is to be acknowledged makes room.
      return fits;
    });
    return first && this.toRequest(...first);
  }

  private fitsTheWindow({ call, seq }: Waiting): boolean {
    if (this.requests.underWay >= this.limits.requests) return false;
    return !call.mutating || seq !== undefined || this.window.hasRoom(this.limits.replies);
  }

  private toRequest(id: number, waiting: Waiting): Sending {
    const { call } = waiting;
    const header = headerOf(call);
    if (call.mutating) {
      header.seq = waiting.seq ??= this.window.nextNumber();
      const kept = this.window.kept();
      if (kept !== undefined) header.kept = kept;
    }
    if (call.down) header.down = this.streams.limitOf(id);
    const further = [
      ...(call.toClient ?? []).map((stream) => ({ id: stream, limit: this.streams.limitOf(stream) })),
      ...(call.toServer ?? []).map((stream) => ({ id: stream })),
    ];
    if (further.length > 0) header.streams = further;
    const sending: Sending = { type: 'request', stream: id, header };
    const upload = this.streams.outgoing.get(id);
    if (!waiting.sent && upload !== undefined) {
      upload.restart(this.firstBytes);
      if (upload.mayBegin) {
        const { payload, end } = upload.next(this.streams.nextChunk());
        Object.assign(sending, { payload, end });
      }
    }
    waiting.sent = true;
    if (waiting.cancelled) this.requests.cancel(id);
    // What was given up before it was asked for.
    for (const stream of [...(call.toClient ?? []), ...(call.down ? [id] : [])]) this.streams.stopIfGone(stream);
    return sending;
  }
}
