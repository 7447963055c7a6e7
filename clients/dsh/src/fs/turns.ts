/** Changes of one file, one after the other in the order in which they were asked for, however long one takes to be sent. */
export class Turns {
  private readonly last = new Map<string, Promise<void>>();

  /** Runs it once those of `key` before it are done. One that is given up while it waits holds nobody up, and is run to say so. */
  async take<T>(key: string, signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
    const before = this.last.get(key) ?? Promise.resolve();
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const mine = before.then(() => ended);
    this.last.set(key, mine);
    void mine.then(() => {
      if (this.last.get(key) === mine) this.last.delete(key);
    });
    try {
      await untilDone(before, signal);
      return await run();
    } finally {
      end();
    }
  }
}

/** Or until it is given up. */
async function untilDone(before: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return before;
  if (signal.aborted) return;
  let giveUp!: () => void;
  const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
  signal.addEventListener('abort', giveUp, { once: true });
  await Promise.race([before, givenUp]);
  signal.removeEventListener('abort', giveUp);
}
