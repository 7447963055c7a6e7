import type { Ceiling } from '../wire/message.js';
import { ceilings, isMode } from './mode.js';
import { inSandbox, type World } from './world.js';

/** What a caller's policy lets a call change. */
export interface Policy {
  mode: string;
  workspaceRoot: string;
}

/** The same as it travels. */
export interface Narrowing {
  permissionMode?: Ceiling;
  workspaceRoot?: string;
}

/**
 * What a request asks for less than its session may. A root of the host that has no place in the
 * sandbox narrows nothing: the sandbox's own root holds in any case. Undefined: nobody knows the
 * mode, so it allows nothing.
 */
export function narrowingOf(world: Pick<World, 'cwd' | 'hostWorkspace' | 'welcome'>, policy: Policy | undefined): Narrowing | undefined {
  if (policy === undefined) return {};
  if (!isMode(policy.mode)) return undefined;
  const narrowing: Narrowing = { permissionMode: ceilings[policy.mode] };
  const root = inSandbox(world, policy.workspaceRoot);
  const whole = world.welcome.workspaceRoot;
  if (policy.mode === 'workspace-write' && (root === whole || root.startsWith(`${whole}/`))) {
    narrowing.workspaceRoot = root;
  }
  return narrowing;
}
