import type { Ceiling } from '../wire/message.js';
import { inSandbox, type World } from './world.js';

// Permission modes by dsh's names and by the protocol's.

export interface Policy {
  mode: string;
  workspaceRoot: string;
}
export type Mode = 'read-only' | 'workspace-write' | 'danger-full-access';

const ceilings: { [mode in Mode]: Ceiling } = {
  'read-only': 'ReadOnly',
  'workspace-write': 'WorkspaceWrite',
  'danger-full-access': 'DangerFullAccess',
};

export const isMode = (mode: string): mode is Mode => Object.hasOwn(ceilings, mode);

export const modeOf = (ceiling: Ceiling): Mode =>
  (Object.keys(ceilings) as Mode[]).find((mode) => ceilings[mode] === ceiling) ?? 'read-only';

const order: Mode[] = ['read-only', 'workspace-write', 'danger-full-access'];
export const narrower = (one: Mode, other: Mode): Mode => (order.indexOf(one) < order.indexOf(other) ? one : other);

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
