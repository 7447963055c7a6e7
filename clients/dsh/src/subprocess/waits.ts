import type { Calls } from '../link/calls.js';

/** What the sandbox says of a process; `signal` and `exitCode` are the kernel's words. */
export interface ProcessState {
  pid: number;
  exited: boolean;
  exitCode?: number | null;
  signal?: string | null;
  settled: boolean;
  empty: boolean;
  stdout?: OutputState;
  stderr?: OutputState;
}
export interface OutputState {
  bytes: number;
  ended: boolean;
  lossy: boolean;
  spillPath?: unknown;
}

const atOnceMost = 64; // So that waiting leaves room for whatever else a session asks.
const turnMs = 1_000; // Of each, while others wait for a turn.

/** Waits for processes, of which a session may have more than it may have unanswered requests. */
export class Waits {
  private atOnce = 0;
  private readonly line: (() => void)[] = [];

  constructor(private readonly calls: Calls) {}

  async until(handle: string, until: 'exit' | 'settled' | 'empty', signal?: AbortSignal): Promise<ProcessState> {
    for (;;) {
      await this.turn();
      try {
        const timeoutMs = this.line.length > 0 ? turnMs : undefined;
        const ok = await this.calls.call('process.wait', { handle, until, timeoutMs }, { signal });
        if (ok.reached === true) return ok.state as ProcessState;
      } finally {
        this.atOnce--;
        this.line.shift()?.();
      }
    }
  }

  private async turn(): Promise<void> {
    while (this.atOnce >= atOnceMost) await new Promise<void>((resolve) => this.line.push(resolve));
    this.atOnce++;
  }
}
