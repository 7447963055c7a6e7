import type { Duplex } from 'node:stream';
import { FrameReader, ProtocolError, encodeFrame } from '../wire/frame.js';
import type { JsonObject } from '../wire/fields.js';
import type { Close, CloseReason, Notice, Welcome } from '../wire/message.js';
import type { SessionEvent } from '../session/event.js';
import { RemoteFailure, failure } from '../session/failure.js';
import type { Call } from '../session/requests.js';
import { Session, type SessionSettings } from '../session/session.js';
import type { Piece } from '../session/incoming.js';
import type { Dial } from './endpoint.js';
import { backoffMs, renewAfterMs } from './backoff.js';
import { isFinal } from './token.js';

/** Whoever reads or writes a stream; told when it may go on. */
export interface StreamUser {
  arrived?(): void;
  room?(): void;
  unwanted?(): void;
}

export interface ConnectionOptions extends SessionSettings {
  dial: Dial;
  /** Read at each dialling and renewal, or NoToken; undefined: agentd asks for none. */
  token?: () => Promise<string | undefined>;
  /** Lines for people; never a token. */
  log?: (line: string) => void;
  onWelcome?: (welcome: Welcome) => void;
  onNotice?: (notice: Notice) => void;
}

/** After these a client dials no more; `protocol` is one before the first welcome, and `denied` the second time. */
const givesUp: ReadonlySet<CloseReason> = new Set<CloseReason>(['version', 'replaced', 'end']);

interface Asked {
  call: Call;
  begun: ((id: number) => void) | undefined;
  resolve: (ok: JsonObject) => void;
  reject: (error: unknown) => void;
}

const lineMost = 4_096;
const tickMs = 1_000;
const pausedMs = 1_000; // After quiesce: until dialling again.
const steadyMs = 10_000; // A link that held so long was not for nothing.

/**
 * A session that is kept going: dials, dials again, renews its token. Requests wait while there is
 * no link, for as long as the session's lease; then they fail, for the server has ended it too.
 */
export class Connection {
  private readonly session: Session;
  private readonly answers = new Map<number, Pick<Asked, 'resolve' | 'reject'>>();
  private readonly line: Asked[] = []; // Until the session has room.
  private readonly users = new Map<number, StreamUser>();
  private readonly ticking: NodeJS.Timeout;
  private socket: Duplex | undefined;
  private redialling: NodeJS.Timeout | undefined;
  private abandoning: NodeJS.Timeout | undefined;
  private renewing: NodeJS.Timeout | undefined;
  private tries = 0;
  private denials = 0;
  private breaches = 0; // In a row.
  private openedAt: number | undefined; // The last link that was; there was none yet.
  private pumping = false;
  private pumpAgain = false;
  private pumpIsDue = false;
  private over: string | undefined; // Why nothing is asked any more.
  private lastTrouble = 'it was not reached yet';

  constructor(private readonly options: ConnectionOptions) {
    this.session = new Session(options);
    this.ticking = setInterval(() => {
      this.session.tick(performance.now());
      this.pump();
    }, tickMs);
    this.awaitLink();
    void this.connect();
  }

  newStream(): number {
    return this.session.underWay.newStream();
  }

  /** Asks. The promise rejects with RemoteFailure. `begun` hears the request's id before anything comes of it. */
  ask(call: Call, begun?: (id: number) => void): Promise<JsonObject> {
    if (this.over !== undefined) return Promise.reject(new RemoteFailure(failure('UNAVAILABLE', this.over)));
    if (this.line.length >= lineMost) return Promise.reject(new RemoteFailure(failure('BUSY', 'too many requests wait to be asked')));
    return new Promise((resolve, reject) => {
      this.line.push({ call, begun, resolve, reject });
      this.pump();
    });
  }

  private askOfTheLine(): void {
    while (this.line[0] !== undefined && this.session.underWay.hasRoomFor(this.line[0].call)) {
      const { call, begun, resolve, reject } = this.line.shift()!;
      try {
        const id = this.session.underWay.ask(call);
        this.answers.set(id, { resolve, reject });
        begun?.(id);
      } catch (error) {
        reject(error);
      }
    }
  }

  cancel(id: number): void {
    this.session.underWay.cancel(id);
    this.pump();
  }

  use(stream: number, user: StreamUser): void {
    this.users.set(stream, user);
  }
  userOf(stream: number): StreamUser | undefined {
    return this.users.get(stream);
  }
  room(stream: number): number {
    return this.session.underWay.room(stream);
  }
  append(stream: number, bytes: Uint8Array): void {
    this.session.underWay.append(stream, bytes);
    this.pump();
  }
  appended(stream: number): number {
    return this.session.underWay.appended(stream);
  }
  end(stream: number): void {
    this.session.underWay.end(stream);
    this.pump();
  }
  /** What there is; the credit for it goes out with what is sent next. */
  take(stream: number): Piece | undefined {
    const piece = this.session.underWay.take(stream);
    if (piece?.end) this.users.delete(stream);
    this.pumpSoon();
    return piece;
  }
  stop(stream: number): void {
    this.users.delete(stream);
    this.session.underWay.stop(stream);
    this.pump();
  }

  /** Ends the session, and with it what it has begun in the sandbox. */
  async close(): Promise<void> {
    const socket = this.socket;
    this.session.finish();
    this.giveUp('this session has ended');
    if (socket !== undefined && !socket.destroyed) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  }

  // Links.

  private async connect(): Promise<void> {
    let token: string | undefined;
    try {
      token = await this.options.token?.();
    } catch (error) {
      const why = `its token cannot be read: ${(error as Error).message}`;
      return isFinal(error, this.openedAt !== undefined) ? this.giveUp(why) : this.lost(why);
    }
    if (this.over !== undefined) return;
    const socket = this.options.dial();
    const reader = new FrameReader();
    this.socket = socket;
    let trouble = 'it hung up';
    socket.on('error', (error) => {
      trouble = error.message;
    });
    socket.on('data', (bytes: Uint8Array) => {
      if (this.socket === socket) this.arrived(reader, bytes);
    });
    socket.on('drain', () => this.pump());
    socket.on('close', () => {
      if (this.socket === socket) this.lost(trouble);
    });
    this.session.dial(token, performance.now());
    this.pump();
  }

  private arrived(reader: FrameReader, bytes: Uint8Array): void {
    reader.add(bytes);
    try {
      for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
        this.session.receive(frame, performance.now());
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.session.refuse(error.message);
    }
    this.pump();
  }

  private lost(trouble: string): void {
    this.socket = undefined;
    this.session.cut();
    this.pump();
    if (this.over !== undefined) return;
    if (this.tries === 0) this.options.log?.(`agentd: ${trouble}; dialling again`);
    this.lastTrouble = trouble;
    this.awaitLink();
    this.redial(backoffMs(this.tries++));
  }

  // Several times in a lease, however often it failed.
  private redial(inMs: number): void {
    clearTimeout(this.redialling);
    this.redialling = setTimeout(() => void this.connect(), Math.min(inMs, this.options.leaseSeconds * 250));
  }

  // A session ends on the server when its lease has passed without a link.
  private awaitLink(): void {
    if (this.abandoning !== undefined) return;
    this.abandoning = setTimeout(() => {
      this.abandoning = undefined;
      const seconds = this.options.leaseSeconds;
      this.session.abandon(`agentd was not reached for ${seconds} s: ${this.lastTrouble}`);
      this.pump();
      if (this.over === undefined) this.awaitLink();
    }, this.options.leaseSeconds * 1_000);
  }

  private linkIsOpen(): void {
    clearTimeout(this.abandoning);
    this.abandoning = undefined;
    this.tries = this.denials = 0;
    this.openedAt = performance.now();
  }

  private closed({ reason, message, retryAfterMs }: Close): void {
    this.lastTrouble = message === '' ? `it closed the link (${reason})` : message;
    this.options.log?.(`agentd closed the link (${reason}): ${message}`);
    const denied = reason === 'denied' && ++this.denials > 1; // A new token was asked for, once.
    const refused = denied || (reason === 'protocol' && this.openedAt === undefined);
    if (refused || givesUp.has(reason)) return this.giveUp(`agentd refuses (${reason}): ${message}`);
    this.hangUp();
    if (reason === 'protocol') return this.beginAnew(message);
    this.awaitLink();
    this.redial(retryAfterMs ?? (reason === 'quiesce' ? pausedMs : backoffMs(this.tries++)));
  }

  // Nobody knows what is true of a session in which the protocol was broken: what it had under way fails, and may be what it broke by.
  private beginAnew(why: string): void {
    if (performance.now() - (this.openedAt ?? 0) > steadyMs) this.breaches = 0;
    this.session.abandon(`the protocol was broken, and the session with it: ${why}`);
    this.pump();
    this.awaitLink();
    this.redial(backoffMs(this.breaches++));
  }

  private hangUp(): void {
    this.send(); // A close that is due.
    const socket = this.socket;
    this.socket = undefined;
    socket?.end();
    setTimeout(() => socket?.destroy(), tickMs).unref();
  }

  private giveUp(why: string): void {
    if (this.over !== undefined) return;
    this.over = why;
    clearInterval(this.ticking);
    for (const timer of [this.redialling, this.abandoning, this.renewing]) clearTimeout(timer);
    this.hangUp();
    this.session.abandon(why);
    for (const { reject } of this.line.splice(0)) reject(new RemoteFailure(failure('UNAVAILABLE', why)));
    this.pump();
  }

  private renewIn(expiresMs: number): void {
    clearTimeout(this.renewing);
    if (expiresMs === 0 || this.options.token === undefined) return;
    this.renewing = setTimeout(async () => {
      const token = await this.options.token?.().catch(() => undefined);
      if (token === undefined) return; // The link is closed as expired, and dialling tells what is wrong.
      this.session.renew(token);
      this.pump();
    }, renewAfterMs(expiresMs));
  }

  // What has happened is told, then what is due is sent, until neither is left.
  private pump(): void {
    this.pumpAgain = true;
    if (this.pumping) return;
    this.pumping = true;
    try {
      while (this.pumpAgain) {
        this.pumpAgain = false;
        for (const event of this.session.takeEvents()) this.dispatch(event);
        this.askOfTheLine();
        this.send();
      }
    } finally {
      this.pumping = false;
    }
  }

  private pumpSoon(): void {
    if (this.pumpIsDue) return;
    this.pumpIsDue = true;
    queueMicrotask(() => {
      this.pumpIsDue = false;
      this.pump();
    });
  }

  private send(): void {
    const socket = this.socket;
    socket?.cork();
    while (socket !== undefined && !socket.destroyed && !socket.writableEnded && !socket.writableNeedDrain) {
      const frame = this.session.next();
      if (frame === undefined) break;
      socket.write(encodeFrame(frame));
    }
    socket?.uncork();
  }

  private dispatch(event: SessionEvent): void {
    switch (event.what) {
      case 'welcomed':
        this.renewIn(event.welcome.expiresMs);
        this.linkIsOpen();
        this.options.onWelcome?.(event.welcome);
        return;
      case 'answered':
        this.answers.get(event.id)?.resolve(event.ok);
        this.answers.delete(event.id);
        if (this.users.get(event.id)?.arrived === undefined) this.users.delete(event.id);
        return;
      case 'failed':
        this.answers.get(event.id)?.reject(new RemoteFailure(event.failure));
        this.answers.delete(event.id);
        this.users.delete(event.id);
        return;
      case 'arrived':
        this.users.get(event.stream)?.arrived?.();
        return;
      case 'room':
        this.users.get(event.stream)?.room?.();
        return;
      case 'unwanted':
        this.users.get(event.stream)?.unwanted?.();
        if (this.users.get(event.stream)?.arrived === undefined) this.users.delete(event.stream);
        return;
      case 'noticed':
        this.options.onNotice?.(event.notice);
        return;
      case 'renewed':
        this.renewIn(event.expiresMs);
        return;
      case 'closed':
        this.closed(event.close);
    }
  }
}
