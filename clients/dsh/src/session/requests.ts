import type { JsonObject } from '../wire/fields.js';
import type { Ceiling } from '../wire/message.js';
import { nameToWire } from '../wire/name.js';

/** What is asked for. Streams of its own: an upload, a download, and further ones by their way, from newStream(). */
export interface Call {
  op: string;
  args: JsonObject;
  mutating?: boolean;
  up?: boolean;
  down?: boolean;
  toClient?: number[];
  toServer?: number[];
  permissionMode?: Ceiling | undefined;
  workspaceRoot?: string | undefined;
}

export const streamsOf = ({ up, down, toClient = [], toServer = [] }: Call): number =>
  Number(up ?? false) + Number(down ?? false) + toClient.length + toServer.length;

/** Of its request, but for what depends on when that is sent. */
export function headerOf({ op, args, permissionMode, workspaceRoot, up }: Call): JsonObject {
  const header: JsonObject = { op, args, permissionMode };
  if (workspaceRoot !== undefined) header.workspaceRoot = nameToWire(workspaceRoot);
  if (up) header.up = true;
  return header;
}

export interface Waiting {
  call: Call;
  seq: number | undefined; // Of a mutating one, once it was sent.
  sent: boolean; // In this session.
  cancelled: boolean;
}

/** Those without a reply, in the order in which they were asked. */
export class Requests {
  private readonly waiting = new Map<number, Waiting>();
  private readonly unsent = new Set<number>(); // Of those, on this link.
  private readonly toCancel = new Set<number>();

  get size(): number {
    return this.waiting.size;
  }
  get underWay(): number {
    return this.waiting.size - this.unsent.size;
  }
  /** In this session. */
  get sent(): number[] {
    return this.all.filter(([, waiting]) => waiting.sent).map(([id]) => id);
  }
  get all(): [number, Waiting][] {
    return [...this.waiting];
  }

  get(id: number): Waiting | undefined {
    return this.waiting.get(id);
  }

  add(id: number, call: Call): void {
    this.waiting.set(id, { call, seq: undefined, sent: false, cancelled: false });
    this.unsent.add(id);
  }

  remove(id: number): void {
    this.unsent.delete(id);
    this.waiting.delete(id);
  }

  /** Whether the request that this stream goes out with is yet to be sent. */
  hasUnsent(stream: number): boolean {
    if (this.unsent.has(stream)) return true;
    for (const id of this.unsent) if (this.waiting.get(id)!.call.toServer?.includes(stream)) return true;
    return false;
  }

  beginLink(): void {
    this.unsent.clear(); // What was not sent yet keeps its place behind what was, or a new number would overtake an old one.
    for (const id of this.waiting.keys()) this.unsent.add(id);
    this.toCancel.clear(); // A request that is not named in the resume is cancelled by that.
  }

  /** The first that may be sent, which then counts as sent on this link. */
  takeFirst(may: (waiting: Waiting) => boolean): [number, Waiting] | undefined {
    for (const id of this.unsent) {
      const waiting = this.waiting.get(id)!;
      if (!may(waiting)) continue;
      this.unsent.delete(id);
      return [id, waiting];
    }
    return undefined;
  }

  cancel(id: number): void {
    if (!this.unsent.has(id)) this.toCancel.add(id);
  }

  nextCancel(): number | undefined {
    for (const id of this.toCancel) {
      this.toCancel.delete(id);
      return id;
    }
    return undefined;
  }
}
