import { ProtocolError } from '../wire/frame.js';
import type { Failure, MessageOf, Receiving } from '../wire/message.js';

/**
 * What was received of a stream, as it is handed on. A piece that begins further on than the one
 * before ended tells that what lies between was let go.
 */
export interface Piece {
  offset: number;
  bytes: Uint8Array;
  end: boolean;
  error?: Failure | undefined;
}

export type Arriving = Pick<MessageOf<'data'>, 'offset' | 'payload' | 'end' | 'dropped' | 'error'>;

/** The receiving end of a stream: takes each byte once, however often it comes, and says how far the sender may go. */
export class Incoming {
  private pieces: { offset: number; bytes: Uint8Array }[] = [];
  private received = 0;
  private taken = 0;
  private limit = 0;
  private limitTold = 0;
  private endTaken = false;
  private endTold = false;
  private skipped = false; // A dropped mark waits for an answer.
  private error: Failure | undefined;
  ended = false; // The end was seen.
  held = 0;

  /** The end was handed on, and the sender knows. */
  get done(): boolean {
    return this.endTaken && this.endTold;
  }
  get untouched(): boolean {
    return this.received === 0 && !this.ended;
  }
  /** What may come to be held. */
  get granted(): number {
    return this.limit - this.taken;
  }

  receive({ offset, payload, end, dropped, error }: Arriving): void {
    const until = offset + payload.length;
    if (this.ended && until > this.received) throw new ProtocolError('a stream goes on behind its end');
    if (dropped) {
      if (offset > this.received) this.skipped = true;
      this.received = Math.max(this.received, offset);
      return;
    }
    if (offset > this.received) throw new ProtocolError('a stream has a gap');
    if (until > this.received && until > this.limit) throw new ProtocolError('a stream goes beyond its credit');
    if (end && until < this.received) throw new ProtocolError('a stream ends before what came of it');
    if (until > this.received) {
      const bytes = payload.subarray(this.received - offset);
      this.pieces.push({ offset: this.received, bytes });
      this.held += bytes.length;
      this.received = until;
    }
    if (end && !this.ended) {
      this.ended = true;
      this.error = error;
    }
  }

  /** Undefined when there is no more for now. After the end nothing comes. */
  take(): Piece | undefined {
    if (this.endTaken) return undefined;
    const first = this.pieces.shift();
    if (first === undefined && !this.ended) {
      this.taken = this.received; // What was let go needs no reader.
      return undefined;
    }
    const piece: Piece = { offset: first?.offset ?? this.received, bytes: first?.bytes ?? new Uint8Array(0), end: false };
    this.held -= piece.bytes.length;
    const last = this.pieces.length === 0;
    this.taken = last ? this.received : piece.offset + piece.bytes.length;
    if (last && this.ended) {
      this.endTaken = piece.end = true;
      piece.error = this.error;
    }
    return piece;
  }

  /** No more will come, and why; what is there may still be taken. */
  breakOff(why: Failure): void {
    if (this.ended) return;
    this.ended = this.endTold = true; // There is nobody to tell.
    this.error = why;
  }

  /** The sender knows of the end without a word from here. */
  endIsKnown(): void {
    this.endTold = true;
  }

  /** What to tell the sender now; undefined when it knows enough. `allowance`: how far it may be ahead of the reader. */
  credit(allowance: number): Receiving | undefined {
    this.grant(allowance);
    const halfUsed = this.limit - this.limitTold >= allowance / 2;
    if (this.endTold || !(this.ended || halfUsed || this.skipped)) return undefined;
    return this.state(0, allowance);
  }

  /** The same in full, for a new link. */
  state(stream: number, allowance: number): Receiving {
    this.grant(allowance);
    this.limitTold = this.limit;
    this.endTold = this.ended;
    this.skipped = false;
    return this.ended ? [stream, this.received, this.limit, true] : [stream, this.received, this.limit];
  }

  private grant(allowance: number): void {
    if (!this.ended) this.limit = Math.max(this.limit, this.taken + allowance);
    this.limit = Math.max(this.limit, this.received);
  }
}
