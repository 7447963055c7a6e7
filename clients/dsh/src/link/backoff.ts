const firstMs = 50;
const mostMs = 5_000;

/** How long to wait before try `n` (from 0); jittered by half, so that many clients do not come at once. */
export function backoffMs(n: number, random: () => number = Math.random): number {
  const whole = Math.min(mostMs, firstMs * 2 ** Math.min(n, 16));
  return whole * (0.5 + random() / 2);
}

const renewLeastMs = 5_000;

/**
 * When to bring the next credential where the one at hand is good for `expiresMs`: not again and again at once where the
 * next is the same, or clocks differ.
 */
export function renewAfterMs(expiresMs: number): number {
  return Math.min(Math.max(expiresMs * 0.8, renewLeastMs), 0x7fff_ffff);
}
