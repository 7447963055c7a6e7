import type { JsonObject } from '../wire/fields.js';
import { limits } from '../wire/message.js';

const acknowledgeAfter = 64; // Replies; else at the next tick.

/**
 * Which numbers a session has given to what changes something, what of that was answered, and what of that the server was told: it
 * keeps replies until then. Notices are acknowledged with it.
 */
export class Window {
  private last = 0;
  private through = 0; // All up to here are answered,
  private readonly beyond = new Map<number, boolean>(); // and these; true: that was said.
  private throughSaid = 0;
  private noticesHeard = 0;
  private noticesSaid = 0;
  due = false; // Something is to be said.

  beginSession(): void {
    this.last = this.through = this.throughSaid = this.noticesHeard = this.noticesSaid = 0;
    this.beyond.clear();
  }

  /** What was said may not have arrived. */
  beginLink(): void {
    this.throughSaid = this.noticesSaid = 0;
    for (const seq of this.beyond.keys()) this.beyond.set(seq, false);
    this.due = true;
  }

  nextNumber(): number {
    return ++this.last;
  }

  hasRoom(repliesMost: number): boolean {
    return this.unacknowledged < repliesMost;
  }

  answered(seq: number): void {
    this.beyond.set(seq, false);
    while (this.beyond.delete(this.through + 1)) this.through++;
    if (this.unacknowledged >= acknowledgeAfter) this.due = true;
  }

  /** Whether it is the first time. */
  hearNotice(number: number): boolean {
    const first = number > this.noticesHeard;
    if (first) this.noticesHeard = number;
    return first;
  }

  /** What goes with a request, which is about to be sent. */
  kept(): number | undefined {
    if (this.through <= this.throughSaid) return undefined;
    return (this.throughSaid = this.through);
  }

  /** What is to be said now. */
  acknowledgement(): JsonObject | undefined {
    if (!this.due) return undefined;
    this.due = false;
    const header: JsonObject = {};
    const through = this.kept();
    if (through !== undefined) header.through = through;
    const also = [...this.beyond].filter(([, said]) => !said).map(([seq]) => seq).slice(0, limits.replies);
    for (const seq of also) this.beyond.set(seq, true);
    if (also.length > 0) header.also = also;
    if (this.noticesHeard > this.noticesSaid) header.notices = this.noticesSaid = this.noticesHeard;
    return Object.keys(header).length > 0 ? header : undefined;
  }

  /** Replies, had or not, that the server still keeps for all it knows. */
  private get unacknowledged(): number {
    let said = 0;
    for (const one of this.beyond.values()) said += Number(one);
    return this.last - this.throughSaid - said;
  }
}
