import { RemoteFailure, failure } from '../session/failure.js';

const notText = (): RemoteFailure => new RemoteFailure(failure('FS_NOT_TEXT', 'it is not UTF-8 text'));

/** Chunks of bytes as text: no code point is split, a byte order mark at the beginning is no part of it, bytes that are no text fail when they come. */
export async function* decoded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (chunk?: Uint8Array): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw notText();
    }
  };
  for await (const chunk of chunks) {
    const text = decode(chunk);
    if (text !== '') yield text;
  }
  const rest = decode();
  if (rest !== '') yield rest;
}

/** Lines as differences are shown by: a carriage return that stands alone is left alone. */
export const withLf = (text: string): string => text.replaceAll('\r\n', '\n');
