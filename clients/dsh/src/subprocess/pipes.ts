import { Readable, Writable } from 'node:stream';
import type { Connection } from '../link/connection.js';
import { RemoteFailure } from '../session/failure.js';
import type { Mirror } from './mirror.js';

// The ends of a process's streams on this side, as Node has them. A reader that is behind holds the
// process back, and a writer waits for the process to read. An error of either is for whoever
// listens or reads on; where nobody does, it must not end the harness, as Node would have it.

/** What comes of `stream`, byte for byte. Given up by whoever destroys it. */
export function readablePipe(connection: Connection, stream: number): Readable {
  let wanted = false;
  const readable = new Readable({
    read: () => {
      wanted = true;
      pull();
    },
    destroy: (error, done) => {
      connection.stop(stream);
      done(error);
    },
  });
  const pull = (): void => {
    while (wanted) {
      const piece = connection.take(stream);
      if (piece === undefined) return;
      if (piece.error !== undefined) return void readable.destroy(new RemoteFailure(piece.error));
      if (piece.bytes.length > 0) wanted = readable.push(Buffer.from(piece.bytes));
      if (piece.end) return void readable.push(null);
    }
  };
  connection.use(stream, { arrived: pull });
  return readable.on('error', () => {});
}

/** What goes to `stream`. */
export function writablePipe(connection: Connection, stream: number): Writable {
  let unwanted = false;
  let waiting: (() => void) | undefined;
  const brokenPipe = (): Error => Object.assign(new Error('write EPIPE: the process reads no more'), { code: 'EPIPE', syscall: 'write' });
  const writable = new Writable({
    write(chunk: Uint8Array, _encoding, done) {
      let at = 0;
      const write = (): void => {
        waiting = undefined;
        if (unwanted) return done(brokenPipe());
        const count = Math.min(connection.room(stream), chunk.length - at);
        connection.append(stream, Buffer.from(chunk.subarray(at, at + count))); // The caller may use its own again.
        at += count;
        if (at === chunk.length) done();
        else waiting = write;
      };
      write();
    },
    final(done) {
      connection.end(stream);
      done();
    },
    destroy(error, done) {
      connection.end(stream);
      done(error);
    },
  });
  connection.use(stream, {
    room: () => waiting?.(),
    unwanted: () => {
      unwanted = true;
      if (waiting !== undefined) waiting();
      else writable.destroy();
    },
  });
  return writable.on('error', () => {});
}

/** What comes of `stream` into a mirror, told after each step. `failed`: it broke off. */
export function fillMirror(connection: Connection, stream: number, mirror: Mirror, told: (failed?: RemoteFailure) => void): void {
  const arrived = (): void => {
    let failed: RemoteFailure | undefined;
    for (let piece = connection.take(stream); piece !== undefined; piece = connection.take(stream)) {
      if (piece.error !== undefined) failed = new RemoteFailure(piece.error);
      else mirror.push(piece.offset, piece.bytes);
      if (piece.end && piece.error === undefined) mirror.end();
    }
    told(failed);
  };
  connection.use(stream, { arrived });
}
