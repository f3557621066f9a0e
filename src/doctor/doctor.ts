/**
 * The doctor checks a store against the promises. A check changes nothing; it reports findings and
 * plans repairs. A repair needs the name of an operator and a reason.
 *
 * Jobs are read page by page, so memory does not grow with the store, and workers never wait for
 * the doctor. Each page is a consistent snapshot, and a job is checked by its page alone. A repair
 * reads the job again inside the transaction that writes.
 */

import { abortSignal, callable, count, flag, listOf, record } from '../core/checks.ts'
import { messageOf } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { findFault } from '../core/job/checks.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Environment } from '../environment/system.ts'
import type {
  Duplicate,
  RepairAuthor,
  StoredJob,
  StrayEffect,
} from '../stores/contract/examination.ts'
import type { TicksOf } from '../stores/contract/schedules.ts'
import type { Ref, Store } from '../stores/contract/store.ts'
import { type Versions, versionsOf } from '../stores/versions.ts'
import { SILENT_AFTER_MS } from '../stores/worker-info.ts'
import type {
  CheckContext,
  JobCheck,
  Sighting,
  StoreCheck,
  StoreCheckContext,
  Thresholds,
} from './checks/check.ts'
import { effectsAreTheirJobs } from './checks/effects-are-their-jobs.ts'
import { FULL_CHECKS, JOB_CHECKS, QUICK_CHECKS } from './checks/index.ts'
import { machinesAreKnown } from './checks/machines-are-known.ts'
import { checkRuns, type RunRecords } from './checks/runs-are-whole.ts'
import { schemaIsAsDeclared } from './checks/schema-is-as-declared.ts'
import { type ExaminedJob, examine } from './examined-job.ts'
import type { Finding } from './finding.ts'
import { keysBetween, keysOf, rivalOf } from './keys.ts'
import { planRepair, type RepairPlan } from './mend.ts'
import {
  type Doable,
  type Repair,
  repairOfCourse,
  repairOfJob,
  repairOfRun,
  repairOfStore,
} from './repairs.ts'
import { STRAYS_MAX, withOwnEffects } from './stray-effects.ts'

export interface DoctorParts {
  readonly store: Store
  readonly lifecycles: readonly Lifecycle[]
  readonly environment: Environment
  /** The journals whose runs are checked. */
  readonly runs?: readonly RunRecords[]
  readonly thresholds?: Partial<Thresholds>
  /** Returns the ticks of schedules; without it they are not checked. @internal */
  readonly ticksOf?: TicksOf
}

export interface CheckOptions {
  /**
   * Checks every job and the whole file; otherwise jobs are checked for two seconds at most.
   * @defaultValue `false`
   */
  readonly full?: boolean
  /**
   * Ends the check early; the report says that it is not complete.
   * @defaultValue none
   */
  readonly signal?: AbortSignal
  /**
   * Called for every finding; a report keeps only the first 1000.
   * @defaultValue none
   */
  readonly onFinding?: (finding: Finding) => void
  /**
   * Called with the number of jobs checked so far.
   * @defaultValue none
   */
  readonly onProgress?: (jobs: number) => void
}

/** Who repairs, and why; the ledger records both. */
export interface RepairOptions extends Omit<CheckOptions, 'full'> {
  readonly operator: string
  readonly reason: string
}

const LISTENERS = { signal: abortSignal, onFinding: callable, onProgress: callable }
const CHECK: FieldChecks<CheckOptions> = { full: flag, ...LISTENERS }
// The rules of repairs check operator and reason.
const REPAIR: FieldChecks<RepairOptions> = { operator: unchecked, reason: unchecked, ...LISTENERS }

export interface Report {
  /** True if there are no errors and no warnings. */
  readonly ok: boolean
  /** True if every job was checked. */
  readonly complete: boolean
  /** How many jobs were checked. */
  readonly jobs: number
  readonly errors: number
  readonly warnings: number
  readonly notices: number
  /** The first 1000. */
  readonly findings: readonly Finding[]
  /** The first 1000 repairs: planned by `check`, carried out by `repair`. */
  readonly repairs: readonly Repair[]
  readonly repairCount: number
}

const PAGE = 500
/** A round of a worker shares its thread with handlers, so it is short. */
const ROUND_PAGE = 100
const KEPT_MAX = 1000
const PAUSE_MAX_MS = 1000
const QUICK_MS = 2000
const DEFAULT_THRESHOLDS: Thresholds = {
  workerMs: SILENT_AFTER_MS,
  dueMs: 30_000,
  stalledMs: 600_000,
}

const RUN_PLACES_MAX = 1000
const wholeMs = (value: number) => count(value, 0, Number.MAX_SAFE_INTEGER)
const THRESHOLDS: FieldChecks<Thresholds> = {
  workerMs: wholeMs,
  dueMs: wholeMs,
  stalledMs: wholeMs,
}

/** Throws `CommandInvalid` for unknown or invalid options of `pawl.doctor`. */
export function checkDoctorOptions(options: Pick<DoctorParts, 'runs' | 'thresholds'>): void {
  const places = (values: readonly object[]) => listOf(values, RUN_PLACES_MAX, record)
  checkFields(options, { runs: places, thresholds: record }, { what: 'options' })
  const { thresholds } = options
  if (thresholds === undefined) return
  checkFields(thresholds as Thresholds, THRESHOLDS, { what: 'thresholds', prefix: 'thresholds.' })
}

/** The doctor of one store. */
export class Doctor {
  readonly #parts: DoctorParts
  readonly #thresholds: Thresholds
  #versions: Versions | undefined
  /** Found by the last full check. */
  #strays: readonly StrayEffect[] = []

  /** Made by `pawl.doctor`. @internal */
  constructor(parts: DoctorParts) {
    this.#parts = parts
    this.#thresholds = { ...DEFAULT_THRESHOLDS, ...parts.thresholds }
  }

  /** Checks the store and changes nothing. The report contains the planned repairs. */
  async check(options: CheckOptions = {}): Promise<Report> {
    checkFields(options, CHECK, { what: 'options' })
    const tally = new Tally(options)
    await this.#checkAll(options, tally)
    return tally.report()
  }

  /** Carries out what a full check plans. The report has the findings that were repaired. */
  async repair(options: RepairOptions): Promise<Report> {
    checkFields(options, REPAIR, { what: 'options' })
    const { operator, reason } = options
    const context = { now: 0, random: 0, actor: 'doctor', operator, note: reason } as const
    const fault = findFault({ kind: 'repair' }, context)
    if (fault !== undefined) throw fault
    const tally = new Tally(options, { operator, note: reason })
    await this.#restoreTables(tally)
    await this.#repairBefore(machinesAreKnown, tally)
    await this.#repairBefore(effectsAreTheirJobs, tally)
    await this.#checkAll({ ...options, full: true }, tally)
    return tally.report()
  }

  /** Checks one page of jobs after a cursor. Without `next`, the next round starts again. */
  async round(cursor: string | undefined): Promise<{ findings: Finding[]; next?: string }> {
    const { store } = this.#parts
    const context = await this.#context(false)
    const page = await store.examination.storedJobs(cursor, ROUND_PAGE)
    const findings = page.flatMap((stored) => {
      return findingsOf(this.#examine(stored), context, undefined)
    })
    const last = page[page.length - 1]?.ref
    return { findings, ...(last !== undefined && { next: String(last) }) }
  }

  /** Restores missing tables first: without them nothing else can be read. */
  async #restoreTables(tally: Tally): Promise<void> {
    const { store } = this.#parts
    const drift = await store.examination.drift()
    const gone = drift.filter(({ kind, problem }) => kind === 'table' && problem === 'missing')
    const { name: check } = schemaIsAsDeclared
    for (const finding of await schemaIsAsDeclared.look(this.#storeContext())) {
      const [repair] = repairOfStore(store, finding, gone)
      if (repair !== undefined) await tally.repairFirst({ check, ...finding }, repair)
    }
  }

  /** Repairs lifecycles and effects before jobs, because checks of jobs read both. */
  async #repairBefore(check: StoreCheck, tally: Tally): Promise<void> {
    const findings = await check.look(this.#storeContext()).catch(() => [])
    for (const finding of findings) {
      const [repair] = repairOfStore(this.#parts.store, finding, [])
      if (repair !== undefined) await tally.repairFirst({ check: check.name, ...finding }, repair)
    }
  }

  /** Jobs come first: constraints and counters can be restored only if the jobs are in order. */
  async #checkAll(options: CheckOptions, tally: Tally): Promise<void> {
    const { full = false } = options
    await this.#checkJobs(options, tally)
    await this.#checkDuplicates(options, tally)
    const checks = full && !options.signal?.aborted ? FULL_CHECKS : []
    const context = this.#storeContext()
    for (const check of [...checks, ...QUICK_CHECKS]) {
      await this.#checkStore(check, context, tally)
    }
    for (const records of this.#parts.runs ?? []) await this.#checkRuns(records, tally)
  }

  /** A restored job may have the key of another one. That shows only when all are restored. */
  async #checkDuplicates(options: CheckOptions, tally: Tally): Promise<void> {
    if (!tally.isRepairing || (await this.#parts.store.examination.duplicates(1)).length === 0)
      return
    await this.#checkJobs(options, tally)
  }

  #storeContext(): StoreCheckContext {
    const { store, lifecycles, ticksOf } = this.#parts
    let found: Promise<readonly Duplicate[]> | undefined
    const duplicates = () => {
      found ??= store.examination.duplicates(KEPT_MAX)
      return found
    }
    const own = { now: store.now(), thresholds: this.#thresholds, duplicates }
    return { store, lifecycles, ...own, ...(ticksOf && { ticksOf }) }
  }

  /** A check that throws is a finding; otherwise it would look passed. */
  async #checkStore(check: StoreCheck, context: StoreCheckContext, tally: Tally): Promise<void> {
    const { store } = this.#parts
    try {
      const findings = await check.look(context)
      const drift = findings.length === 0 ? [] : await store.examination.drift()
      for (const finding of findings) {
        tally.add({ check: check.name, ...finding })
        await tally.plan(repairOfStore(store, finding, drift, this.#parts.ticksOf))
      }
    } catch (error) {
      tally.add(thrown(check, 'the store', error))
    }
  }

  async #checkJobs(
    { full = false, signal, onProgress }: CheckOptions,
    tally: Tally,
  ): Promise<void> {
    const { store, environment } = this.#parts
    const context = await this.#context(full).catch((error: unknown) => tally.miss(error))
    if (context === undefined) return
    const until = environment.clock.now() + QUICK_MS
    let last: Ref | undefined
    for (;;) {
      const began = environment.clock.now()
      const page = await this.#page(last, tally)
      for (const stored of page) await this.#checkJob(stored, context, tally)
      onProgress?.(tally.jobs)
      last = page[page.length - 1]?.ref
      if (last === undefined) return
      const isOver = signal?.aborted || (!full && environment.clock.now() > until)
      if (isOver) {
        tally.complete = (await store.examination.storedJobs(last, 1)).length === 0
        return
      }
      await this.#pause(environment.clock.now() - began)
    }
  }

  /** Pauses for as long as the last page took, so that workers keep half of the machine. */
  #pause(ms: number): Promise<void> {
    const { timers } = this.#parts.environment
    return new Promise((turn) => {
      if (ms > 0) timers.after(Math.min(ms, PAUSE_MAX_MS), turn)
      else timers.defer(turn)
    })
  }

  async #page(after: Ref | undefined, tally: Tally): Promise<StoredJob[]> {
    try {
      return await this.#parts.store.examination.storedJobs(after, PAGE)
    } catch (error) {
      tally.miss(error)
      return []
    }
  }

  /** Uses the lifecycles of this process, and those that only the store has. */
  readonly #examine = (job: StoredJob): ExaminedJob => {
    const { usable, stored } = this.#versions ?? { usable: this.#parts.lifecycles, stored: [] }
    return examine(withOwnEffects(job, this.#strays), usable, stored)
  }

  /** Reads what checks of jobs need besides the job. */
  async #context(full: boolean): Promise<CheckContext> {
    const { store, lifecycles } = this.#parts
    // If the table is missing, only the lifecycles of this process are used.
    this.#versions = await versionsOf(store, lifecycles).catch(() => undefined)
    const workers = new Map((await store.listWorkers()).map((row) => [row.id, row]))
    this.#strays = full ? await store.examination.strayEffects(STRAYS_MAX).catch(() => []) : []
    const found = full ? await store.examination.duplicates(Number.MAX_SAFE_INTEGER) : []
    return {
      now: store.now(),
      workers,
      thresholds: this.#thresholds,
      duplicateIds: new Set(found.filter(({ key }) => key === undefined).map(({ id }) => id)),
      ...(await keysOf(store, found)),
    }
  }

  async #checkJob(stored: StoredJob, before: CheckContext, tally: Tally): Promise<void> {
    const { store } = this.#parts
    tally.jobs++
    const examined = this.#examine(stored)
    if (isNothing(examined.stored)) return
    const rival = await rivalOf(store, examined).catch(() => undefined)
    const known = { ...before, now: Math.max(before.now, store.now()) }
    const context = rival === undefined ? known : { ...known, rival }
    const plan = attempt(() => planRepair(examined, context, {}))
    const findings = findingsOf(examined, context, plan)
    for (const finding of findings) tally.add(finding)
    if (plan !== undefined) {
      const repair = repairOfJob(store, this.#examine, examined, plan, context)
      await tally.plan([...(await this.#repairOfRival(examined, context)), repair])
    } else {
      for (const finding of findings) await tally.plan(repairOfCourse(store, examined, finding))
    }
  }

  /** The key must be free before its job is restored. */
  async #repairOfRival({ folded }: ExaminedJob, context: CheckContext): Promise<Doable[]> {
    const { store } = this.#parts
    if (context.rival === undefined || folded === null) return []
    const stored = await store.examination.storedJobOf(context.rival)
    const rival = stored && this.#examine(stored)
    if (!rival?.folded) return []
    const around = { ...context, ...keysBetween(folded, rival.folded) }
    const plan = attempt(() => planRepair(rival, around, {}))
    if (plan?.remedy !== 'give the key up') return []
    return [repairOfJob(store, this.#examine, rival, plan, around)]
  }

  async #checkRuns(records: RunRecords, tally: Tally): Promise<void> {
    for await (const { runId, finding } of checkRuns(records)) {
      tally.add(finding)
      await tally.plan(repairOfRun(records, runId, finding))
    }
  }
}

/** Returns true if only effects of other jobs had this id. */
function isNothing({ row, facts, effects }: StoredJob): boolean {
  return row === null && facts.length + effects.length === 0
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    // The findings describe the job; the report has no repair for it.
    return undefined
  }
}

/** Runs the checks of one job. */
export function findingsOf(
  examined: ExaminedJob,
  context: CheckContext,
  plan: RepairPlan | undefined,
): Finding[] {
  return JOB_CHECKS.flatMap((check) => {
    try {
      return check.look(examined, context).map((seen) => findingOf(check, examined, seen, plan))
    } catch (error) {
      return [thrown(check, `job ${examined.id}`, error)]
    }
  })
}

function findingOf(
  { name: check, promise }: JobCheck,
  { id }: ExaminedJob,
  { severity = 'error', what, evidence = {}, remedy, advice }: Sighting,
  plan: RepairPlan | undefined,
): Finding {
  const planned = remedy ?? (severity === 'error' ? plan?.remedy : undefined)
  return {
    ...{ check, promise, severity, subject: `job ${id}`, what, evidence },
    ...(planned !== undefined && { remedy: planned }),
    ...(advice !== undefined && { advice }),
  }
}

function thrown(
  { name, promise }: Pick<StoreCheck, 'name' | 'promise'>,
  subject: string,
  error: unknown,
): Finding {
  const what = `the check ${name} failed: ${messageOf(error)}`
  return { check: name, promise, severity: 'error', subject, what, evidence: {} }
}

/** Counts findings and repairs, keeps the first 1000 of each, and carries out repairs. */
class Tally {
  jobs = 0
  complete = true
  readonly #options: CheckOptions
  readonly #by: RepairAuthor | undefined
  readonly #findings: Finding[] = []
  readonly #repairs: Repair[] = []
  readonly #counts = { error: 0, warning: 0, notice: 0 }
  #repairCount = 0

  constructor(options: CheckOptions, by?: RepairAuthor) {
    this.#options = options
    this.#by = by
  }

  get isRepairing(): boolean {
    return this.#by !== undefined
  }

  add(finding: Finding): void {
    this.#counts[finding.severity]++
    this.#options.onFinding?.(finding)
    if (this.#findings.length < KEPT_MAX) this.#findings.push(finding)
  }

  async plan(repairs: readonly Doable[]): Promise<void> {
    for (const { carryOut, ...repair } of repairs) {
      try {
        if (this.#by !== undefined) await carryOut(this.#by)
      } catch (error) {
        const { subject, remedy } = repair
        const what = `could not ${remedy}: ${messageOf(error)}`
        const check = 'repairs-are-carried-out'
        this.add({ check, promise: 'P16', severity: 'error', subject, what, evidence: {} })
        continue
      }
      this.#note(repair)
    }
  }

  /** Repairs before the checks. If that fails, the later check reports the finding. */
  async repairFirst(finding: Finding, { carryOut, ...repair }: Doable): Promise<void> {
    try {
      await carryOut(this.#by as RepairAuthor)
    } catch {
      return
    }
    this.add(finding)
    this.#note(repair)
  }

  /** Records that jobs could not be read. */
  miss(error: unknown): undefined {
    this.complete = false
    this.add(thrown({ name: 'jobs-can-be-read', promise: 'P1' }, 'the store', error))
  }

  #note(repair: Repair): void {
    this.#repairCount++
    if (this.#repairs.length < KEPT_MAX) this.#repairs.push(repair)
  }

  report(): Report {
    const { error: errors, warning: warnings, notice: notices } = this.#counts
    return {
      ok: errors + warnings === 0,
      complete: this.complete,
      jobs: this.jobs,
      ...{ errors, warnings, notices },
      findings: this.#findings,
      repairs: this.#repairs,
      repairCount: this.#repairCount,
    }
  }
}
