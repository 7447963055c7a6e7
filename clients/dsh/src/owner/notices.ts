import type { Notice } from '../wire/message.js';

const keptMost = 16;

/** What happened to the sandbox, in words for a model: told as it comes, and kept until it is asked for. */
export class Notices {
  private kept: string[] = [];

  constructor(public notify: ((text: string) => void) | undefined) {}

  add({ kind, message }: Pick<Notice, 'kind' | 'message'>): void {
    this.say(`[sandbox ${kind}] ${message}`);
  }

  /** A session that does not go on: what it ran is gone, though files may be what they were. */
  lost(cwd: string): void {
    this.say(
      `[sandbox lost] The processes and terminals of before are gone, and what was under way may or may not have happened. ` +
        `Look at the working tree in ${cwd} before you rely on it.`,
    );
  }

  consume(): string | undefined {
    const text = this.kept.join('\n');
    this.kept = [];
    return text === '' ? undefined : text;
  }

  private say(text: string): void {
    this.kept = [...this.kept, text].slice(-keptMost);
    this.notify?.(text);
  }
}
