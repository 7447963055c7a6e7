import { posix } from 'node:path';
import type { Welcome } from '../wire/message.js';
import type { Calls } from '../link/calls.js';
import type { Mode } from './mode.js';

/**
 * The sandbox as the providers see it: how to ask, and what stands for what. Paths of the harness
 * mean nothing in it but for the workspace, which the host and the sandbox have under names of
 * their own.
 */
export interface World {
  readonly calls: Calls;
  /** What the sandbox last said of itself. */
  readonly welcome: Welcome;
  readonly cwd: string;
  readonly hostWorkspace: string;
  /** What the deployment's policy says where a call says nothing; undefined: there is none. */
  defaultMode(): Mode | undefined;
}

/** A folder that a caller gives as a base: the host's workspace, or one in it, becomes the sandbox's. */
export function inSandbox({ cwd, hostWorkspace }: Pick<World, 'cwd' | 'hostWorkspace'>, folder: string): string {
  const below = posix.relative(hostWorkspace, folder);
  const isBelow = posix.isAbsolute(folder) && below !== '..' && !below.startsWith('../');
  return isBelow ? posix.join(cwd, below) : folder;
}
