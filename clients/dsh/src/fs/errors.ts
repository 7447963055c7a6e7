import { FsError, type FsErrorCode } from '@deepseek-ai/dsh-fs';
import { RemoteFailure } from '../session/failure.js';
import type { FailureCode } from '../wire/message.js';

/** What the thirteen codes of files do not say is one of them, too. */
const others: { [code in FailureCode]?: FsErrorCode } = {
  CANCELLED: 'FS_ABORTED',
  DENIED: 'FS_PERMISSION_DENIED',
};

/** `what` was tried; an error of the harness's own kind is passed on as it is. */
export function toFsError(what: string, error: unknown): unknown {
  if (!(error instanceof RemoteFailure)) return error;
  const code = error.code.startsWith('FS_') ? (error.code as FsErrorCode) : (others[error.code] ?? 'FS_IO_ERROR');
  const why = error.code.startsWith('FS_') || error.code === 'CANCELLED' ? error.message : `${error.message} (${error.code})`;
  return new FsError(`${what}: ${why}`, code, { cause: error });
}
