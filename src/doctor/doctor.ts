/**
 * The doctor: looks at a store without changing it, says what is wrong and what could be done, and
 * does that only when a person asks, by name and with a reason.
 *
 * Jobs are read page by page, each page as of one moment, so that a store with a million jobs costs
 * no more memory than one page, and nobody waits for the doctor. What is found of a job is judged
 * by that page alone; a repair reads the job again inside the transaction that writes.
 */

import { messageOf } from '../core/errors.ts'
import { findFault } from '../core/job/checks.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Environment } from '../environment/system.ts'
import type { Dossier, Duplicate, StrayEffect, Surgeon } from '../stores/examination.ts'
import type { Ref, Store } from '../stores/store.ts'
import { type Versions, versionsOf } from '../stores/versions.ts'
import { SILENT_AFTER_MS } from '../stores/worker-info.ts'
import type { JobCheck, Patience, Sighting, StoreCheck, Surgery, Ward } from './checks/check.ts'
import { effectsAreTheirJobs } from './checks/effects-are-their-jobs.ts'
import { FULL_CHECKS, JOB_CHECKS, QUICK_CHECKS } from './checks/index.ts'
import { machinesAreKnown } from './checks/machines-are-known.ts'
import { lookAtRuns, type RunRecords } from './checks/runs-are-whole.ts'
import { schemaIsAsDeclared } from './checks/schema-is-as-declared.ts'
import type { Finding } from './finding.ts'
import { keysBetween, keysOf, rivalOf } from './keys.ts'
import { type Prescription, prescribe } from './mend.ts'
import { examine, type Patient } from './patient.ts'
import {
  type Doable,
  type Repair,
  repairOfCourse,
  repairOfJob,
  repairOfRun,
  repairOfStore,
} from './repairs.ts'
import { STRAYS_MAX, withOwnEffects } from './stray-effects.ts'

/** What the doctor needs. */
export interface DoctorParts {
  readonly store: Store
  readonly lifecycles: readonly Lifecycle[]
  readonly environment: Environment
  /** Where runs are kept, if they are to be looked at. */
  readonly runs?: readonly RunRecords[]
  readonly patience?: Partial<Patience>
}

/** What to look at. */
export interface CheckOptions {
  /** Every job and the whole file. Otherwise jobs are looked at for two seconds at most. */
  readonly full?: boolean
  readonly signal?: AbortSignal
  /** Told of every finding as it comes; a report keeps only the first of them. */
  readonly onFinding?: (finding: Finding) => void
  readonly onProgress?: (jobs: number) => void
}

/** Who repairs, and why; both stand in the ledger. */
export interface RepairOptions extends Omit<CheckOptions, 'full'> {
  readonly operator: string
  readonly reason: string
}

/** What was found. */
export interface Report {
  /** Nothing that counts was found; notices do not. */
  readonly ok: boolean
  /** Whether everything was looked at. */
  readonly complete: boolean
  /** How many jobs were looked at. */
  readonly jobs: number
  readonly errors: number
  readonly warnings: number
  readonly notices: number
  /** The first of them. */
  readonly findings: readonly Finding[]
  /** What could be done, or was done; the first of it. */
  readonly repairs: readonly Repair[]
  readonly repairCount: number
}

const PAGE = 500
/** A round is short: it shares its thread with handlers. */
const ROUND_PAGE = 100
const KEPT_MAX = 1000
const REST_MAX_MS = 1000
const QUICK_MS = 2000
const DEFAULT_PATIENCE: Patience = {
  workerMs: SILENT_AFTER_MS,
  dueMs: 30_000,
  stalledMs: 600_000,
}

/** The doctor of one store. */
export class Doctor {
  readonly #parts: DoctorParts
  readonly #patience: Patience
  #versions: Versions | undefined
  /** Found by the last full look at the store. */
  #strays: readonly StrayEffect[] = []

  /** Made by `pawl.doctor`. @internal */
  constructor(parts: DoctorParts) {
    this.#parts = parts
    this.#patience = { ...DEFAULT_PATIENCE, ...parts.patience }
  }

  /** Looks, and changes nothing. The plan of what could be done is part of the report. */
  async check(options: CheckOptions = {}): Promise<Report> {
    const tally = new Tally(options)
    await this.#walk(options, tally)
    return tally.report()
  }

  /** Does what a full check plans; what it reports are the findings that it acted on. */
  async repair(options: RepairOptions): Promise<Report> {
    const { operator, reason } = options
    const context = { now: 0, random: 0, actor: 'doctor', operator, note: reason } as const
    const fault = findFault({ kind: 'repair' }, context)
    if (fault !== undefined) throw fault
    const tally = new Tally(options, { operator, note: reason })
    await this.#restoreTables(tally)
    await this.#repairBefore(machinesAreKnown, tally)
    await this.#repairBefore(effectsAreTheirJobs, tally)
    await this.#walk({ ...options, full: true }, tally)
    return tally.report()
  }

  /** A page of jobs from a place on, and where to go on; at the end, from the beginning. */
  async round(place: string | undefined): Promise<{ findings: Finding[]; next?: string }> {
    const { store } = this.#parts
    const ward = await this.#ward(false)
    const page = await store.examination.dossiers(place, ROUND_PAGE)
    const findings = page.flatMap((dossier) => {
      return findingsOf(this.#examine(dossier), ward, undefined)
    })
    const last = page[page.length - 1]?.ref
    return { findings, ...(last !== undefined && { next: String(last) }) }
  }

  /** Without its tables nothing else can be read. What cannot be restored is told by its check. */
  async #restoreTables(tally: Tally): Promise<void> {
    const { store } = this.#parts
    const drift = await store.examination.drift()
    const gone = drift.filter(({ kind, problem }) => kind === 'table' && problem === 'missing')
    const { name: check } = schemaIsAsDeclared
    for (const finding of await schemaIsAsDeclared.look(this.#surgery())) {
      const [repair] = repairOfStore(store, finding, gone)
      if (repair !== undefined) await tally.repairFirst({ check, ...finding }, repair)
    }
  }

  /** Jobs are rebuilt by the numbers of their lifecycles, and judged by their effects. */
  async #repairBefore(check: StoreCheck, tally: Tally): Promise<void> {
    const findings = await check.look(this.#surgery()).catch(() => [])
    for (const finding of findings) {
      const [repair] = repairOfStore(this.#parts.store, finding, [])
      if (repair !== undefined) await tally.repairFirst({ check: check.name, ...finding }, repair)
    }
  }

  /** Jobs come first: constraints and counts can be restored when the jobs are mended. */
  async #walk(options: CheckOptions, tally: Tally): Promise<void> {
    const { full = false } = options
    await this.#lookAtJobs(options, tally)
    await this.#lookAgain(options, tally)
    const checks = full && !options.signal?.aborted ? FULL_CHECKS : []
    const surgery = this.#surgery()
    for (const check of [...checks, ...QUICK_CHECKS]) {
      await this.#lookAtStore(check, surgery, tally)
    }
    for (const records of this.#parts.runs ?? []) await this.#lookAtRuns(records, tally)
  }

  /** What was restored may have the key of another; that shows when all are there. */
  async #lookAgain(options: CheckOptions, tally: Tally): Promise<void> {
    if (!tally.isRepairing || (await this.#parts.store.examination.duplicates(1)).length === 0)
      return
    await this.#lookAtJobs(options, tally)
  }

  #surgery(): Surgery {
    const { store, lifecycles } = this.#parts
    let found: Promise<readonly Duplicate[]> | undefined
    const duplicates = () => {
      found ??= store.examination.duplicates(KEPT_MAX)
      return found
    }
    return { store, lifecycles, now: store.now(), patience: this.#patience, duplicates }
  }

  /** A check that cannot be made is a finding itself: nobody may take it for passed. */
  async #lookAtStore(check: StoreCheck, surgery: Surgery, tally: Tally): Promise<void> {
    const { store } = this.#parts
    try {
      const findings = await check.look(surgery)
      const drift = findings.length === 0 ? [] : await store.examination.drift()
      for (const finding of findings) {
        tally.add({ check: check.name, ...finding })
        await tally.plan(repairOfStore(store, finding, drift))
      }
    } catch (error) {
      tally.add(thrown(check, 'the store', error))
    }
  }

  async #lookAtJobs(
    { full = false, signal, onProgress }: CheckOptions,
    tally: Tally,
  ): Promise<void> {
    const { store, environment } = this.#parts
    const ward = await this.#ward(full).catch((error: unknown) => tally.miss(error))
    if (ward === undefined) return
    const until = environment.clock.now() + QUICK_MS
    let place: Ref | undefined
    for (;;) {
      const began = environment.clock.now()
      const page = await this.#page(place, tally)
      for (const dossier of page) await this.#lookAt(dossier, ward, tally)
      onProgress?.(tally.jobs)
      place = page[page.length - 1]?.ref
      if (place === undefined) return
      const isOver = signal?.aborted || (!full && environment.clock.now() > until)
      if (isOver) {
        tally.complete = (await store.examination.dossiers(place, 1)).length === 0
        return
      }
      await this.#rest(environment.clock.now() - began)
    }
  }

  /** Those who work come first: the doctor rests as long as it has looked, and lets others run. */
  #rest(ms: number): Promise<void> {
    const { timers } = this.#parts.environment
    return new Promise((turn) => {
      if (ms > 0) timers.after(Math.min(ms, REST_MAX_MS), turn)
      else timers.defer(turn)
    })
  }

  async #page(after: Ref | undefined, tally: Tally): Promise<Dossier[]> {
    try {
      return await this.#parts.store.examination.dossiers(after, PAGE)
    } catch (error) {
      tally.miss(error)
      return []
    }
  }

  /** By the lifecycles of this process, and by those that only the store has. */
  readonly #examine = (dossier: Dossier): Patient => {
    const { usable, stored } = this.#versions ?? { usable: this.#parts.lifecycles, stored: [] }
    return examine(withOwnEffects(dossier, this.#strays), usable, stored)
  }

  /** What all checks of jobs must know besides. */
  async #ward(full: boolean): Promise<Ward> {
    const { store, lifecycles } = this.#parts
    // Without its table jobs are judged by what this process knows.
    this.#versions = await versionsOf(store, lifecycles).catch(() => undefined)
    const workers = new Map((await store.listWorkers()).map((row) => [row.id, row]))
    this.#strays = full ? await store.examination.strayEffects(STRAYS_MAX).catch(() => []) : []
    const found = full ? await store.examination.duplicates(Number.MAX_SAFE_INTEGER) : []
    return {
      now: store.now(),
      workers,
      patience: this.#patience,
      duplicateIds: new Set(found.filter(({ key }) => key === undefined).map(({ id }) => id)),
      ...(await keysOf(store, found)),
    }
  }

  async #lookAt(dossier: Dossier, before: Ward, tally: Tally): Promise<void> {
    const { store } = this.#parts
    tally.jobs++
    // Pages are read one after the other: time goes on in between.
    const patient = this.#examine(dossier)
    if (isNothing(patient.dossier)) return
    const rival = await rivalOf(store, patient).catch(() => undefined)
    const known = { ...before, now: Math.max(before.now, store.now()) }
    const ward = rival === undefined ? known : { ...known, rival }
    const prescription = attempt(() => prescribe(patient, ward, {}))
    const findings = findingsOf(patient, ward, prescription)
    for (const finding of findings) tally.add(finding)
    if (prescription !== undefined) {
      const repair = repairOfJob(store, this.#examine, patient, prescription, ward)
      await tally.plan([...(await this.#repairOfRival(patient, ward)), repair])
    } else {
      for (const finding of findings) await tally.plan(repairOfCourse(store, patient, finding))
    }
  }

  /** The key must be free before the job is restored that it belongs to. */
  async #repairOfRival({ folded }: Patient, ward: Ward): Promise<Doable[]> {
    const { store } = this.#parts
    if (ward.rival === undefined || folded === null) return []
    const dossier = await store.examination.dossierOf(ward.rival)
    const rival = dossier && this.#examine(dossier)
    if (!rival?.folded) return []
    const around = { ...ward, ...keysBetween(folded, rival.folded) }
    const prescription = attempt(() => prescribe(rival, around, {}))
    if (prescription?.remedy !== 'give the key up') return []
    return [repairOfJob(store, this.#examine, rival, prescription, around)]
  }

  async #lookAtRuns(records: RunRecords, tally: Tally): Promise<void> {
    for await (const { runId, finding } of lookAtRuns(records)) {
      tally.add(finding)
      await tally.plan(repairOfRun(records, runId, finding))
    }
  }
}

/** Whether all that a number or id had were effects of other jobs. */
function isNothing({ row, facts, effects }: Dossier): boolean {
  return row === null && facts.length + effects.length === 0
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    // The findings tell of the job; that nothing can be prescribed for it shows in the plan.
    return undefined
  }
}

/** What the checks see of a job. */
export function findingsOf(
  patient: Patient,
  ward: Ward,
  prescription: Prescription | undefined,
): Finding[] {
  return JOB_CHECKS.flatMap((check) => {
    try {
      return check.look(patient, ward).map((seen) => findingOf(check, patient, seen, prescription))
    } catch (error) {
      return [thrown(check, `job ${patient.id}`, error)]
    }
  })
}

function findingOf(
  { name: check, promise }: JobCheck,
  { id }: Patient,
  { severity = 'error', what, evidence = {}, remedy, advice }: Sighting,
  prescription: Prescription | undefined,
): Finding {
  const prescribed = remedy ?? (severity === 'error' ? prescription?.remedy : undefined)
  return {
    ...{ check, promise, severity, subject: `job ${id}`, what, evidence },
    ...(prescribed !== undefined && { remedy: prescribed }),
    ...(advice !== undefined && { advice }),
  }
}

function thrown(
  { name, promise }: Pick<StoreCheck, 'name' | 'promise'>,
  subject: string,
  error: unknown,
): Finding {
  const what = `the check ${name} could not be made: ${messageOf(error)}`
  return { check: name, promise, severity: 'error', subject, what, evidence: {} }
}

/** Counts everything, and keeps the first of it; carries repairs out where somebody asks for it. */
class Tally {
  jobs = 0
  complete = true
  readonly #options: CheckOptions
  readonly #by: Surgeon | undefined
  readonly #findings: Finding[] = []
  readonly #repairs: Repair[] = []
  readonly #counts = { error: 0, warning: 0, notice: 0 }
  #repairCount = 0

  constructor(options: CheckOptions, by?: Surgeon) {
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

  /** A repair before any check is made; nothing is told of it where it cannot be done. */
  async repairFirst(finding: Finding, { carryOut, ...repair }: Doable): Promise<void> {
    try {
      await carryOut(this.#by as Surgeon)
    } catch {
      return
    }
    this.add(finding)
    this.#note(repair)
  }

  /** Jobs cannot be read: nobody may take them for sound. */
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
