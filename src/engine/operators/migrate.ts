/** Migrates the live jobs of a lifecycle to a later version on an operator's request. */
import { abortSignal, flag } from '../../core/checks.ts'
import { LeaseLive } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Requester, Store } from '../../stores/contract/store.ts'
import type { Migration } from '../../stores/migration.ts'

/** The live jobs of a lifecycle whose version is lower than `to`. */
export interface MigrationSelection {
  readonly lifecycle: string
  readonly to: number
}

/** The number of jobs with the same source and target. */
export interface MigrationMove {
  readonly from: { readonly version: number; readonly state: string }
  readonly to: { readonly version: number; readonly state: string }
  readonly jobs: number
}

/** The report of `migrate`. */
export interface MigrationReport {
  readonly dryRun: boolean
  /** How many live jobs had an earlier version. */
  readonly matched: number
  readonly done: number
  /** Running jobs: they finish their attempt under the old version and are migrated afterwards. */
  readonly running: number
  readonly refused: number
  readonly moves: readonly MigrationMove[]
  /** The first refusals. */
  readonly refusals: readonly {
    readonly id: string
    readonly code: string
    readonly message: string
    readonly hint: string
  }[]
  /** Whether jobs may be left, because `signal` was aborted. */
  readonly more: boolean
}

interface MigrationOptions {
  readonly dryRun?: boolean
  readonly signal?: AbortSignal
}

const SELECTION: FieldChecks<MigrationSelection> = { lifecycle: unchecked, to: unchecked }
const OPTIONS: FieldChecks<MigrationOptions> = { dryRun: flag, signal: abortSignal }

const REFUSALS_MAX = 20

/** Migrates page by page, each page in its own transaction. */
export async function migrateJobs(
  store: Store,
  requester: Requester,
  selection: MigrationSelection,
  options: MigrationOptions = {},
): Promise<MigrationReport> {
  checkFields(selection, SELECTION, { what: 'selection', refuseUndefined: true })
  checkFields(options, OPTIONS, { what: 'options' })
  const { lifecycle, to } = selection
  const { dryRun = false, signal } = options
  const counts = { matched: 0, done: 0, running: 0, refused: 0 }
  const moves = new Map<string, MigrationMove>()
  const refusals: MigrationReport['refusals'][number][] = []
  let after: string | undefined
  let more = false
  do {
    more = signal?.aborted ?? false
    if (more) break
    const request = { lifecycle, to, dryRun, ...(after !== undefined && { after }) }
    const page = await store.migrate(request, requester)
    for (const migration of page.items) count(migration)
    after = page.next
  } while (after !== undefined)
  return { dryRun, ...counts, moves: [...moves.values()], refusals, more }

  function count({ jobId, from, to: target, error }: Migration): void {
    counts.matched++
    if (target !== undefined) {
      counts.done++
      const key = JSON.stringify([from, target])
      moves.set(key, { from, to: target, jobs: (moves.get(key)?.jobs ?? 0) + 1 })
    } else if (error instanceof LeaseLive) {
      counts.running++
    } else if (error !== undefined) {
      counts.refused++
      const { code, message, hint } = error
      if (refusals.length < REFUSALS_MAX) refusals.push({ id: jobId, code, message, hint })
    }
  }
}
