// Frames in bytes, as docs/protocol.md lays them out: a length, a type, flags, a stream's id, a
// JSON header and raw bytes. All sizes are bounded here; what a header means is message.ts's.

export const frameTypes = [
  'hello', 'challenge', 'prove', 'welcome', 'renew', 'renewed', 'resume', 'request', 'reply',
  'data', 'credit', 'stop', 'cancel', 'ack', 'notice', 'ping', 'pong', 'close',
] as const;
export type FrameType = (typeof frameTypes)[number];

export const headerBytesMax = 1 << 20;
export const payloadBytesMax = 256 << 10;
const prefixBytes = 10; // Type, flags, stream, header length.
const lengthMax = prefixBytes + headerBytesMax + payloadBytesMax;
const endFlag = 1;
const droppedFlag = 2;
const firstTypeToSkip = 128;

export interface Frame {
  type: FrameType;
  stream: number; // 0: it has none.
  end: boolean;
  dropped: boolean;
  header: Uint8Array; // JSON, not looked into here.
  payload: Uint8Array;
}

/** The peer sent what is no frame of this protocol, or broke a limit of it. */
export class ProtocolError extends Error {
  override name = 'ProtocolError';
}

export const nothing = new Uint8Array(0);

/** With its length. A frame beyond the bounds is a bug of whoever made it. */
export function encodeFrame(frame: Frame): Uint8Array {
  const { header, payload } = frame;
  if (header.length > headerBytesMax) throw new RangeError(`a header of ${header.length} bytes`);
  if (payload.length > payloadBytesMax) throw new RangeError(`a payload of ${payload.length} bytes`);
  const bytes = Buffer.allocUnsafe(4 + prefixBytes + header.length + payload.length);
  bytes.writeUInt32BE(bytes.length - 4, 0);
  bytes.writeUInt8(frameTypes.indexOf(frame.type) + 1, 4);
  bytes.writeUInt8((frame.end ? endFlag : 0) | (frame.dropped ? droppedFlag : 0), 5);
  bytes.writeUInt32BE(frame.stream, 6);
  bytes.writeUInt32BE(header.length, 10);
  bytes.set(header, 4 + prefixBytes);
  bytes.set(payload, 4 + prefixBytes + header.length);
  return bytes;
}

/** One whole frame; undefined: one of a later version, to be skipped. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.length < 4) throw new ProtocolError('a frame has no length');
  const length = view.readUInt32BE(0);
  checkLength(length);
  if (length !== view.length - 4) throw new ProtocolError('a frame is not as long as it says');
  const code = view.readUInt8(4);
  if (code >= firstTypeToSkip) return undefined;
  const type = frameTypes[code - 1];
  if (type === undefined) throw new ProtocolError(`a frame of unknown type ${code}`);
  const flags = view.readUInt8(5);
  if (flags & ~(endFlag | droppedFlag)) throw new ProtocolError(`a frame with unknown flags ${flags}`);
  const headerBytes = view.readUInt32BE(10);
  const payloadBytes = length - prefixBytes - headerBytes;
  if (headerBytes > headerBytesMax || payloadBytes < 0 || payloadBytes > payloadBytesMax) {
    throw new ProtocolError('a frame whose parts are longer than they may be');
  }
  const payloadAt = 4 + prefixBytes + headerBytes;
  return {
    type,
    stream: view.readUInt32BE(6),
    end: (flags & endFlag) !== 0,
    dropped: (flags & droppedFlag) !== 0,
    header: view.subarray(4 + prefixBytes, payloadAt),
    payload: view.subarray(payloadAt),
  };
}

function checkLength(length: number): void {
  if (length < prefixBytes || length > lengthMax) throw new ProtocolError(`a frame of ${length} bytes`);
}

/** Frames that follow each other on a byte stream. Holds at most one that is not complete, and what came behind it. */
export class FrameReader {
  private chunks: Uint8Array[] = [];
  private held = 0;

  add(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.chunks.push(bytes);
    this.held += bytes.length;
  }

  /** The next one that is complete; undefined when more bytes are needed. After an error the stream has no frames any more. */
  next(): Frame | undefined {
    while (this.held >= 4) {
      const length = Buffer.from(this.peek(4)).readUInt32BE(0);
      checkLength(length);
      if (this.held < 4 + length) return undefined;
      const frame = decodeFrame(this.take(4 + length));
      if (frame !== undefined) return frame;
    }
    return undefined;
  }

  private peek(count: number): Uint8Array {
    const first = this.chunks[0]!;
    if (first.length >= count) return first.subarray(0, count);
    this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0]!.subarray(0, count);
  }

  private take(count: number): Uint8Array {
    if (this.chunks[0]!.length < count) this.chunks = [Buffer.concat(this.chunks)];
    const first = this.chunks[0]!;
    if (first.length === count) this.chunks.shift();
    else this.chunks[0] = first.subarray(count);
    this.held -= count;
    return first.subarray(0, count);
  }
}
