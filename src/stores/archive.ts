/**
 * What retention removes, as lines of NDJSON: one for each fact, with its payload. The record that
 * retention writes has a hash over them. By it the doctor distinguishes retention from other
 * removals, and an archive from a forgery.
 */
import { createHash } from 'node:crypto'
import { encode } from '../core/canonical-json.ts'
import { LedgerBroken } from '../core/errors.ts'
import type { RemovalAuthor } from './contract/retention.ts'
import type { Ref } from './contract/store.ts'
import { type FactRow, type JobRow, toFact } from './rows.ts'

/** Bounds of one line; facts are small, payloads are bounded when they are accepted. */
export const LINE_BOUNDS = { depthMax: 32, bytesMax: 64 * 1024 * 1024 }

type EndedColumns = 'id' | 'seq' | 'queue' | 'state' | 'flow' | 'links'

/** A job that has ended, as it was read. */
export interface EndedJob extends Pick<JobRow, EndedColumns> {
  readonly ref: Ref
}

/** Returns true if rows of other tables may refer to the job. */
export function isLinked({ flow, links }: EndedJob): boolean {
  return flow !== null || links !== null
}

/** The same with what retention decides by. */
export interface EndedRow extends EndedJob, Pick<JobRow, 'type' | 'key' | 'outcome' | 'reason'> {
  readonly ended_at: number
}

/** A fact as it is archived, with its position in the ledger. */
export type ArchivedFact = FactRow & { readonly payload: string | null; readonly position: number }

/** A job that will be removed, with its ledger as lines. */
export interface PrunedJob extends EndedJob {
  readonly lines: readonly string[]
  /** The position of each line's fact in the order of the ledger. */
  readonly positions: readonly number[]
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
export function textOf(jobs: readonly Pick<PrunedJob, 'lines'>[]): string {
  return jobs.flatMap(({ lines }) => lines.map((line) => `${line}\n`)).join('')
}

/** The hash of the lines, without making one text of all of them. */
function hashOf(jobs: readonly Pick<PrunedJob, 'lines'>[]): string {
  const hash = createHash('sha256')
  for (const { lines } of jobs) hash.update(`${lines.join('\n')}\n`)
  return hash.digest('hex')
}

/** What the record of a removal says of the jobs, in the order of its columns. */
export type PrunedRecord = ReturnType<typeof recordOf>

/** How jobs are removed, and by whom. */
export interface Removing {
  readonly endedBefore: number
  readonly archived: boolean
  /** Absent if the store was asked without a person. */
  readonly by?: RemovalAuthor
}

/** The record of a removal. */
export function recordOf(
  removed: readonly [PrunedJob, ...PrunedJob[]],
  { endedBefore, archived, by }: Removing,
  keys: number,
) {
  const sha256 = hashOf(removed)
  const facts = removed.reduce((sum, { lines }) => sum + lines.length, 0)
  const [first] = removed
  const last = removed[removed.length - 1] ?? first
  const range = [first.id, last.id, endedBefore] as const
  const who = [by?.operator ?? null, by?.note ?? null] as const
  return [removed.length, facts, ...range, sha256, archived ? 1 : 0, keys, ...who] as const
}
