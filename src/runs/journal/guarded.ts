import { PawlError } from '../../core/errors.ts'
import { JournalFailed, PathRefused } from './errors.ts'

/** Does what may fail outside of Pawl, and gives every failure its type. */
export async function guarded<T>(
  runId: string,
  doing: string,
  action: () => Promise<T>,
): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw typed(runId, doing, error)
  }
}

/** The failure as an error of Pawl. */
export function typed(runId: string, doing: string, error: unknown): PawlError {
  if (error instanceof PawlError) return error
  const { code, path } = error as NodeJS.ErrnoException
  // What a link that was put there in the last moment is answered with.
  if (code === 'ELOOP') return new PathRefused(path ?? doing, 'is a link, not a file')
  return new JournalFailed(runId, doing, error)
}
