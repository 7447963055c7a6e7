import type { Ceiling } from '../wire/message.js';

// Permission modes by dsh's names and by the protocol's.

export type Mode = 'read-only' | 'workspace-write' | 'danger-full-access';

export const ceilings: { [mode in Mode]: Ceiling } = {
  'read-only': 'ReadOnly',
  'workspace-write': 'WorkspaceWrite',
  'danger-full-access': 'DangerFullAccess',
};

export const isMode = (mode: string): mode is Mode => Object.hasOwn(ceilings, mode);

export const modeOf = (ceiling: Ceiling): Mode =>
  (Object.keys(ceilings) as Mode[]).find((mode) => ceilings[mode] === ceiling) ?? 'read-only';

const order: Mode[] = ['read-only', 'workspace-write', 'danger-full-access'];
export const narrower = (one: Mode, other: Mode): Mode => (order.indexOf(one) < order.indexOf(other) ? one : other);
