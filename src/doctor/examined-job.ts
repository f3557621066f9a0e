/**
 * Reads everything that a store has of one job: its row, its facts and what they fold to. Reading
 * never throws: what cannot be read is kept with the reason.
 */
import { messageOf } from '../core/errors.ts'
import { fold } from '../core/job/evolve.ts'
import { ACTORS, type Fact, sinceRebase } from '../core/job/facts.ts'
import type { Job, JobAttributes } from '../core/job/job.ts'
import { LANES, type Lane } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { checkFacts, type Violation } from '../core/promises.ts'
import { DERIVED_FACT_COLUMNS } from '../stores/columns.ts'
import type { RawFact, RawJob, StoredJob } from '../stores/contract/examination.ts'
import { NOTICE } from '../stores/notices.ts'
import { toFact, toJob } from '../stores/rows.ts'

/** A fact that cannot be read, or that repeats another one. */
interface Unreadable {
  readonly raw: RawFact
  readonly why: string
}

export interface ExaminedJob {
  readonly stored: StoredJob
  /** The id from the ledger; from the row if the ledger does not have it. */
  readonly id: string
  /** The row as a job; null if there is no row or it cannot be read. */
  readonly job: Job | null
  readonly rowFault: string | undefined
  readonly lane: Lane | undefined
  /** The facts that can be read, in order. */
  readonly facts: readonly Fact[]
  readonly unreadable: readonly Unreadable[]
  /** Undefined if this process does not know it. */
  readonly lifecycle: Lifecycle | undefined
  /** The fold of the facts; null if they cannot be folded. */
  readonly folded: Job | null
  readonly foldFault: string | undefined
  readonly violations: readonly Violation[]
  /** The row counts more facts than the ledger has. */
  readonly isTruncated: boolean
  /** The effects of the job, without notices. */
  readonly effects: StoredJob['effects']
}

const LANE_NAMES = new Map(
  Object.entries(LANES).map(([name, code]) => [code as number, name as Lane]),
)

/** `others` are the versions of lifecycles by which facts before a migration are checked. */
export function examine(
  stored: StoredJob,
  lifecycles: readonly Lifecycle[],
  others: readonly Lifecycle[] = [],
): ExaminedJob {
  const { row } = stored
  const id = idOf(stored)
  const { facts, unreadable } = readFacts(id, stored.facts)
  const all = [...lifecycles, ...others]
  const said = nameOf(facts)
  const isForeign = find(all, stored.machine) !== undefined && isUnknown(all, said)
  const lifecycle = find(lifecycles, isForeign ? stored.machine : (said ?? stored.machine))
  const fold = foldOf(lifecycle, facts)
  const folded = fold.folded
  const foldFault = isForeign
    ? `no lifecycle is called ${said?.name} v${said?.version}`
    : fold.foldFault
  const { job, rowFault } = readRow(row, stored.machine)
  return {
    stored,
    id,
    job,
    rowFault,
    lane: row === null ? undefined : LANE_NAMES.get(row.lane),
    facts,
    unreadable,
    lifecycle,
    folded,
    foldFault,
    violations: lifecycle === undefined ? [] : checkFacts(lifecycle, facts, all),
    isTruncated: row !== null && isPlausible(row) && row.seq > (facts[facts.length - 1]?.seq ?? 0),
    effects: stored.effects.filter(({ name }) => name !== NOTICE),
  }
}

/** No job has so many facts: a larger number is damage, and new facts do not count on from it. */
const SEQ_MAX = 1_000_000_000

export function isPlausible({ seq }: { readonly seq: number }): boolean {
  return Number.isSafeInteger(seq) && seq >= 1 && seq <= SEQ_MAX
}

function idOf({ ref, row, facts }: StoredJob): string {
  return facts.find(({ creates }) => creates !== null)?.creates ?? row?.id ?? String(ref)
}

function readFacts(id: string, rows: readonly RawFact[]) {
  const facts: Fact[] = []
  const unreadable: Unreadable[] = []
  const finished = new Set<string>()
  for (const raw of rows) {
    try {
      const fact = toFact(id, raw)
      const fault = faultOf(fact) ?? strayOf(raw, fact) ?? twinOf(facts, finished, fact)
      if (fault === undefined) facts.push(fact)
      else unreadable.push({ raw, why: fault })
      if (fault === undefined && fact.step) finished.add(keyOf(fact.step))
    } catch (error) {
      unreadable.push({ raw, why: messageOf(error) })
    }
  }
  return { facts, unreadable }
}

/** Returns what is wrong with a fact that can be read but that Pawl never writes. */
function faultOf(fact: Fact): string | undefined {
  if (!Number.isSafeInteger(fact.at) || fact.at < 0) return `its time is ${fact.at}`
  if (!isPlausible(fact)) return 'its number is too large'
  if (!ACTORS.includes(fact.actor)) return `it was made by "${fact.actor}"`
  if (fact.created !== undefined && !areAttributes(fact.created))
    return 'it does not contain all attributes of a job'
  if (fact.trigger === 'step' && !isStep(fact.step)) return 'it names no step'
  if (fact.trigger === 'signal' && !isSignal(fact.signal)) return 'it names no signal'
  if (fact.trigger === 'wait' && !isStep(fact.wait)) return 'it names no wait'
  if (fact.trigger === 'receive' && !isStep(fact.received)) return 'it names no wait'
  return fact.execution?.statuses.includes(undefined as never)
    ? 'it enters a status that does not exist'
    : undefined
}

/** Steps and waits are the n-th of a name. */
function isStep(step: Fact['step']): boolean {
  return typeof step?.name === 'string' && Number.isSafeInteger(step.n)
}

function isSignal(signal: Fact['signal']): boolean {
  return typeof signal?.name === 'string' && typeof signal.key === 'string'
}

/** Columns that follow from the fact must agree with it. */
function strayOf(raw: RawFact, fact: Fact): string | undefined {
  const stray = DERIVED_FACT_COLUMNS.find(
    ({ name, value }) => raw[name as keyof RawFact] !== value(fact),
  )
  return stray && `its column ${stray.name} does not belong to this fact`
}

function areAttributes(created: JobAttributes): boolean {
  const { type, queue, lifecycle, lifecycleVersion, tags } = created
  const texts = [type, queue, lifecycle].every((text) => typeof text === 'string' && text !== '')
  const optional = [created.key, created.limitKey, created.retryOf]
  const numbers = [created.timeoutMs, created.deadlineAt]
  return (
    texts &&
    Number.isSafeInteger(lifecycleVersion) &&
    Array.isArray(tags) &&
    tags.every((tag) => typeof tag === 'string') &&
    optional.every((text) => text === null || typeof text === 'string') &&
    numbers.every((number) => number === null || Number.isSafeInteger(number)) &&
    (created.policy === null || typeof created.policy?.retry?.max === 'number')
  )
}

/** Finds what constraints exclude: a second fact with a number, a second result of a step. */
function twinOf(
  facts: readonly Fact[],
  finished: ReadonlySet<string>,
  { seq, trigger, step }: Fact,
): string | undefined {
  if (facts[facts.length - 1]?.seq === seq) return `there is another fact ${seq}`
  if (trigger !== 'step' || !step || !finished.has(keyOf(step))) return undefined
  return `step ${step.name} ${step.n} already has a result`
}

function keyOf({ name, n }: NonNullable<Fact['step']>): string {
  return JSON.stringify([name, n])
}

function foldOf(
  lifecycle: Lifecycle | undefined,
  facts: readonly Fact[],
): Pick<ExaminedJob, 'folded' | 'foldFault'> {
  try {
    const folded = fold(facts)
    if (folded === null) return { folded, foldFault: 'there are no facts' }
    const fault = lifecycle && incoherence(lifecycle, folded)
    return fault === undefined
      ? { folded, foldFault: undefined }
      : { folded: null, foldFault: fault }
  } catch (error) {
    return { folded: null, foldFault: messageOf(error) }
  }
}

/** A held state needs an open execution; every other state excludes it. */
function incoherence(lifecycle: Lifecycle, { state, execution }: Job): string | undefined {
  const role = lifecycle.roles.get(state)
  const isOpen = execution !== null && execution.status !== 'DONE'
  return (role === 'held') === isOpen
    ? undefined
    : `its facts leave it in ${state} with ${execution?.status ?? 'no attempt'}`
}

type Name = Pick<Lifecycle, 'name' | 'version'>

function find(lifecycles: readonly Lifecycle[], named: Name | null | undefined) {
  return lifecycles.find(({ name, version }) => name === named?.name && version === named.version)
}

/** A store has a row for each lifecycle of its jobs, so facts that name another are damaged. */
function isUnknown(all: readonly Lifecycle[], said: Name | undefined): boolean {
  return said !== undefined && find(all, said) === undefined
}

function nameOf(facts: readonly Fact[]): Name | undefined {
  const [first, ...rest] = sinceRebase(facts)
  const said = first?.rebased ?? first?.created
  const last = rest.findLast(({ migrated }) => migrated !== undefined)?.migrated
  return said && { name: said.lifecycle, version: last?.to ?? said.lifecycleVersion }
}

const STATUS_LETTERS = [null, 'L', 'I', 'C', 'D']
const OUTCOMES = [null, 'succeeded', 'failed', 'cancelled']

function readRow(
  row: RawJob | null,
  machine: StoredJob['machine'],
): Pick<ExaminedJob, 'job' | 'rowFault'> {
  if (row === null) return { job: null, rowFault: undefined }
  if (machine === null) return { job: null, rowFault: `its machine ${row.machine} is not known` }
  if (!STATUS_LETTERS.includes(row.status)) {
    return { job: null, rowFault: `its status is "${row.status}"` }
  }
  if (!OUTCOMES.includes(row.outcome)) {
    return { job: null, rowFault: `its outcome is "${row.outcome}"` }
  }
  try {
    return { job: toJob(row, machine), rowFault: undefined }
  } catch (error) {
    return { job: null, rowFault: messageOf(error) }
  }
}
