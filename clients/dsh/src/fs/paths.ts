import { nameToBytes, nameToShow } from '../wire/name.js';

// What can be said of a target without asking. A target's key is its path in the sandbox, absolute
// and through no link.

export const processPath = (key: string): string => nameToShow(key);

/** A file: URI of the sandbox; every byte that is not plain in a path is percent-encoded. */
export function fileUrl(key: string): string {
  let url = 'file://';
  for (const byte of nameToBytes(key)) {
    const plain = /[A-Za-z0-9\-._~/]/.test(String.fromCharCode(byte)) && byte < 0x80;
    url += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return url;
}

/** By components: /a/b holds /a/b/c and not /a/bc. */
export function contains(parent: string, child: string): boolean {
  const above = Buffer.from(nameToBytes(parent));
  const below = Buffer.from(nameToBytes(child));
  if (above.equals(below)) return true;
  const slash = above.at(-1) === 0x2f ? above : Buffer.concat([above, Buffer.from('/')]);
  return below.subarray(0, slash.length).equals(slash);
}
