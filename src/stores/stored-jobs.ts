/** Groups rows of several tables by their job. */
import type { RawEffect, RawFact, RawJob, StoredJob } from './contract/examination.ts'
import type { Ref } from './contract/store.ts'

/** How many facts one page reads; a page with more of them is cut to fewer jobs. */
export const FACTS_MAX = 20_000

/** A row that belongs to a job. */
export type Owned<T, R extends Ref> = T & { readonly job: R }

/** What was read of the jobs of one page. */
export interface PageRows<R extends Ref> {
  readonly jobs: readonly Owned<RawJob, R>[]
  readonly facts: readonly Owned<RawFact, R>[]
  readonly effects: readonly Owned<RawEffect, R>[]
  /** By their numbers. */
  readonly machines: ReadonlyMap<number, StoredJob['machine']>
  /** How many facts and effects were asked for at most. */
  readonly max: number
}

/** The stored jobs of a page, in the order of their refs. */
export function assemble<R extends Ref>(page: PageRows<R>): StoredJob[] {
  const rows = grouped(page.jobs)
  const facts = grouped(page.facts)
  const effects = grouped(page.effects)
  const end = endOf(page)
  return [...new Set([...rows.keys(), ...facts.keys(), ...effects.keys()])]
    .filter((ref) => end === undefined || ref <= end)
    .sort((a, b) => (a < b ? -1 : 1))
    .map((ref) => {
      const [row = null, ...twins] = rows.get(ref) ?? []
      return {
        ref,
        row,
        twins,
        facts: facts.get(ref) ?? [],
        effects: effects.get(ref) ?? [],
        machine: (row && page.machines.get(row.machine)) ?? null,
      }
    })
}

/** Whether this job may have more rows than one page reads; then it must be read alone. */
export function isCut({ facts, effects }: StoredJob): boolean {
  return facts.length >= FACTS_MAX || effects.length >= FACTS_MAX
}

/** Rows that were cut off belong to the next page, together with their job. */
function endOf<R extends Ref>({ facts, effects, max }: PageRows<R>): R | undefined {
  const ends = [facts, effects].flatMap((rows) => {
    if (rows.length < max) return []
    const last = (rows[rows.length - 1] as { job: R }).job
    return rows.findLast(({ job }) => job < last)?.job ?? last
  })
  return ends.sort((a, b) => (a < b ? -1 : 1))[0]
}

function grouped<T extends { readonly job: Ref }>(rows: readonly T[]): Map<T['job'], T[]> {
  const groups = new Map<T['job'], T[]>()
  for (const row of rows) {
    const group = groups.get(row.job)
    if (group === undefined) groups.set(row.job, [row])
    else group.push(row)
  }
  return groups
}
