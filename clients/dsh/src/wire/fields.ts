import { ProtocolError } from './frame.js';

// Kinds of fields, each with its limit. A field's reader gives its value or throws what it must be;
// one that is absent and one that is null mean the same.

export type Reader<T> = (value: unknown) => T;

const refuse = (what: string): never => {
  throw new ProtocolError(`it must be ${what}`);
};

export const text = (bytesMin: number, bytesMax: number): Reader<string> => (value) => {
  if (typeof value !== 'string') return refuse('a text');
  const bytes = Buffer.byteLength(value);
  return bytes >= bytesMin && bytes <= bytesMax ? value : refuse(`a text of ${bytesMin} to ${bytesMax} bytes`);
};

export const number = (min: number, max = Number.MAX_SAFE_INTEGER): Reader<number> => (value) =>
  Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
    ? (value as number)
    : refuse(`a whole number from ${min} to ${max}`);

export const count = number(0);
export const positive = number(1);
export const id = number(1, 0xffff_ffff);

export const flag: Reader<boolean> = (value) => (typeof value === 'boolean' ? value : refuse('true or false'));

export const hex = (digits: number): Reader<string> => (value) =>
  typeof value === 'string' && value.length === digits && /^[0-9a-f]*$/.test(value)
    ? value
    : refuse(`${digits} lower-case hexadecimal digits`);

/** A text of so many characters that is compared and never read. */
export const opaque = (characters: number): Reader<string> => (value) =>
  typeof value === 'string' && value.length === characters ? value : refuse(`a text of ${characters} characters`);

export const oneOf = <T extends string>(...words: T[]): Reader<T> => (value) =>
  words.includes(value as T) ? (value as T) : refuse(`one of ${words.join(', ')}`);

/** A word of a list that grows: one of a later version counts as `other`. */
export const wordOf = <T extends string>(words: readonly T[], other: T): Reader<T> => (value) =>
  typeof value !== 'string' ? refuse('a word') : words.includes(value as T) ? (value as T) : other;

export const list = <T>(max: number, item: Reader<T>): Reader<T[]> => (value) =>
  Array.isArray(value) && value.length <= max ? value.map(item) : refuse(`a list of at most ${max}`);

export type JsonObject = { [name: string]: unknown };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const anyObject: Reader<JsonObject> = (value) => (isObject(value) ? value : refuse('an object'));

export const detail = (bytesMax: number): Reader<JsonObject> => (value) =>
  isObject(value) && Buffer.byteLength(JSON.stringify(value)) <= bytesMax
    ? value
    : refuse(`an object of at most ${bytesMax} bytes`);

type Optional<T> = Reader<T | undefined> & { optional: true };
export const optional = <T>(reader: Reader<T>): Optional<T> =>
  Object.assign((value: unknown) => (value === undefined || value === null ? undefined : reader(value)), {
    optional: true as const,
  });
export const withDefault = <T>(reader: Reader<T>, otherwise: T): Reader<T> => (value) =>
  value === undefined || value === null ? otherwise : reader(value);

type Shape = { [name: string]: Reader<unknown> };
type Read<S extends Shape> = { [K in keyof S]: ReturnType<S[K]> };

/** An object of known fields; others are skipped. `objection` says what no single field can. */
export const object =
  <S extends Shape>(shape: S, objection?: (read: Read<S>) => string | false | undefined): Reader<Read<S>> =>
  (value) => {
    if (!isObject(value)) return refuse('an object');
    const read: JsonObject = {};
    for (const [name, reader] of Object.entries(shape)) {
      try {
        const field = reader(value[name] ?? undefined);
        if (field !== undefined) read[name] = field;
      } catch (error) {
        throw new ProtocolError(`"${name}": ${(error as Error).message}`);
      }
    }
    const why = objection?.(read as Read<S>);
    if (why) throw new ProtocolError(why);
    return read as Read<S>;
  };
