import type { JsonObject } from '../wire/fields.js';
import type { Failure, FailureCode } from '../wire/message.js';

export const failure = (code: FailureCode, message: string): Failure => ({ code, message });

/** A request that failed, with the code that the server gave or that the session found. */
export class RemoteFailure extends Error {
  override name = 'RemoteFailure';
  readonly code: FailureCode;
  readonly retryAfterMs: number | undefined;
  readonly detail: JsonObject | undefined;

  constructor({ code, message, retryAfterMs, detail }: Failure) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.detail = detail;
  }
}
