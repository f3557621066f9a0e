/**
 * Decides whether the row of a job can be read and trusted, and what happens to one that cannot.
 * Both stores use these rules.
 *
 * A row may contain anything: a person changed it, a disk failed, a restore was incomplete. One
 * such row must not stop other jobs:
 *
 *   a verb for one job      answers with `JobDamaged`, which names the job
 *   a verb for many jobs    fails with `JobDamaged` and writes nothing; the store sets every
 *                           damaged row aside that it finds, and repeats the verb
 *   a list                  shows it under `damaged`
 *
 * If the facts of a job are sound, it is set aside by a fact of the engine, and the columns that
 * the scheduler uses are written as the facts say. Other columns stay as they are, for the doctor
 * to find. If the facts are not sound, only the lane of the row is changed. In both cases the job
 * is parked until the doctor has repaired it. Jobs that have ended or are committed are not set
 * aside. A lease that would never end is shortened instead (`far-times.ts`).
 */
import { uuid } from '../core/checks.ts'
import { LedgerBroken, messageOf, type PawlError } from '../core/errors.ts'
import { evolve, fold } from '../core/job/evolve.ts'
import type { Fact } from '../core/job/facts.ts'
import { isEndless } from '../core/job/fence.ts'
import { isolate, STEP_DAMAGED } from '../core/job/isolate.ts'
import type { Job } from '../core/job/job.ts'
import { LANES, type Lane } from '../core/job/lanes.ts'
import type { Lifecycle, Role } from '../core/lifecycles/lifecycle.ts'
import { checkFacts } from '../core/promises.ts'
import { findPolicyFault, type JobPolicy } from '../core/retry.ts'
import type { StoredJob } from './contract/examination.ts'
import type {
  Answer,
  DamagedJob,
  Isolated,
  Page,
  Ref,
  Settlement,
  StepResult,
  TailEntry,
  UnreadableFact,
} from './contract/store.ts'
import { JobDamaged, StoreFailed } from './errors.ts'
import { type FactRow, type JobRow, toFact, toJob } from './rows.ts'

/** The highest count or number of a fact. One that is higher could not be incremented safely. */
export const COUNT_MAX = 1_000_000_000

const STATUS_LETTERS: readonly unknown[] = [null, 'L', 'I', 'C', 'D']
const OUTCOMES: readonly unknown[] = [null, 'succeeded', 'failed', 'cancelled']
const COUNTS = ['attempt', 'failures', 'crashes', 'releases'] as const
const TIMES = ['createdAt', 'updatedAt'] as const
const OPTIONAL = ['runAt', 'startedAt', 'endedAt', 'timeoutMs', 'deadlineAt'] as const

/** The job that a row holds, or why it holds none. */
export function readRow(
  row: JobRow,
  lifecycle: Pick<Lifecycle, 'name' | 'version'>,
  ref: Ref = row.id,
): Job | JobDamaged {
  const fault = letterFault(row)
  if (fault !== undefined) return new JobDamaged(row.id, fault, ref)
  return readJob(row, ref, () => toJob(row, lifecycle))
}

/** Why a row whose lifecycle has no row cannot be read. */
export function unknownMachine({ id, machine }: Pick<JobRow, 'id' | 'machine'>, ref: Ref) {
  return new JobDamaged(id, `its machine ${machine} is not known`, ref)
}

/** The job that `make` makes from a row, or why it cannot be one. */
export function readJob(
  row: Pick<JobRow, 'id'> & JsonColumns,
  ref: Ref,
  make: () => Job,
): Job | JobDamaged {
  try {
    const job = make()
    const fault = jobFault(job)
    return fault === undefined ? job : new JobDamaged(row.id, fault, ref)
  } catch (error) {
    return new JobDamaged(row.id, unreadable(row, error), ref)
  }
}

/** The columns that hold JSON. */
type JsonColumns = Partial<Pick<JobRow, 'tags' | 'policy' | 'error'>>

/** Columns with coded words must have one of the codes that Pawl writes. */
function letterFault(row: JobRow): string | undefined {
  if (!STATUS_LETTERS.includes(row.status)) return `its status is "${row.status}"`
  if (!OUTCOMES.includes(row.outcome)) return `its outcome is "${row.outcome}"`
  if (row.lease_until !== null && !isTime(row.lease_until))
    return `its lease ends at ${row.lease_until}`
  return row.stalled === 0 || row.stalled === 1 ? undefined : `its stalled is ${row.stalled}`
}

/** The first field with a value that Pawl never writes. */
function jobFault(job: Job): string | undefined {
  if (uuid(job.id) !== undefined) return 'its id is not a UUID'
  if (!isCount(job.seq) || job.seq < 1) return `its seq is ${job.seq}`
  for (const name of COUNTS) if (!isCount(job[name])) return `its ${name} is ${job[name]}`
  for (const name of TIMES) if (!isTime(job[name])) return `its ${name} is ${job[name]}`
  for (const name of OPTIONAL) {
    if (job[name] !== null && !isTime(job[name])) return `its ${name} is ${job[name]}`
  }
  if (!isCount(job.aheadMs)) return `its ahead_ms is ${job.aheadMs}`
  if (!isCount(job.links)) return `its links are ${job.links}`
  if (!Number.isSafeInteger(job.priority)) return `its priority is ${job.priority}`
  return contentFault(job)
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= COUNT_MAX
}

function isTime(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** A column can be JSON and still not have the right content. */
function contentFault({ tags, policy, error }: Job): string | undefined {
  const areTags = Array.isArray(tags) && tags.every((tag) => typeof tag === 'string')
  if (!areTags) return 'its tags are not a list of texts'
  if (error !== null && typeof error?.message !== 'string') return 'its error has no message'
  return policy === null ? undefined : policyFault(policy)
}

function policyFault(policy: JobPolicy): string | undefined {
  if (typeof policy?.retry !== 'object' || policy.retry === null) return 'its policy is not one'
  const fault = findPolicyFault(policy)
  return fault && `its policy is not one: ${fault.join(' ')}`
}

/** Which of the columns that hold JSON does not. */
function unreadable(row: JsonColumns, error: unknown): string {
  const broken = (['tags', 'policy', 'error'] as const).find((name) => !isJson(row[name]))
  return broken === undefined
    ? `it cannot be read: ${messageOf(error)}`
    : `its ${broken} cannot be read`
}

function isJson(text: string | null | undefined): boolean {
  try {
    JSON.parse(text ?? 'null')
    return true
  } catch {
    return false
  }
}

/** A row with its lane, and the number of the last fact that the ledger has of its job. */
export interface PlacedRow extends JobRow {
  readonly lane: number
  readonly ledger_seq: number | null
  readonly slots: string | null
}

const ROLES_IN_LANE: Readonly<Record<number, readonly (Role | undefined)[]>> = {
  [LANES.waiting]: ['idle', 'ready', 'waiting'],
  [LANES.ready]: ['ready'],
  [LANES.held]: ['held'],
}

/** Why the scheduler must not trust a row in its lane; `undefined` if it may. */
export function distrust(
  row: PlacedRow,
  lifecycle: Lifecycle,
  ref: Ref,
  now: number,
): JobDamaged | undefined {
  const read = readRow(row, lifecycle, ref)
  if (read instanceof JobDamaged) return read
  const why = misplacement(row, lifecycle, now)
  return why === undefined ? undefined : new JobDamaged(row.id, why, ref)
}

function misplacement(row: PlacedRow, lifecycle: Lifecycle, now: number): string | undefined {
  const roles = ROLES_IN_LANE[row.lane]
  if (roles === undefined) return undefined
  const role = lifecycle.roles.get(row.state)
  if (role === undefined) return `its state "${row.state}" is not known to ${lifecycle.name}`
  if (!roles.includes(role)) return `its state "${row.state}" does not belong in its lane`
  if (row.outcome !== null) return 'it has an outcome and has not ended'
  if (row.blocked_reason !== null) return 'it is blocked and is not parked'
  if (row.ledger_seq !== row.seq) {
    return `its last fact is ${row.ledger_seq ?? 'missing'}, and its row says ${row.seq}`
  }
  if (row.lane === LANES.held && (row.claim === null || row.worker === null)) {
    return 'it is held by no one'
  }
  const isLong = row.lease_until !== null && isEndless(row.lease_until, now)
  return isLong ? 'its lease lasts longer than any lease can' : undefined
}

/** How a job is set aside: by a fact, with the job that it makes; or by its lane alone. */
export interface Isolation {
  readonly why: string
  readonly before?: Job
  readonly after?: Job
  readonly fact?: Fact
}

/** Decides how to set a job aside: by a fact, if its facts can be trusted. */
export function isolationOf(
  { row, facts }: StoredJob,
  find: (name: string, version: number) => Lifecycle | undefined,
  now: number,
  why: string,
): Isolation {
  try {
    const jobId = facts.find(({ creates }) => creates !== null)?.creates ?? row?.id ?? ''
    const told = facts.map((raw) => toFact(jobId, raw))
    const before = fold(told)
    const lifecycle = before && find(before.lifecycle, before.lifecycleVersion)
    // If the row counts more facts than there are, it is the only trace of them.
    const isShort = before === null || (row !== null && isCount(row.seq) && row.seq > before.seq)
    if (!lifecycle || isShort || checkFacts(lifecycle, told).length > 0) return { why }
    const fact = isolate(lifecycle, before, Math.max(now, before.updatedAt), why)
    return fact === undefined ? { why } : { why, before, fact, after: evolve(before, fact) }
  } catch {
    return { why }
  }
}

const LANE_NAMES = new Map(
  Object.entries(LANES).map(([name, lane]) => [lane as number, name as Lane]),
)

function laneName(lane: number): Lane | null {
  return LANE_NAMES.get(lane) ?? null
}

/** What is reported of a job that was set aside. */
export function isolated(
  id: string,
  row: { readonly lane: number } | null,
  { why, fact }: Isolation,
): Isolated {
  return { jobId: id, lane: row && laneName(row.lane), why, ...(fact && { fact }) }
}

/** What was set aside and not yet reported. */
export class IsolatedJobs {
  #jobs: Isolated[] = []

  add(jobs: readonly Isolated[]): void {
    this.#jobs = [...this.#jobs, ...jobs].slice(-ISOLATED_MAX)
  }

  take(): Isolated[] {
    const jobs = this.#jobs
    this.#jobs = []
    return jobs
  }
}

const ISOLATED_MAX = 1000

/** Messages of the databases about a value that a column cannot hold, or a constraint excludes. */
const REFUSALS = /constraint failed|cannot store|datatype mismatch|too large to be represented|^P\d/
/** The codes of PostgreSQL for the same: data exceptions and violated constraints. */
const REFUSAL_CODES = /^2[23]/

/** Whether a damaged row may be the reason why a verb failed; a full disk, for example, is not. */
export function isDamage(error: unknown): boolean {
  if (error instanceof JobDamaged) return true
  if (!(error instanceof StoreFailed)) return false
  const { code } = (error.cause ?? {}) as { code?: unknown }
  return REFUSAL_CODES.test(String(code)) || REFUSALS.test(messageOf(error.cause))
}

/** Settles one by one. If the database refuses one, that is the answer for it alone. */
export async function settleEach(
  settlements: readonly Settlement[],
  settle: (one: Settlement) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const one of settlements) {
    try {
      answers.push(...(await settle(one)))
    } catch (error) {
      if (!isDamage(error)) throw error
      answers.push({ kind: 'rejected', error: error as PawlError })
    }
  }
  return answers
}

/** How often a verb is repeated. Each time everything damaged that can be found is set aside. */
const REPEAT_MAX = 10

/**
 * Runs a verb for many jobs. If it fails because of a damaged row, or because the database refused
 * what it wrote, sets aside what is damaged and repeats it. Fails if nothing can be set aside.
 */
export async function aroundDamage<T>(
  verb: () => Promise<T>,
  setAside: (met: readonly Ref[]) => Promise<number>,
): Promise<T> {
  for (let repeated = 0; ; repeated++) {
    try {
      return await verb()
    } catch (error) {
      if (!isDamage(error) || repeated >= REPEAT_MAX) throw error
      const met = error instanceof JobDamaged ? [error.ref] : []
      if ((await setAside(met)) === 0) throw error
    }
  }
}

/** A fact with its position in the ledger, or why it cannot be read. */
export function readFact(pos: string, jobId: string, row: FactRow): TailEntry | UnreadableFact {
  try {
    return { pos, fact: toFact(jobId, row) }
  } catch (error) {
    return { pos, jobId, seq: row.seq, unreadable: messageOf(error) }
  }
}

/** Returns the facts of a tail; throws `LedgerBroken` if one cannot be read. */
export function readable(entries: readonly (TailEntry | UnreadableFact)[]): TailEntry[] {
  return entries.map((entry) => {
    if (!('unreadable' in entry)) return entry
    throw new LedgerBroken(`job ${entry.jobId}`, entry.seq, entry.unreadable)
  })
}

/** A page of a list of jobs while it is being filled. */
export class JobPage {
  readonly #limit: number
  readonly #items: Job[] = []
  readonly #damaged: DamagedJob[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  get isFull(): boolean {
    return this.#items.length + this.#damaged.length >= this.#limit
  }

  add({ id, lane }: { readonly id: string; readonly lane: number }, job: Job | JobDamaged): void {
    if (!(job instanceof JobDamaged)) this.#items.push(job)
    else this.#damaged.push({ id, lane: laneName(lane), why: job.why })
  }

  end(next?: string): Page<Job> {
    const damaged = this.#damaged
    return {
      items: this.#items,
      ...(damaged.length > 0 && { damaged }),
      ...(next !== undefined && { next }),
    }
  }
}

/** Throws `JobDamaged` if the result of a step is no JSON. */
export function assertJson(ref: Ref, results: readonly StepResult[]): void {
  if (results.every(({ payload }) => isJson(payload))) return
  throw new JobDamaged(String(ref), STEP_DAMAGED, ref)
}

/** The step of a fact, with its result; throws `JobDamaged` if it cannot be read. */
export function stepIn(ref: Ref, data: string, payload: string): StepResult {
  try {
    const { step } = JSON.parse(data) as { step: { name: string; n: number } }
    const isSound = typeof step.name === 'string' && Number.isSafeInteger(step.n)
    if (isSound) return { name: step.name, n: step.n, payload }
  } catch {
    // Thrown below: the parser does not know the job of the fact.
  }
  throw new JobDamaged(String(ref), STEP_DAMAGED, ref)
}
