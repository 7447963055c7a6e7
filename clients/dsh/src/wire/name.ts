import { isObject, type Reader } from './fields.js';
import { ProtocolError } from './frame.js';

// Paths and arguments are bytes. On the wire they are a string where they are UTF-8 and
// {"b64": "…"} where they are not. Here they are strings throughout: bytes that are no UTF-8 stand
// as NUL and their base64, and no name holds a NUL.

export type WireName = string | { b64: string };

const mark = '\0';

export function nameToWire(name: string): WireName {
  return name.startsWith(mark) ? { b64: name.slice(1) } : name;
}

export const wireName = (bytesMax: number): Reader<string> => (value) => {
  if (isObject(value) && typeof value.b64 === 'string') return nameFromBytes(Buffer.from(value.b64, 'base64'), bytesMax);
  if (typeof value === 'string') return nameFromBytes(Buffer.from(value, 'utf8'), bytesMax);
  throw new ProtocolError('it must be a name: a string or {"b64"}');
};

export const nameFromWire = wireName(4096);

export function nameFromBytes(bytes: Uint8Array, bytesMax = 4096): string {
  if (bytes.length === 0 || bytes.length > bytesMax || bytes.includes(0)) {
    throw new ProtocolError(`it must be a name of 1 to ${bytesMax} bytes without NUL`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return mark + Buffer.from(bytes).toString('base64');
  }
}

export function nameToBytes(name: string): Uint8Array {
  return name.startsWith(mark) ? Buffer.from(name.slice(1), 'base64') : Buffer.from(name, 'utf8');
}

/** For people: what is not UTF-8 shows as U+FFFD. */
export function nameToShow(name: string): string {
  return Buffer.from(nameToBytes(name)).toString('utf8');
}
