import { readFile } from 'node:fs/promises';

// docs/protocol.md, "Without a token".
const blanksAround = /^[ \t\r\n]+|[ \t\r\n]+$/g;
const wholeToken = /^[\x21-\x7e]{1,8192}$/;

/** Why there is no token to dial with. `absent`: it is not there; `refused`: none will come; else it may be there later. */
export class NoToken extends Error {
  constructor(message: string, readonly kind: 'absent' | 'refused' | 'later') {
    super(message);
  }
}

const kindOf: Record<string, NoToken['kind']> = { ENOENT: 'absent', ENOTDIR: 'absent', EACCES: 'refused', EPERM: 'refused' };

/** The token that a file has by now. Rejects with NoToken. */
export async function readToken(file: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(file, 'latin1'); // A character is a byte.
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    throw new NoToken(message, kindOf[code ?? ''] ?? 'later');
  }
  const token = text.replace(blanksAround, '');
  if (token === '') throw new NoToken(`there is no token in ${file}`, 'absent');
  if (!wholeToken.test(token)) throw new NoToken(`${file} holds no token`, 'refused');
  return token;
}

/** Whether no token will come. One that is absent is waited for by who was `reached` once: it may just be replaced. */
export function isFinal(error: unknown, reached: boolean): boolean {
  return error instanceof NoToken && (error.kind === 'refused' || (error.kind === 'absent' && !reached));
}
