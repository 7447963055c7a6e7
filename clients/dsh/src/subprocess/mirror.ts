import type { SubprocessOutputRead, SubprocessOutputReader } from '@deepseek-ai/dsh-subprocess';

/**
 * The last bytes of an output, exactly `maxBytes` of them, so that they can be read without asking.
 * Offsets count the bytes of the whole stream and belong to whoever reads.
 */
export class Mirror implements SubprocessOutputReader {
  private chunks: Uint8Array[] = [];
  private kept = 0;
  total = 0;
  ended = false;
  spillPath: string | undefined;

  constructor(private readonly maxBytes: number) {}

  /** Bytes that stand at `offset`; what lies between them and those before was let go. */
  push(offset: number, bytes: Uint8Array): void {
    if (offset > this.total) {
      this.chunks = [];
      this.kept = 0;
    }
    const fresh = bytes.subarray(Math.max(0, bytes.length - this.maxBytes));
    this.total = offset + bytes.length;
    if (fresh.length === 0) return;
    this.chunks.push(Uint8Array.prototype.slice.call(fresh)); // Of its own, so that nothing larger is kept alive.
    this.kept += fresh.length;
    this.trim();
    if (this.chunks.length > 256) this.chunks = [Buffer.concat(this.chunks)];
  }

  end(): void {
    this.ended = true;
  }

  readFrom(fromByte: number): SubprocessOutputRead {
    const tailFrom = this.total - this.kept;
    const lossy = fromByte < tailFrom;
    const from = Math.min(Math.max(fromByte, tailFrom), this.total);
    const bytes = this.slice(from - tailFrom);
    const cut = lossy ? leadingRest(bytes) : 0;
    const open = this.ended ? 0 : unfinished(bytes);
    return {
      text: bytes.toString('utf8', cut, bytes.length - open),
      nextOffset: this.total - open,
      lossy,
      ...(this.spillPath === undefined ? {} : { spillPath: this.spillPath }),
    };
  }

  private slice(from: number): Buffer {
    const bytes = this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks);
    this.chunks = bytes.length === 0 ? [] : [bytes];
    return Buffer.from(bytes.buffer, bytes.byteOffset + from, bytes.length - from);
  }

  private trim(): void {
    while (this.kept > this.maxBytes) {
      const first = this.chunks[0]!;
      const excess = this.kept - this.maxBytes;
      if (first.length <= excess) this.chunks.shift();
      else this.chunks[0] = first.subarray(excess);
      this.kept -= Math.min(first.length, excess);
    }
  }
}

const continues = (byte: number): boolean => (byte & 0xc0) === 0x80;

/** Bytes at the beginning that belong to a code point whose first byte was let go. */
function leadingRest(bytes: Uint8Array): number {
  let count = 0;
  while (count < Math.min(3, bytes.length) && continues(bytes[count]!)) count++;
  return count;
}

/** Bytes at the end that begin a code point and do not finish it: they are read when it is whole. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (continues(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}
