import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { createHash } from 'node:crypto';
import type { Calls } from '../link/calls.js';
import { RemoteFailure } from '../session/failure.js';

// dsh's search tools name ripgrep by the path that it has on the host. In the sandbox that is the
// sandbox's own `rg`, and where it has none, a copy of the host's.

/** Whether a program's path is that of the ripgrep that comes with the harness. */
export function isHostRipgrep(program: string, executable = process.execPath): boolean {
  if (program === `${executable}-rg`) return true;
  return /[/\\]@vscode[/\\]ripgrep[^/\\]*[/\\]bin[/\\]rg(\.exe)?$/.test(program);
}

/** Finds the sandbox's `rg` once, or brings it. */
export class Ripgrep {
  private found: Promise<string> | undefined;

  constructor(
    private readonly calls: Calls,
    private readonly runtimeRoot: () => Promise<string>,
  ) {}

  path(onHost: string): Promise<string> {
    if (this.found !== undefined) return this.found;
    const found = this.find(onHost);
    found.catch(() => (this.found = undefined)); // The next search tries again.
    return (this.found = found);
  }

  private async find(onHost: string): Promise<string> {
    try {
      const ok = await this.calls.call('process.resolveExecutable', { command: 'rg' });
      return ok.path as string;
    } catch (error) {
      if (!(error instanceof RemoteFailure) || error.code !== 'EXECUTABLE_NOT_FOUND') throw error;
    }
    const program = await readFile(onHost);
    const name = `rg-${createHash('sha256').update(program).digest('hex').slice(0, 16)}`;
    const path = posix.join(await this.runtimeRoot(), name);
    const there = await this.calls.call('fs.stat', { path });
    if ((there.info as { size?: number } | null | undefined)?.size !== program.length) {
      await this.calls.call('fs.write', { path, size: program.length, mode: 0o755 }, { mutating: true, upload: program });
    }
    return path;
  }
}
