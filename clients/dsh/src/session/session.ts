import { ProtocolError, type Frame } from '../wire/frame.js';
import { toFrame, toMessage, type Close, type CloseReason, type Message, type MessageOf, type Sending, type Welcome } from '../wire/message.js';
import type { SessionEvent } from './event.js';
import { failure } from './failure.js';
import { Pulse } from './pulse.js';
import { UnderWay } from './under_way.js';

export const openWithinMs = 15_000; // From dialling to the server's resume.

export interface SessionSettings {
  client: string; // For the server's log.
  features: string[];
  sandbox?: { namespace: string; name: string } | undefined;
  leaseSeconds: number;
}

/**
 * A session across links: what was asked and how far it came, so that after a cut each request is
 * asked again that may be, and each stream goes on where it was. Pure: frames and times in, events
 * and frames out. One link at a time: dial, receive and next, then cut.
 */
export class Session {
  private events: SessionEvent[] = [];
  readonly underWay = new UnderWay((event) => this.events.push(event));

  // The session.
  private session: string | undefined;
  private uid: string | undefined; // A name may pass to another sandbox.
  private instance: string | undefined; // The executor that has it.

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
    this.underWay.beginSession((sent) => failure(sent ? 'OUTCOME_UNKNOWN' : 'UNAVAILABLE', why), 'UNAVAILABLE', why);
    this.underWay.failAll(failure('UNAVAILABLE', why));
  }

  tick(now: number): void {
    if (this.phase === 'down') return;
    this.underWay.acknowledgeSoon();
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

  // What is true of one link only begins.
  private beginLink(): void {
    this.first = undefined;
    this.resumeDue = this.pingDue = this.pongDue = false;
    this.underWay.beginLink();
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
        return this.underWay.receiveReply(message);
      case 'data':
        return this.underWay.receiveData(message);
      case 'credit':
        return this.underWay.receiveCredit(message);
      case 'stop':
        return this.underWay.receiveStop(message);
      case 'notice':
        return this.underWay.receiveNotice(message);
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
    this.underWay.welcomed(welcome.limits);
    this.phase = 'welcomed';
    this.resumeDue = true;
    this.events.push({ what: 'welcomed', welcome });
    if (!anew) return;
    this.underWay.beginSession(
      (mutating) =>
        mutating
          ? failure('OUTCOME_UNKNOWN', 'its session was lost before the reply came')
          : failure('LOST', 'its session was lost while it was under way'),
      'LOST',
      'its session was lost',
    );
  }

  private receiveResume(resume: MessageOf<'resume'>): void {
    if (this.phase !== 'welcomed') throw new ProtocolError('it resumed twice');
    this.phase = 'open';
    this.underWay.goOn(resume);
  }

  // What the link itself needs goes before what is under way.
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
    return this.underWay.next();
  }

  private resume(): Sending {
    return { type: 'resume', header: { link: this.link, ...this.underWay.state() } };
  }
}
