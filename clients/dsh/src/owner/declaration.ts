import { execFile } from 'node:child_process';
import type { Settled } from './config.js';

// A Sandbox that the harness declares itself, by the program that people type. It knows standalone
// controllers and clusters, and who may do what.

const found = 3; // Exit code: there is no such object.
const waitSeconds = 300;

const seconds = (ms: number): number => Math.max(1, Math.round(ms / 1_000));

/** The object as it is declared; JSON is YAML, too. */
export function manifestOf(config: Settled): string {
  const { sandbox: name, namespace, template, timeoutMs, heartbeatMs } = config;
  return JSON.stringify({
    apiVersion: 'sandfleet.dev/v1alpha1',
    kind: 'Sandbox',
    metadata: { name, namespace },
    spec: {
      template: { id: template },
      keepAlive: { timeoutSeconds: seconds(timeoutMs), heartbeatSeconds: seconds(heartbeatMs) },
    },
  });
}

export class Declaration {
  constructor(private readonly config: Settled) {}

  /** True: it is new, or was paused and runs again because of us; false: somebody else's was there. */
  async begin(): Promise<{ made: boolean }> {
    const there = await this.run(['get', this.config.sandbox, '-o', 'json'], '', [found]);
    if (there.code === 0) {
      await this.run(['resume', this.config.sandbox, '--wait', '--timeout', `${waitSeconds}`]);
      return { made: false };
    }
    await this.run(['apply', '-f', '-', '--wait', '--timeout', `${waitSeconds}`], manifestOf(this.config));
    return { made: true };
  }

  pause(): Promise<unknown> {
    return this.run(['pause', this.config.sandbox, '--wait', '--timeout', `${waitSeconds}`]);
  }

  kill(): Promise<unknown> {
    return this.run(['delete', this.config.sandbox, '--policy', 'Kill', '--remove-manifest', '--wait', '--timeout', `${waitSeconds}`]);
  }

  private run(words: string[], input = '', alsoFine: number[] = []): Promise<{ code: number; output: string }> {
    const { cli, state, namespace } = this.config;
    const where = [...(state === undefined ? [] : ['--state', state]), '--namespace', namespace];
    return new Promise((resolve, reject) => {
      const child = execFile(cli, [words[0]!, ...where, ...words.slice(1)], { timeout: (waitSeconds + 30) * 1_000 }, (error, output, errors) => {
        const code = error === null ? 0 : error.code;
        if (typeof code === 'number' && (code === 0 || alsoFine.includes(code))) return resolve({ code, output });
        reject(new Error(`${cli} ${words[0]} ${this.config.sandbox} failed: ${errors.trim() || error?.message}`));
      });
      child.stdin?.on('error', () => {}); // It ended without reading; its exit tells why.
      child.stdin?.end(input);
    });
  }
}
