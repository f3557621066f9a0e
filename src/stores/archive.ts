/**
 * What retention removes, as lines of NDJSON: one for each fact, with its payload. The record that
 * retention leaves holds a hash over them, by which the doctor tells retention from vandalism, and
 * an archive from a forgery.
 */
import { createHash } from 'node:crypto'
import { encode } from '../core/canonical-json.ts'
import { LedgerBroken } from '../core/errors.ts'
import { type FactRow, type JobRow, toFact } from './rows.ts'

/** Bounds of one line; facts are small, payloads are bounded when they are accepted. */
export const LINE_BOUNDS = { depthMax: 32, bytesMax: 64 * 1024 * 1024 }

/** A job that will be removed, with its ledger as lines. */
export interface Sheaf extends Pick<JobRow, 'id' | 'seq' | 'queue' | 'state'> {
  readonly lines: readonly string[]
  /** Where each line's fact stood in the order of the ledger. */
  readonly places: readonly number[]
}

/** The lines of a job; none if one of its facts cannot be read: such a job is kept. */
export function linesOf(
  jobId: string,
  rows: readonly (FactRow & { readonly payload: string | null })[],
): string[] {
  try {
    return rows.map((row) => lineOf(jobId, row))
  } catch (error) {
    if (error instanceof LedgerBroken) return []
    throw error
  }
}

/** The line of one fact. */
export function lineOf(jobId: string, row: FactRow & { readonly payload: string | null }): string {
  return encode({ fact: toFact(jobId, row), payload: row.payload }, LINE_BOUNDS)
}

/** The lines of an archive. */
export function textOf(sheaves: readonly Sheaf[]): string {
  return sheaves.flatMap(({ lines }) => lines.map((line) => `${line}\n`)).join('')
}

/** What the record of a removal says of the jobs, in the order of its columns. */
export function recordOf(removed: readonly [Sheaf, ...Sheaf[]], endedBefore: number) {
  const sha256 = createHash('sha256').update(textOf(removed)).digest('hex')
  const facts = removed.reduce((sum, { lines }) => sum + lines.length, 0)
  const last = removed[removed.length - 1] as Sheaf
  return [removed.length, facts, removed[0].id, last.id, endedBefore, sha256] as const
}
