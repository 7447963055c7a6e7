import { limits } from '../wire/message.js';
import { nothing, ProtocolError } from '../wire/frame.js';

export interface Chunk {
  offset: number;
  payload: Uint8Array;
  end: boolean;
}

/**
 * The sending end of a stream: what was not received yet is kept, so that it can go out again after
 * a cut. Offsets are absolute, from 0.
 */
export class Outgoing {
  private chunks: Uint8Array[] = []; // From `base` on.
  private base = 0;
  private tail = 0; // Of the next byte to be appended.
  private sent = 0;
  private sentMost = 0;
  private acknowledged = 0;
  private closed = false; // No more is appended.
  private endSent = false;
  private blocked = false; // A link was lost; nothing goes out until the peer has said how far it came.
  done = false; // Received to the end, or not wanted.

  constructor(private limit: number) {}

  /** How much was appended so far. */
  get appended(): number {
    return this.tail;
  }
  get held(): number {
    return this.tail - this.base;
  }
  get ended(): boolean {
    return this.closed;
  }
  /** Nothing was received yet, so it can begin anew. */
  get untouched(): boolean {
    return this.base === 0;
  }

  /** How many bytes more it may hold, when `allowance` is what it may hold. */
  room(allowance = limits.streamBytes): number {
    return this.done || this.closed ? 0 : Math.max(0, allowance - this.held);
  }

  append(bytes: Uint8Array): void {
    if (this.done || this.closed || bytes.length === 0) return;
    this.chunks.push(bytes);
    this.tail += bytes.length;
  }

  end(): void {
    this.closed = true;
  }

  /** Nobody wants it any more. */
  stop(): void {
    this.forgetBefore(this.tail);
    this.done = true;
  }

  credit(received: number, limit: number, ended: boolean): void {
    if (this.done) return;
    if (received > this.sentMost) throw new ProtocolError('it received more than was sent');
    if (ended && (!this.closed || received !== this.tail)) throw new ProtocolError('it received an end that was not sent');
    this.acknowledged = Math.max(this.acknowledged, received);
    this.limit = Math.max(this.limit, limit);
    this.forgetBefore(received);
    if (ended) this.stop();
  }

  cut(): void {
    this.blocked = true;
  }

  goOn(received: number, limit: number, ended: boolean): void {
    if (received < this.acknowledged) throw new ProtocolError('it takes back what it had received');
    this.credit(received, limit, ended);
    this.sent = received;
    this.endSent = false;
    this.blocked = false;
  }

  /** The peer never saw it. */
  restart(limit: number): void {
    this.sent = this.sentMost = this.acknowledged = 0;
    this.limit = limit;
    this.endSent = this.blocked = false;
  }

  get ready(): boolean {
    if (this.done || this.blocked) return false;
    return this.sent < this.tail ? this.sent < this.limit : this.closed && !this.endSent;
  }

  /** Nothing was sent yet, so what comes first may go with the request. */
  get mayBegin(): boolean {
    return this.ready && this.sent === 0 && this.base === 0;
  }

  /** What goes out next, when it is ready. */
  next(bytesMax: number): Chunk {
    const until = Math.min(this.tail, Math.max(this.limit, this.sent), this.sent + bytesMax);
    const offset = this.sent;
    const payload = this.slice(offset, until);
    this.sent = until;
    this.sentMost = Math.max(this.sentMost, until);
    this.endSent = this.closed && until === this.tail;
    return { offset, payload, end: this.endSent };
  }

  private slice(from: number, until: number): Uint8Array {
    if (from === until) return nothing;
    const parts: Uint8Array[] = [];
    let at = this.base;
    for (const chunk of this.chunks) {
      const begin = Math.max(from - at, 0);
      const end = Math.min(until - at, chunk.length);
      if (begin < end) parts.push(chunk.subarray(begin, end));
      at += chunk.length;
      if (at >= until) break;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  private forgetBefore(offset: number): void {
    while (this.base < offset) {
      const first = this.chunks[0]!;
      const count = Math.min(first.length, offset - this.base);
      if (count === first.length) this.chunks.shift();
      else this.chunks[0] = first.subarray(count);
      this.base += count;
    }
  }
}

