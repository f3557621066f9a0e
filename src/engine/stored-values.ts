/** How results are stored and read, including results that cannot be stored. */
import type { JsonBounds } from '../core/canonical-json.ts'
import { messageOf, ValueInvalid } from '../core/errors.ts'
import { toBoundedText } from '../core/failure.ts'
import { decodeValue, encodeValue, notStoredIn, notStoredText } from '../core/values.ts'
import { PayloadUnreadable, ResultNotStored } from './errors.ts'

/** Why a result is not stored, and the path of the value. */
interface NotStored {
  readonly path: string
  readonly why: string
}

const WHY_MAX = 500

/**
 * Returns the text of a result; `undefined`, so that nothing is stored, if there is none. If it
 * cannot be stored, returns a note that says so, and calls `onNotStored`. It never throws: the work
 * of the job is done.
 */
export function resultText(
  output: unknown,
  bounds: JsonBounds,
  onNotStored: (note: NotStored) => void,
): string | undefined {
  if (output === undefined) return undefined
  try {
    return encodeValue(output, bounds)
  } catch (error) {
    const note = noteOf(error)
    onNotStored(note)
    return notStoredText(note)
  }
}

function noteOf(error: unknown): NotStored {
  if (error instanceof ValueInvalid) {
    const { path, why } = error.details as unknown as NotStored
    return { path: toBoundedText(path, WHY_MAX), why: toBoundedText(why, WHY_MAX) }
  }
  // A getter of the user's object threw an exception.
  return { path: '$', why: toBoundedText(`cannot be read: ${messageOf(error)}`, WHY_MAX) }
}

/**
 * Returns the value of a stored result; `undefined` if none is stored. Throws `ResultNotStored` or
 * `PayloadUnreadable`.
 */
export function readResult(jobId: string, text: string | undefined): unknown {
  if (text === undefined) return undefined
  const note = notStoredIn(text)
  if (note !== undefined) throw new ResultNotStored(jobId, note.path, note.why)
  return read(jobId, 'result', text)
}

/** Returns the value of stored progress. Throws `PayloadUnreadable`. */
export function readProgress(jobId: string, text: string): unknown {
  return read(jobId, 'progress', text)
}

function read(jobId: string, what: 'result' | 'progress', text: string): unknown {
  try {
    return decodeValue(text)
  } catch (error) {
    throw new PayloadUnreadable(jobId, what, messageOf(error))
  }
}
