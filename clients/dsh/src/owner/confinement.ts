import type { Context } from '@deepseek-ai/cordis';
import { SandboxProvider, type ConfinedArgv, type SandboxPolicy } from '@deepseek-ai/dsh-sandbox';
import type { Policy } from './narrowing.js';

// A confined command is known by the beginning of its argv. It names no program: the executor holds
// the process to the mode in the kernel, or refuses to start it, so there is no wrapper that could
// be left out.

const mark = 'sandfleet:confined';

export function confined(argv: readonly string[], { mode, workspaceRoot }: Policy): string[] {
  return [mark, mode, workspaceRoot, ...argv];
}

export function unconfined(argv: readonly string[]): { argv: readonly string[]; policy: Policy | undefined } {
  const [first, mode, workspaceRoot, ...rest] = argv;
  if (first !== mark || mode === undefined || workspaceRoot === undefined || rest.length === 0) return { argv, policy: undefined };
  return { argv: rest, policy: { mode, workspaceRoot } };
}

/** `ctx.sandbox` of the sandbox: its commands are confined there and not on the host. */
export class SandboxConfinement extends SandboxProvider {
  constructor(ctx: Context) {
    super(ctx);
  }

  confine(argv: readonly string[], policy: SandboxPolicy): ConfinedArgv {
    return {
      argv: confined(argv, policy),
      enforcement: 'full',
      denialSignatures: ['permission denied', 'read-only file system', 'operation not permitted'],
      runnerFailureRules: [],
    };
  }
}
