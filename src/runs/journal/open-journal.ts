/** What both journals share: typed errors, and whether the journal is open. */
import { PawlError } from '../../core/errors.ts'
import { JournalClosed, JournalFailed, PathRefused } from './errors.ts'
import { checkRunId } from './names.ts'

/** Runs an operation on the disk or the database. Errors of the system become `PawlError`s. */
export async function guarded<T>(
  runId: string,
  doing: string,
  action: () => Promise<T>,
): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw toJournalError(runId, doing, error)
  }
}

/** Turns an error of the disk or the database into a `PawlError`. */
export function toJournalError(runId: string, doing: string, error: unknown): PawlError {
  if (error instanceof PawlError) return error
  const { code, path } = error as NodeJS.ErrnoException
  // A link was put there between the check and the opening.
  if (code === 'ELOOP') return new PathRefused(path ?? doing, 'is a link, not a file')
  return new JournalFailed(runId, doing, error)
}

/** The common part of both journals: it is open or closed, and has open writers. */
export abstract class OpenJournal<Writer extends { close(): Promise<void> }> {
  readonly #writers = new Set<Writer>()
  #closed = false

  /** Closes all open writers. Throws the first error after all of them were closed. */
  async close(): Promise<void> {
    this.#closed = true
    const closings = await Promise.allSettled([...this.#writers].map((writer) => writer.close()))
    const failed = closings.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  protected keep(writer: Writer): Writer {
    this.#writers.add(writer)
    return writer
  }

  /** For writers, which call it when they have released their run. */
  protected readonly forget = (writer: Writer): void => {
    this.#writers.delete(writer)
  }

  /** Checks the run id and runs an operation, with typed errors. */
  protected async onRun<T>(runId: string, doing: string, action: () => Promise<T>): Promise<T> {
    this.assertOpen()
    checkRunId(runId)
    return guarded(runId, doing, action)
  }

  protected assertOpen(): void {
    if (this.#closed) throw new JournalClosed('The journal', 'is closed')
  }
}
