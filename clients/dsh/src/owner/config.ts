import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import type { SyncFunction } from './sync.js';

/** What an entry in cordis.yml may say. Times are in milliseconds. */
export interface Config {
  /** The Sandbox: `name`, or `namespace/name`. Without one, a name of its own is made up; then `template` says of what. */
  sandbox?: string;
  /** agentd's Unix socket. Default: `$SANDFLEET_SOCKET`, else where agentd listens by itself. */
  socket?: string;
  /** A file with the token that agentd asks for; read anew each time one is needed. */
  tokenFile?: string;
  /** How long a session, and what runs in it, outlives its link; then requests fail. Default 300,000. */
  leaseMs?: number;
  /** Declares the Sandbox when there is none, of this template. */
  template?: string;
  /** The program that declares, pauses and deletes it. Default `sandfleet`. */
  cli?: string;
  /** State folder of a standalone controller; without it, the program looks where it does by itself. */
  state?: string;
  /** Of the Sandbox that is declared: how long it lives unattended, and how often that is put off. Defaults 300,000 and 30,000. */
  timeoutMs?: number;
  heartbeatMs?: number;
  /** Whether the Sandbox that was declared is paused at the end, or else deleted. Default true. One that was there is left alone. */
  pauseOnDispose?: boolean;
  /** The workspace in the sandbox. Default: the Sandbox's own. */
  cwd?: string;
  /** The same on the host. Default: where the harness was started. */
  hostWorkspace?: string;
  /** Names of path segments that are never carried over. */
  excludes?: readonly string[];
  /** Whether, or how, the workspace is carried in at the beginning and out at the end. Default: for a Sandbox that is declared here. */
  syncIn?: boolean | SyncFunction;
  syncOut?: boolean | SyncFunction;
  /** Hears what happened to the sandbox, in words for a model. */
  notify?: (text: string) => void;
  /** Taken so that an entry of dsh-e2b still loads, and not used: the key is the controller's. */
  apiKey?: string;
}

export interface Settled extends Config {
  sandbox: string;
  namespace: string;
  declares: boolean;
  socket: string;
  leaseMs: number;
  cli: string;
  timeoutMs: number;
  heartbeatMs: number;
  pauseOnDispose: boolean;
  hostWorkspace: string;
  excludes: readonly string[];
}

export const excludesByDefault: readonly string[] = ['node_modules', '.pnpm-store', '.dsh-e2b'];

/** Where agentd listens when it is not told otherwise: one of this user's own where that is, else the machine's. */
function usualSocket(): string {
  const { XDG_RUNTIME_DIR: own } = process.env;
  const ofUser = own && `${own}/sandfleet/agentd.sock`;
  return ofUser && existsSync(ofUser) ? ofUser : '/run/sandfleet/agentd.sock';
}

const nameOfKubernetes = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

type Kind = 'text' | 'milliseconds' | 'flag' | 'texts' | 'flag or function' | 'function';
const kinds: { [key in keyof Config]-?: Kind } = {
  sandbox: 'text',
  socket: 'text',
  tokenFile: 'text',
  leaseMs: 'milliseconds',
  template: 'text',
  cli: 'text',
  state: 'text',
  timeoutMs: 'milliseconds',
  heartbeatMs: 'milliseconds',
  pauseOnDispose: 'flag',
  cwd: 'text',
  hostWorkspace: 'text',
  excludes: 'texts',
  syncIn: 'flag or function',
  syncOut: 'flag or function',
  notify: 'function',
  apiKey: 'text',
};

const fits: { [kind in Kind]: (value: unknown) => boolean } = {
  text: (value) => typeof value === 'string' && value !== '',
  milliseconds: (value) => Number.isFinite(value) && (value as number) > 0,
  flag: (value) => typeof value === 'boolean',
  texts: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string' && one !== '' && !one.includes('/')),
  'flag or function': (value) => typeof value === 'boolean' || typeof value === 'function',
  function: (value) => typeof value === 'function',
};

/** What is wrong with it, each in a line. */
export function objectionsTo(config: Config): string[] {
  const wrong: string[] = [];
  for (const [key, value] of Object.entries(config)) {
    const kind = kinds[key as keyof Config] as Kind | undefined;
    if (kind === undefined) wrong.push(`"${key}" is not known`);
    else if (value !== undefined && value !== null && !fits[kind](value)) {
      wrong.push(`"${key}" must be ${kind === 'texts' ? 'a list of names without a slash' : `a ${kind}`}`);
    }
  }
  if (wrong.length > 0) return wrong;
  const { sandbox, template, cwd, hostWorkspace, timeoutMs = 300_000, heartbeatMs = 30_000, leaseMs = 300_000 } = config;
  if (sandbox === undefined && template === undefined) wrong.push('"sandbox" names the Sandbox to work in, or "template" what to make one of');
  if (sandbox !== undefined && !sandbox.split('/', 2).every((part) => nameOfKubernetes.test(part))) {
    wrong.push('"sandbox" must be a name, or namespace/name');
  }
  if (cwd !== undefined && !posix.isAbsolute(cwd)) wrong.push('"cwd" must be an absolute path of the sandbox');
  if (hostWorkspace !== undefined && !posix.isAbsolute(hostWorkspace)) wrong.push('"hostWorkspace" must be an absolute path');
  if (heartbeatMs * 3 > timeoutMs) wrong.push('"heartbeatMs" must be at most a third of "timeoutMs"');
  if (leaseMs < 1_000 || leaseMs > 3_600_000) wrong.push('"leaseMs" must be from 1,000 to 3,600,000');
  return wrong;
}

export function settle(config: Config, madeUpName: () => string): Settled {
  const [first = '', second] = (config.sandbox ?? madeUpName()).split('/', 2);
  return {
    ...config,
    sandbox: second ?? first,
    namespace: second === undefined ? 'default' : first,
    declares: config.template !== undefined,
    socket: config.socket ?? process.env.SANDFLEET_SOCKET ?? usualSocket(),
    leaseMs: config.leaseMs ?? 300_000,
    cli: config.cli ?? 'sandfleet',
    timeoutMs: config.timeoutMs ?? 300_000,
    heartbeatMs: config.heartbeatMs ?? 30_000,
    pauseOnDispose: config.pauseOnDispose ?? true,
    hostWorkspace: config.hostWorkspace ?? process.cwd(),
    excludes: config.excludes ?? excludesByDefault,
  };
}

/** As cordis asks for it (Standard Schema v1): a wrong entry does not load, and says why. */
export const configSchema = {
  '~standard': {
    version: 1 as const,
    vendor: 'sandfleet',
    validate(value: unknown): { value: Config } | { issues: { message: string }[] } {
      const config = (value ?? {}) as Config;
      const wrong = objectionsTo(config);
      return wrong.length === 0 ? { value: config } : { issues: wrong.map((message) => ({ message })) };
    },
  },
};
