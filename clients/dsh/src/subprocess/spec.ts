import { randomBytes } from 'node:crypto';
import type { SubprocessOutputMode, SubprocessSpawnSpec } from '@deepseek-ai/dsh-subprocess';
import type { JsonObject } from '../wire/fields.js';

// What a spawn asks for, in the protocol's words.

const graceMsMost = 0x7fff_ffff;

export const newHandle = (): string => randomBytes(18).toString('base64url');

/** What is wrong with a request to spawn, before anything is done. */
export function objectionTo(spec: Pick<SubprocessSpawnSpec, 'argv' | 'graceMs' | 'env'>): string | undefined {
  const { argv, graceMs, env = {} } = spec;
  if (argv.length === 0 || argv[0] === '') return 'argv names no program';
  if (argv.some((argument) => argument.includes('\0'))) return 'an argument holds a NUL';
  if (!Number.isFinite(graceMs) || graceMs <= 0 || graceMs > graceMsMost) return `graceMs must be above 0 and at most ${graceMsMost}`;
  for (const [name, value] of Object.entries(env)) {
    if (name === '' || name.includes('=') || name.includes('\0')) return `"${name}" cannot name a variable of the environment`;
    if (value?.includes('\0')) return `the variable ${name} holds a NUL`;
  }
  return undefined;
}

/** Changes to the sandbox's own environment; nothing of the host's goes along. */
export const environment = (env: NodeJS.ProcessEnv = {}): [string, string | null][] =>
  Object.entries(env).map(([name, value]) => [name, value ?? null]);

/** An output that is inherited is a pipe that is copied to the harness's own. */
export function outputMode(mode: SubprocessOutputMode, stream: number): JsonObject {
  if (mode === 'pipe' || mode === 'inherit') return { pipe: stream };
  const collect: JsonObject = { maxBytes: Math.floor(mode.maxBytes), stream };
  if (mode.spill !== undefined) collect.spill = { maxBytes: Math.floor(mode.spill.maxBytes) };
  return { collect };
}

export const wholeMs = (ms: number): number => Math.max(1, Math.round(ms));
