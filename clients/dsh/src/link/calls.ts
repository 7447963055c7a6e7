import type { JsonObject } from '../wire/fields.js';
import { RemoteFailure, failure } from '../session/failure.js';
import type { Call } from '../session/requests.js';
import type { Piece } from '../session/incoming.js';
import { backoffMs } from './backoff.js';
import type { Connection } from './connection.js';

export interface CallOptions extends Omit<Call, 'op' | 'args' | 'up' | 'down'> {
  signal?: AbortSignal | undefined;
  upload?: Uint8Array | undefined;
  begun?: (id: number) => void;
}

export interface Downloaded {
  ok: JsonObject;
  body: Uint8Array;
}

export async function whole(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const piece of pieces) parts.push(piece);
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}

const busyTries = 8; // About three seconds in all.

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Requests as promises: with an upload that is at hand, a download that is wanted whole or piece by piece, and a signal. */
export class Calls {
  constructor(readonly connection: Connection) {}

  async call(op: string, args: JsonObject, options: CallOptions = {}): Promise<JsonObject> {
    if (options.toClient !== undefined) return this.ask({ op, args }, options); // Its streams are asked for once.
    return this.whenNotBusy(() => this.ask({ op, args }, options));
  }

  /** With its whole download. */
  async fetch(op: string, args: JsonObject, options: CallOptions = {}): Promise<Downloaded> {
    const { ok, pieces } = await this.open(op, args, options);
    return { ok, body: await whole(pieces) };
  }

  /** With its download as it comes. Whoever leaves off stops it. */
  async open(op: string, args: JsonObject, options: CallOptions = {}): Promise<{ ok: JsonObject; pieces: AsyncIterable<Uint8Array> }> {
    let stream = 0;
    const news = new News();
    const begun = (id: number): void => {
      stream = id;
      this.connection.use(id, { arrived: () => news.tell() });
    };
    const ok = await this.whenNotBusy(() => this.ask({ op, args, down: true }, { ...options, begun }));
    return { ok, pieces: this.pieces(stream, news, options.signal) };
  }

  private async *pieces(stream: number, news: News, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const onAbort = (): void => news.tell();
    signal?.addEventListener('abort', onAbort);
    let ended = false;
    try {
      while (!ended) {
        if (signal?.aborted) throw new RemoteFailure(failure('CANCELLED', 'it was aborted'));
        const piece: Piece | undefined = this.connection.take(stream);
        if (piece === undefined) {
          await news.come();
          continue;
        }
        ended = piece.end;
        if (piece.bytes.length > 0) yield piece.bytes;
        if (piece.error !== undefined) throw new RemoteFailure(piece.error);
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      if (!ended) this.connection.stop(stream);
    }
  }

  private ask(call: Call, { signal, upload, begun, ...more }: CallOptions): Promise<JsonObject> {
    if (signal?.aborted) return Promise.reject(new RemoteFailure(failure('CANCELLED', 'it was aborted')));
    let cancel = (): void => {};
    const answer = this.connection.ask({ ...call, ...more, up: upload !== undefined }, (id) => {
      cancel = () => this.connection.cancel(id);
      begun?.(id);
      if (upload !== undefined) this.send(id, upload);
      if (signal?.aborted) cancel(); // It waited for its turn to be asked.
    });
    if (signal === undefined) return answer;
    const onAbort = (): void => cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    return answer.finally(() => signal.removeEventListener('abort', onAbort));
  }

  /** As much at a time as the stream may hold. */
  private send(stream: number, bytes: Uint8Array): void {
    let at = 0;
    const room = (): void => {
      while (at < bytes.length) {
        const count = Math.min(this.connection.room(stream), bytes.length - at);
        if (count === 0) return;
        this.connection.append(stream, bytes.subarray(at, at + count));
        at += count;
      }
      this.connection.end(stream);
    };
    const reader = this.connection.userOf(stream);
    this.connection.use(stream, { ...reader, room });
    room();
  }

  /** BUSY says that nothing was done and that the same may be asked again. */
  private async whenNotBusy<T>(ask: () => Promise<T>): Promise<T> {
    for (let n = 0; ; n++) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof RemoteFailure) || error.code !== 'BUSY' || n + 1 === busyTries) throw error;
        await sleep(error.retryAfterMs ?? backoffMs(n));
      }
    }
  }
}

/** Told and awaited by one each; what is told before it is awaited is not lost. */
class News {
  private told = false;
  private waiting: (() => void) | undefined;

  tell(): void {
    this.told = true;
    this.waiting?.();
  }
  async come(): Promise<void> {
    if (!this.told) await new Promise<void>((resolve) => (this.waiting = resolve));
    this.told = false;
    this.waiting = undefined;
  }
}
