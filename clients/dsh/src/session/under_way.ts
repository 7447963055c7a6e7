import { ProtocolError } from '../wire/frame.js';
import { limits, type Failure, type FailureCode, type MessageOf, type Receiving, type Sending } from '../wire/message.js';
import type { SessionEvent } from './event.js';
import { RemoteFailure, failure } from './failure.js';
import { Incoming, type Piece } from './incoming.js';
import { Outgoing } from './outgoing.js';
import { Requests, headerOf, streamsOf, type Call, type Waiting } from './requests.js';
import { Streams } from './streams.js';
import { Window } from './window.js';

export const lastingStreamsMost = 320; // So that what is short always finds room.
const argsBytesMax = (1 << 20) - (64 << 10);

const refused = (code: FailureCode, why: string): RemoteFailure => new RemoteFailure(failure(code, why));

/** What was asked in a session, its streams, and how far all of it came: that is what outlives a link. */
export class UnderWay {
  private readonly streams = new Streams();
  private readonly requests = new Requests();
  private readonly window = new Window();
  private readonly lasting = new Set<number>(); // Streams that may outlive their request's reply for long.
  private lastId = 0;
  private serverLimits: typeof limits = limits;

  constructor(private readonly tell: (event: SessionEvent) => void) {}

  /** Whether it can be asked now; else when something else has ended. */
  hasRoomFor(call: Call): boolean {
    // The server may count the uploads of what it has not answered for longer.
    const streams = this.streams.size + this.requests.size + streamsOf(call) + 1;
    return this.requests.size < limits.requests && streams <= limits.streams;
  }
  get streamsOpen(): number {
    return this.streams.size;
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

  // Links and sessions.

  beginLink(): void {
    this.streams.cut();
    this.requests.beginLink();
    this.window.beginLink();
  }

  /** A server has let it in, and bears so much. */
  welcomed(serverLimits: typeof limits): void {
    this.serverLimits = serverLimits;
  }

  /** For the peer on a new link. */
  state(): { requests: number[]; receiving: Receiving[] } {
    return { requests: this.requests.sent, receiving: this.streams.state() };
  }

  /** The old one is gone, and what comes knows nothing of it. `judge` says what those become that cannot be asked again. */
  beginSession(judge: (mutating: boolean) => Failure, code: FailureCode, why: string): void {
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
        this.tell({ what: 'arrived', stream: id });
      }
    }
  }

  failAll(why: Failure): void {
    for (const [id] of this.requests.all) this.fail(id, why);
  }

  /** On a new link, from where the server says that it is. */
  goOn(resume: MessageOf<'resume'>): void {
    const named = new Map(resume.receiving.map((row) => [row[0], row]));
    const first = this.firstCredit();
    for (const [id, stream] of [...this.streams.outgoing]) {
      const row = named.get(id);
      const unseen = first.get(id);
      if (row !== undefined) {
        stream.goOn(row[1], row[2], row[3] ?? false);
        if (stream.done) this.forgetOutgoing(id);
        else this.tell({ what: 'room', stream: id }); // What was received meanwhile is held no more.
      } else if (unseen === undefined) {
        this.forgetOutgoing(id);
      } else if (stream.untouched) {
        stream.restart(unseen);
      } // Else the reply is on its way, and nobody needs the rest.
    }
  }

  private get firstBytes(): number {
    return Math.min(this.serverLimits.firstBytes, limits.firstBytes);
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

  private forgetOutgoing(id: number): void {
    this.streams.outgoing.delete(id);
    this.tell({ what: 'unwanted', stream: id });
  }

  // What arrives.

  receiveReply({ stream: id, ok, error, payload, end }: MessageOf<'reply'>): void {
    const waiting = this.requests.get(id);
    if (waiting === undefined) return; // Again, or given up.
    if (error !== undefined) {
      this.fail(id, error);
      if (waiting.seq !== undefined && error.code === 'OUT_OF_SEQUENCE') throw new ProtocolError('it lost count of requests');
    } else {
      this.requests.remove(id);
      this.streams.outgoing.delete(id);
      this.tell({ what: 'answered', id, ok: ok ?? {} });
      const download = this.streams.incoming.get(id);
      if (download !== undefined) {
        // A whole one needs no credit.
        if (end || payload.length > 0) download.receive({ offset: 0, payload, end, dropped: false, error: undefined });
        if (end) download.endIsKnown();
        this.streams.creditDue(id);
        this.tell({ what: 'arrived', stream: id });
      }
    }
    if (waiting.seq !== undefined) this.window.answered(waiting.seq);
  }

  receiveData(data: MessageOf<'data'>): void {
    if (this.streams.receiveData(data.stream, data)) this.tell({ what: 'arrived', stream: data.stream });
  }
  receiveCredit(credit: MessageOf<'credit'>): void {
    if (this.streams.receiveCredit(credit)) this.tell({ what: 'room', stream: credit.stream });
  }
  receiveStop({ stream }: MessageOf<'stop'>): void {
    if (this.streams.receiveStop(stream)) this.tell({ what: 'unwanted', stream });
  }
  receiveNotice(notice: MessageOf<'notice'>): void {
    if (this.window.hearNotice(notice.number)) this.tell({ what: 'noticed', notice });
  }

  private fail(id: number, why: Failure): void {
    const { toClient = [], toServer = [] } = this.requests.get(id)!.call;
    for (const stream of [id, ...toServer]) this.streams.outgoing.delete(stream);
    for (const stream of [id, ...toClient]) this.streams.forgetIncoming(stream);
    this.requests.remove(id);
    this.tell({ what: 'failed', id, failure: why });
  }

  // What is to be sent.

  acknowledgeSoon(): void {
    this.window.due = true;
  }

  /** Acknowledgements go before requests, requests before data. What is given up makes room for what is asked. */
  next(): Sending | undefined {
    return (
      this.nextAck() ??
      this.nextCancel() ??
      this.streams.nextStop() ??
      this.nextRequest() ??
      this.streams.next((id) => !this.requests.hasUnsent(id))
    );
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
    if (this.requests.underWay >= this.serverLimits.requests) return false;
    return !call.mutating || seq !== undefined || this.window.hasRoom(this.serverLimits.replies);
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
