/**
 * A job as the doctor sees it: what its row says, what its facts say, and what can be made of each.
 * Reading never throws; what cannot be read is kept with the reason.
 */
import { messageOf } from '../core/errors.ts'
import { fold } from '../core/job/evolve.ts'
import { ACTORS, type Fact, sinceRebase } from '../core/job/facts.ts'
import type { Job, JobAttributes } from '../core/job/job.ts'
import { LANES, type Lane } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { checkFacts, type Violation } from '../core/promises.ts'
import { DERIVED_FACT_COLUMNS } from '../stores/columns.ts'
import type { Dossier, RawFact, RawJob } from '../stores/examination.ts'
import { NOTICE } from '../stores/notices.ts'
import { toFact, toJob } from '../stores/rows.ts'

/** A fact that cannot be read, or that stands in the place of another. */
interface Unreadable {
  readonly raw: RawFact
  readonly why: string
}

/** A job, examined. */
export interface Patient {
  readonly dossier: Dossier
  /** The id of the job, as well as it is known. */
  readonly id: string
  /** The row as a job; nothing where there is no row, or it cannot be read. */
  readonly job: Job | null
  readonly rowFault: string | undefined
  readonly lane: Lane | undefined
  /** Those facts that can be read, in order. */
  readonly facts: readonly Fact[]
  readonly unreadable: readonly Unreadable[]
  /** Nothing where this process does not know it. */
  readonly lifecycle: Lifecycle | undefined
  /** What the facts make of the job; nothing where they make nothing. */
  readonly folded: Job | null
  readonly foldFault: string | undefined
  readonly violations: readonly Violation[]
  /** Facts are missing that the row tells of. */
  readonly isTruncated: boolean
  /** The effects of the job itself; notices are not among them. */
  readonly effects: Dossier['effects']
}

const LANE_NAMES = new Map(
  Object.entries(LANES).map(([name, code]) => [code as number, name as Lane]),
)

/**
 * Looks at everything that a store has of one job. `others` are versions by which facts before a
 * migration are judged.
 */
export function examine(
  dossier: Dossier,
  lifecycles: readonly Lifecycle[],
  others: readonly Lifecycle[] = [],
): Patient {
  const { row } = dossier
  const id = idOf(dossier)
  const { facts, unreadable } = readFacts(id, dossier.facts)
  const named = nameOf(facts) ?? dossier.machine
  const lifecycle = lifecycles.find(
    ({ name, version }) => name === named?.name && version === named.version,
  )
  const all = [...lifecycles, ...others]
  const { folded, foldFault } = foldOf(lifecycle, facts)
  const { job, rowFault } = readRow(row, dossier.machine)
  return {
    dossier,
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
    effects: dossier.effects.filter(({ name }) => name !== NOTICE),
  }
}

/** No job has so many facts: a number beyond it is damage, and nothing is counted on from it. */
const SEQ_MAX = 1_000_000_000

/** Whether the number of a fact can be one. */
export function isPlausible({ seq }: { readonly seq: number }): boolean {
  return Number.isSafeInteger(seq) && seq >= 1 && seq <= SEQ_MAX
}

/** The ledger knows better than the row, where it knows. */
function idOf({ ref, row, facts }: Dossier): string {
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

/** What a fact can say, and none of ours says. */
function faultOf(fact: Fact): string | undefined {
  if (!Number.isSafeInteger(fact.at) || fact.at < 0) return `its time is ${fact.at}`
  if (!isPlausible(fact)) return 'its number is beyond all measure'
  if (!ACTORS.includes(fact.actor)) return `it was made by "${fact.actor}"`
  if (fact.created !== undefined && !areAttributes(fact.created)) return 'it creates no whole job'
  if (fact.trigger === 'step' && !isStep(fact.step)) return 'it names no step'
  return fact.execution?.statuses.includes(undefined as never)
    ? 'it enters a status that does not exist'
    : undefined
}

function isStep(step: Fact['step']): boolean {
  return typeof step?.name === 'string' && Number.isSafeInteger(step.n)
}

/** Columns that the fact does not account for were not written with it. */
function strayOf(raw: RawFact, fact: Fact): string | undefined {
  const stray = DERIVED_FACT_COLUMNS.find(
    ({ name, value }) => raw[name as keyof RawFact] !== value(fact),
  )
  return stray && `its column ${stray.name} is not of this fact`
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

/** What constraints exclude: a second fact of a number, a second result of a step. */
function twinOf(
  facts: readonly Fact[],
  finished: ReadonlySet<string>,
  { seq, trigger, step }: Fact,
): string | undefined {
  if (facts[facts.length - 1]?.seq === seq) return `there is another fact ${seq}`
  if (trigger !== 'step' || !step || !finished.has(keyOf(step))) return undefined
  return `step ${step.name} ${step.n} was finished before`
}

function keyOf({ name, n }: NonNullable<Fact['step']>): string {
  return JSON.stringify([name, n])
}

function foldOf(
  lifecycle: Lifecycle | undefined,
  facts: readonly Fact[],
): Pick<Patient, 'folded' | 'foldFault'> {
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

/** Where a job is and what its attempt is doing belong together. */
function incoherence(lifecycle: Lifecycle, { state, execution }: Job): string | undefined {
  const role = lifecycle.roles.get(state)
  const isOpen = execution !== null && execution.status !== 'DONE'
  return (role === 'held') === isOpen
    ? undefined
    : `its facts leave it in ${state} with ${execution?.status ?? 'no attempt'}`
}

/** The lifecycle that the facts name. */
function nameOf(facts: readonly Fact[]): Pick<Lifecycle, 'name' | 'version'> | undefined {
  const [first, ...rest] = sinceRebase(facts)
  const said = first?.rebased ?? first?.created
  const last = rest.findLast(({ migrated }) => migrated !== undefined)?.migrated
  return said && { name: said.lifecycle, version: last?.to ?? said.lifecycleVersion }
}

const STATUS_LETTERS = [null, 'L', 'I', 'C', 'D']
const OUTCOMES = [null, 'succeeded', 'failed', 'cancelled']

function readRow(
  row: RawJob | null,
  machine: Dossier['machine'],
): Pick<Patient, 'job' | 'rowFault'> {
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
