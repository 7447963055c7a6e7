export const pingAfterMs = 20_000;
export const deadAfterMs = 45_000;

/** Whether the other end of a link still lives, by what was heard of it. */
export class Pulse {
  private heardAt: number;
  private askedAt: number;

  constructor(now: number) {
    this.heardAt = this.askedAt = now;
  }
  heard(now: number): void {
    this.heardAt = this.askedAt = now;
  }
  dead(now: number): boolean {
    return now - this.heardAt >= deadAfterMs;
  }
  /** True when it is time to ask; the caller then does. */
  ask(now: number): boolean {
    if (now - this.askedAt < pingAfterMs) return false;
    this.askedAt = now;
    return true;
  }
}
