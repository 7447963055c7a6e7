import type { JsonObject } from '../wire/fields.js';
import type { Close, Failure, Notice, Welcome } from '../wire/message.js';

/** What a session tells whoever keeps it. */
export type SessionEvent =
  | { what: 'welcomed'; welcome: Welcome }
  | { what: 'answered'; id: number; ok: JsonObject } // Its download, if any, may go on.
  | { what: 'failed'; id: number; failure: Failure } // Its streams have ended.
  | { what: 'arrived'; stream: number } // There is something to take.
  | { what: 'room'; stream: number }
  | { what: 'unwanted'; stream: number }
  | { what: 'noticed'; notice: Notice }
  | { what: 'renewed'; expiresMs: number }
  | { what: 'closed'; close: Close }; // By the server, or by this side because of what the server did.
