import { limits, type MessageOf, type Receiving, type Sending } from '../wire/message.js';
import { Incoming, type Arriving, type Piece } from './incoming.js';
import { Outgoing } from './outgoing.js';

const heldMost = 16 << 20; // Beyond it a stream holds no more
const heldAlways = 64 << 10; // than this.
export const chunkBytes = 64 << 10; // Sent before another stream has its turn.
const chunkBytesAfterCut = 2 << 10; // At first; each is twice the last.

/** What one stream may hold while all of a session's hold `held` together. */
const allowance = (held: number): number => (held < heldMost ? limits.streamBytes : heldAlways);

/**
 * The streams of a session, and whose turn it is. An id may have one stream each way. A stream that
 * is not known is one that has ended: what concerns it is skipped.
 */
export class Streams {
  readonly outgoing = new Map<number, Outgoing>();
  readonly incoming = new Map<number, Incoming>();
  private stops = new Set<number>();
  private toCredit = new Set<number>();
  private turn: number[] = []; // Ids whose turn comes before those that had theirs.
  private chunk = chunkBytes;
  private carried = false; // Something, on this link.

  get size(): number {
    return this.outgoing.size + this.incoming.size;
  }

  private sum(what: 'held' | 'granted'): number {
    let bytes = 0;
    for (const stream of this.incoming.values()) bytes += stream[what];
    if (what === 'held') for (const stream of this.outgoing.values()) bytes += stream.held;
    return bytes;
  }

  room(id: number): number {
    return this.outgoing.get(id)?.room(allowance(this.sum('held'))) ?? 0;
  }

  take(id: number): Piece | undefined {
    const stream = this.incoming.get(id);
    if (stream === undefined) return undefined;
    const piece = stream.take();
    this.toCredit.add(id);
    if (stream.done) this.forgetIncoming(id);
    return piece;
  }

  /** What comes in is wanted no more. */
  stop(id: number): void {
    if (!this.incoming.has(id)) return;
    this.forgetIncoming(id);
    this.stops.add(id);
  }

  /** A peer that opens it only now has not heard of its stop, or not on this link. */
  stopIfGone(id: number): void {
    if (!this.incoming.has(id)) this.stops.add(id);
  }

  forgetIncoming(id: number): void {
    this.incoming.delete(id);
    this.toCredit.delete(id);
  }

  /** True: there is news for whoever uses the stream. */
  receiveData(id: number, data: Arriving): boolean {
    const stream = this.incoming.get(id);
    stream?.receive(data);
    if (stream === undefined) return false;
    this.toCredit.add(id);
    return (this.carried = true);
  }

  receiveCredit({ stream: id, received, limit, ended }: MessageOf<'credit'>): boolean {
    const stream = this.outgoing.get(id);
    stream?.credit(received, limit, ended);
    if (stream?.done) this.outgoing.delete(id);
    return stream !== undefined;
  }

  receiveStop(id: number): boolean {
    return this.outgoing.delete(id);
  }

  creditDue(id: number): void {
    this.toCredit.add(id);
  }

  /** The link was lost. The peer learns of stops by what is not named on the next one. */
  cut(): void {
    for (const stream of this.outgoing.values()) stream.cut();
    this.stops.clear();
    this.toCredit.clear();
    if (this.carried) this.chunk = chunkBytesAfterCut;
    this.carried = false;
  }

  /**
   * How much goes into the next frame. Frames are small again once a link was lost that had carried some: the next may not last
   * for a large one, and what is cut within a frame is sent again.
   */
  nextChunk(): number {
    const bytes = this.chunk;
    this.chunk = Math.min(2 * bytes, chunkBytes);
    this.carried = true;
    return bytes;
  }

  limitOf(id: number): number {
    return this.incoming.get(id)?.state(id, allowance(this.sum('granted')))[2] ?? 0;
  }

  /** For the peer on a new link. */
  state(): Receiving[] {
    const rows: Receiving[] = [];
    for (const [id, stream] of this.incoming) {
      if (stream.ended) stream.endIsKnown();
      else rows.push(stream.state(id, allowance(this.sum('granted'))));
      if (stream.done) this.forgetIncoming(id);
    }
    return rows;
  }

  /** The next message about streams that is due. `maySend`: whether what goes out by that id may begin yet. */
  next(maySend: (id: number) => boolean): Sending | undefined {
    return this.nextStop() ?? this.nextCredit() ?? this.nextData(maySend);
  }

  nextStop(): Sending | undefined {
    for (const id of this.stops) {
      this.stops.delete(id);
      return { type: 'stop', stream: id };
    }
    return undefined;
  }

  private nextCredit(): Sending | undefined {
    for (const id of this.toCredit) {
      this.toCredit.delete(id);
      const stream = this.incoming.get(id);
      const told = stream?.credit(allowance(this.sum('granted')));
      if (stream === undefined || told === undefined) continue;
      if (stream.done) this.forgetIncoming(id);
      const [, received, limit, ended] = told;
      return { type: 'credit', stream: id, header: { received, limit, ...(ended ? { ended } : {}) } };
    }
    return undefined;
  }

  private nextData(maySend: (id: number) => boolean): Sending | undefined {
    for (let pass = 0; pass < 2; pass++) {
      for (let id = this.turn.shift(); id !== undefined; id = this.turn.shift()) {
        const stream = this.outgoing.get(id);
        if (!stream?.ready || !maySend(id)) continue;
        const { offset, payload, end } = stream.next(this.nextChunk());
        return { type: 'data', stream: id, end, payload, header: { offset } };
      }
      this.turn = [...this.outgoing.keys()];
    }
    this.turn = [];
    return undefined;
  }
}
