import net from 'node:net';
import type { Duplex } from 'node:stream';

/** Begins to dial agentd's Unix socket. A failure is the stream's own error. */
export type Dial = () => Duplex;

export const unixSocket = (path: string): Dial => () => net.connect({ path });
