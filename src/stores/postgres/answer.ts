/**
 * Waits for the answer to a statement, and not longer than given. The time-out of the driver
 * (`query_timeout`) is not used: if a handler blocks the event loop for that long, its timer fires
 * before the answer is read, although the answer has arrived, and a working database is reported as
 * away.
 *
 * Therefore the time is counted in parts. However long the event loop is blocked, this counts as
 * one part, and the answer is read before the next part ends.
 */
import type { PgClient, PgQuery, PgResult } from './driver.ts'

const PARTS = 4

/** The driver's own words: errors are classified by them. */
const SILENCE = 'Query read timeout'

/** What is said if the time of a call was over before it had a connection. */
export const NO_CONNECTION = 'no connection'

/**
 * Sends a statement. Rejects if no answer comes within `answerMs`. The connection must be closed
 * then: the answer may still come.
 */
export function ask(client: PgClient, query: PgQuery, answerMs: number): Promise<PgResult> {
  return new Promise((resolve, reject) => {
    let parts = PARTS
    const count = () => {
      parts--
      if (parts > 0) timer = setTimeout(count, answerMs / PARTS)
      else reject(new Error(SILENCE))
    }
    let timer = setTimeout(count, answerMs / PARTS)
    client.query(query).then(
      (result) => {
        clearTimeout(timer)
        resolve(result)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

/** Returns whether no answer came, without a sign that the connection was broken. */
export function isSilence(message: string): boolean {
  return message.includes(SILENCE)
}
