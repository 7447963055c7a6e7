import * as f from './fields.js';
import { nothing, ProtocolError, type Frame, type FrameType } from './frame.js';
import { nameFromWire } from './name.js';

// What frames mean: the fields of each type with every limit of docs/protocol.md.

export const failureCodes = [
  'FS_NOT_FOUND', 'FS_NOT_DIRECTORY', 'FS_NOT_TEXT', 'FS_NOT_REGULAR_FILE', 'FS_TOO_LARGE',
  'FS_PERMISSION_DENIED', 'FS_SANDBOX_DENIED', 'FS_IO_ERROR', 'FS_STALE_VERSION', 'FS_NOT_OBSERVED',
  'FS_AMBIGUOUS_EDIT', 'FS_EDIT_NOT_FOUND', 'FS_ABORTED', 'INVALID', 'DENIED', 'NOT_FOUND', 'CONFLICT',
  'BUSY', 'UNSUPPORTED', 'CANCELLED', 'UNAVAILABLE', 'LOST', 'SPAWN_FAILED', 'EXECUTABLE_NOT_FOUND',
  'TERMINATE_FAILED', 'CONFINEMENT_UNAVAILABLE', 'TOOL_MISSING', 'REPLIES_FULL', 'OUT_OF_SEQUENCE', 'ALREADY_ANSWERED',
  'OUTCOME_UNKNOWN', 'INTERNAL',
] as const;
export type FailureCode = (typeof failureCodes)[number];

export const closeReasons = [
  'end', 'quiesce', 'replaced', 'expired', 'denied', 'version', 'busy', 'shutdown', 'lost', 'silent',
  'protocol', 'impostor', 'other',
] as const;
export type CloseReason = (typeof closeReasons)[number];

export type Ceiling = 'ReadOnly' | 'WorkspaceWrite' | 'DangerFullAccess';

export const limits = {
  requests: 256, // Unanswered at once, in a session.
  streams: 512, // Open at once, in a session.
  replies: 256, // Kept without an acknowledgement.
  replyBytes: 32 << 20,
  firstBytes: 64 << 10, // Of an upload, without credit.
  streamBytes: 1 << 20, // Held of a stream, on either side.
};
const depthMax = 16;
const valuesMax = 65_536;
const detailBytesMax = 16 << 10;

const shortText = f.text(0, 256);
const longText = f.text(0, 1024);
const word = f.text(1, 64);
const token = f.text(1, 8192);
const ceiling = f.oneOf<Ceiling>('ReadOnly', 'WorkspaceWrite', 'DangerFullAccess');
const features = f.list(64, word);

const failure = f.object({
  code: f.wordOf(failureCodes, 'INTERNAL'),
  message: longText,
  retryAfterMs: f.optional(f.count),
  detail: f.optional(f.detail(detailBytesMax)),
});
export type Failure = { code: FailureCode; message: string; retryAfterMs?: number; detail?: f.JsonObject };

/** How far a stream came on the side that receives it: [stream, received, limit] and true for an end that was seen. */
export type Receiving = [stream: number, received: number, limit: number, ended?: boolean];
const receivingRow: f.Reader<Receiving> = (value) => {
  if (!Array.isArray(value) || value.length < 3 || value.length > 4) {
    throw new ProtocolError('it must be [stream, received, limit] with or without true');
  }
  const row: Receiving = [f.id(value[0]), f.count(value[1]), f.count(value[2])];
  if (value.length === 4) row.push(f.flag(value[3]));
  return row;
};

const nothingElse = f.object({});
const messages = {
  hello: f.object(
    {
      protocol: f.object({ min: f.positive, max: f.positive }, (m) => m.min > m.max && '"min" is above "max"'),
      client: f.withDefault(shortText, ''),
      features: f.withDefault(features, []),
      sandbox: f.optional(f.object({ namespace: shortText, name: shortText })),
      uid: f.optional(shortText),
      session: f.optional(f.opaque(32)),
      leaseSeconds: f.withDefault(f.number(1, 3600), 300),
      token: f.optional(token),
      claims: f.optional(token),
      nonce: f.optional(f.hex(32)),
    },
    (m) =>
      (m.token !== undefined && m.claims !== undefined && '"token" and "claims" exclude each other') ||
      ((m.claims === undefined) !== (m.nonce === undefined) && '"claims" and "nonce" go together'),
  ),
  challenge: f.object({ nonce: f.hex(32), proof: f.opaque(64) }),
  prove: f.object({ proof: f.opaque(64) }),
  welcome: f.object({
    version: f.positive,
    link: word,
    session: f.opaque(32),
    resumed: f.flag,
    why: f.optional(f.wordOf(['unknown', 'lost'], 'unknown')),
    instance: word,
    uid: shortText,
    epoch: f.count,
    incarnation: f.count,
    cwd: nameFromWire,
    workspaceRoot: nameFromWire,
    ceiling,
    leaseMs: f.count,
    expiresMs: f.count,
    features,
    limits: f.object({
      requests: f.positive,
      streams: f.positive,
      replies: f.positive,
      replyBytes: f.positive,
      firstBytes: f.count,
      streamBytes: f.positive,
    }),
  }),
  renew: f.object(
    { token: f.optional(token), claims: f.optional(token), proof: f.optional(f.opaque(64)) },
    (m) =>
      ((m.token === undefined) === (m.claims === undefined) && 'it has either "token" or "claims"') ||
      ((m.claims === undefined) !== (m.proof === undefined) && '"claims" and "proof" go together'),
  ),
  renewed: f.object({ ceiling, expiresMs: f.count }),
  resume: f.object({
    link: f.optional(word),
    requests: f.withDefault(f.list(limits.requests, f.id), []),
    receiving: f.list(limits.streams, receivingRow),
  }),
  request: f.object({
    op: word,
    args: f.anyObject,
    seq: f.optional(f.positive),
    kept: f.optional(f.count),
    up: f.withDefault(f.flag, false),
    down: f.optional(f.count),
    streams: f.withDefault(f.list(8, f.object({ id: f.id, limit: f.optional(f.count) })), []),
    permissionMode: f.optional(ceiling),
    workspaceRoot: f.optional(nameFromWire),
  }),
  reply: f.object(
    { ok: f.optional(f.anyObject), error: f.optional(failure) },
    (m) => (m.ok === undefined) === (m.error === undefined) && 'it has either "ok" or "error"',
  ),
  data: f.object({ offset: f.count, error: f.optional(failure) }),
  credit: f.object(
    { received: f.count, limit: f.count, ended: f.withDefault(f.flag, false) },
    (m) => m.received > m.limit && '"received" is above "limit"',
  ),
  stop: nothingElse,
  cancel: nothingElse,
  ack: f.object({
    through: f.optional(f.count),
    also: f.withDefault(f.list(limits.replies, f.positive), []),
    notices: f.optional(f.count),
  }),
  notice: f.object({ number: f.positive, kind: word, message: longText, detail: f.optional(f.detail(detailBytesMax)) }),
  ping: nothingElse,
  pong: nothingElse,
  close: f.object({
    reason: f.wordOf(closeReasons, 'other'),
    message: f.withDefault(longText, ''),
    retryAfterMs: f.optional(f.count),
  }),
} satisfies { [T in FrameType]: f.Reader<unknown> };

type Fields<T extends FrameType> = ReturnType<(typeof messages)[T]>;
export type Message = {
  [T in FrameType]: { type: T; stream: number; end: boolean; dropped: boolean; payload: Uint8Array } & Fields<T>;
}[FrameType];
export type MessageOf<T extends FrameType> = Extract<Message, { type: T }>;
export type Welcome = Fields<'welcome'>;
export type Notice = Fields<'notice'>;
export type Close = Fields<'close'>;

const withStream: ReadonlySet<FrameType> = new Set<FrameType>(['request', 'reply', 'data', 'credit', 'stop', 'cancel']);
const withPayload: ReadonlySet<FrameType> = new Set<FrameType>(['request', 'reply', 'data']);

/** Throws ProtocolError: the frame is none of this protocol, or breaks a limit. */
export function toMessage(frame: Frame): Message {
  const { type, stream, end, dropped, payload } = frame;
  const objection =
    objectionToFrame(frame) ?? (type === 'request' && payload.length > limits.firstBytes && 'its first bytes are too many');
  if (objection) throw new ProtocolError(`${type} refused: ${objection}`);
  try {
    const fields = messages[type](headerOf(frame.header));
    const message = { type, stream, end, dropped, payload, ...fields } as Message;
    const why = objectionToMessage(message);
    if (why) throw new ProtocolError(why);
    return message;
  } catch (error) {
    throw new ProtocolError(`${type} refused: ${(error as Error).message}`);
  }
}

function objectionToFrame({ type, stream, end, dropped, payload }: Frame): string | undefined {
  if (withStream.has(type) !== (stream !== 0)) return stream === 0 ? 'it has no stream' : 'it has a stream';
  if (end && !withPayload.has(type)) return 'it has an end that is not its own';
  if (dropped && type !== 'data') return 'it has a flag that is not its own';
  if (payload.length > 0 && !withPayload.has(type)) return 'it has a payload';
  return undefined;
}

function objectionToMessage(m: Message): string | false {
  const carries = m.payload.length > 0 || m.end;
  switch (m.type) {
    case 'request':
      return !m.up && carries && 'bytes or an end without "up"';
    case 'reply':
      return m.error !== undefined && carries && 'bytes or an end with "error"';
    case 'data':
      return (
        (m.error !== undefined && !m.end && '"error" without an end') ||
        (m.dropped && carries && 'bytes or an end with what was dropped')
      );
    default:
      return false;
  }
}

function headerOf(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return {};
  let header: string;
  try {
    header = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ProtocolError('its header is not UTF-8');
  }
  if (!isModest(header)) throw new ProtocolError('its header is too deep or holds too many values');
  try {
    return JSON.parse(header);
  } catch {
    throw new ProtocolError('its header is not JSON');
  }
}

/** Looked at before it is parsed: a megabyte of brackets or commas would become many times that. */
function isModest(header: string): boolean {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let i = 0; i < header.length; i++) {
    const c = header[i];
    if (inString) {
      if (c === '\\') i++;
      else if (c === '"') inString = false;
    } else if (c === '"') {
      inString = true;
    } else if (c === '[' || c === '{') {
      if (++depth > depthMax || ++values > valuesMax) return false;
    } else if (c === ']' || c === '}') {
      depth--;
    } else if (c === ',' && ++values > valuesMax) {
      return false;
    }
  }
  return true;
}

/** What this side sends; absent fields are left out. Whoever makes it keeps to the limits of its sizes. */
export interface Sending {
  type: FrameType;
  stream?: number;
  end?: boolean;
  payload?: Uint8Array;
  header?: f.JsonObject;
}

export function toFrame({ type, stream = 0, end = false, payload = nothing, header }: Sending): Frame {
  const text = header === undefined ? '' : JSON.stringify(header);
  return { type, stream, end, dropped: false, payload, header: text === '{}' || text === '' ? nothing : Buffer.from(text) };
}
