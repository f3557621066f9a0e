/** Retention at the request of a person, and what it would remove now. */
import { abortSignal, callable, flag, listOf, name } from '../../core/checks.ts'
import { checkFields, type FieldChecks } from '../../core/fields.ts'
import type { Requester, Store } from '../../stores/contract/store.ts'
import type { PawlEvent } from '../watching/events.ts'
import { checkRetention, type RetentionOptions } from './options.ts'
import { type ClassReport, type PassParts, RetentionPass } from './pass.ts'
import { policyOf, type RetentionPolicy } from './policy.ts'

/** The options of `runRetention`. */
export interface RunRetentionOptions {
  /** Counts what would be removed, and removes nothing. */
  readonly dryRun?: boolean
  /** Other times than those of `createPawl` and of the job types. */
  readonly retention?: RetentionOptions
  /** With `retention`: the types of the jobs; all types if absent. */
  readonly types?: readonly string[]
  /** Stops after the current step. */
  readonly signal?: AbortSignal
  /** Called after each step with the number of jobs that are removed so far. */
  readonly onProgress?: (removed: number) => void
}

const TYPES_MAX = 10_000

const RUN: FieldChecks<RunRetentionOptions> = {
  dryRun: flag,
  retention: checkRetention,
  types: (values: readonly string[]) => listOf(values, TYPES_MAX, name),
  signal: abortSignal,
  onProgress: callable,
}

/** What a run of retention removed, or would remove. */
export interface RetentionReport {
  readonly dryRun: boolean
  readonly removed: number
  /** How many keys of these jobs stay taken. */
  readonly keys: number
  readonly classes: readonly ClassReport[]
  /** False if it was stopped before everything was looked at. */
  readonly complete: boolean
}

/** What retention would do now. */
export interface RetentionStatus {
  /** Whether a worker has looked after retention within the last two days. */
  readonly active: boolean
  /** Jobs that are old enough to be removed, by class; counted up to a bound. */
  readonly due: RetentionReport
  /** Jobs that ended more than 30 days ago, of all types, up to 10,000. */
  readonly old: number
  /** Keys of removed jobs that stay taken, up to 10,000. */
  readonly keys: number
}

export interface RetentionParts extends Omit<PassParts, 'by' | 'dryRun'> {
  readonly observe: (event: PawlEvent) => void
}

/** Removes ended jobs now, as workers would; with a record that has the person and the reason. */
export async function runRetention(
  parts: RetentionParts,
  { operator = '', note = '' }: Requester,
  options: RunRetentionOptions = {},
): Promise<RetentionReport> {
  checkFields(options, RUN, { what: 'options' })
  const { dryRun = false, signal, onProgress } = options
  const policy = policyFor(parts.policy, options)
  const pass = new RetentionPass({ ...parts, policy, dryRun, by: { operator, note } }, new Map())
  while (!pass.isDone && signal?.aborted !== true) {
    await pass.step()
    onProgress?.(reportOf(pass, dryRun).removed)
  }
  const report = reportOf(pass, dryRun)
  for (const { outcome, keepMs, removed, keys } of dryRun ? [] : report.classes) {
    if (removed === 0) continue
    parts.observe({ type: 'retention', worker: null, outcome, keepMs, removed, keys, operator })
  }
  return report
}

function policyFor(known: RetentionPolicy, options: RunRetentionOptions): RetentionPolicy {
  const { retention, types } = options
  return retention === undefined ? known : policyOf(retention, types?.map(typeOf))
}

function typeOf(type: string) {
  return { name: type, retention: undefined }
}

function reportOf(pass: RetentionPass, dryRun: boolean): RetentionReport {
  const classes = pass.reports
  const sum = (field: 'removed' | 'keys') => classes.reduce((all, one) => all + one[field], 0)
  const counts = { removed: sum('removed'), keys: sum('keys') }
  return { dryRun, ...counts, classes, complete: pass.isDone }
}

/** How many steps a status takes at most. */
const STATUS_STEPS_MAX = 200
const OLD_MS = 30 * 86_400_000
const ACTIVE_MS = 2 * 86_400_000
const COUNT_MAX = 10_000

/** What retention would do now; removes nothing. */
export async function retentionStatus(
  parts: Pick<RetentionParts, 'store' | 'environment' | 'policy'>,
  options: RunRetentionOptions,
): Promise<RetentionStatus> {
  checkFields(options, RUN, { what: 'options' })
  const { retention } = parts.store
  const policy = policyFor(parts.policy, options)
  const pass = new RetentionPass({ ...parts, policy, dryRun: true }, new Map())
  for (let steps = 0; !pass.isDone && steps < STATUS_STEPS_MAX; steps++) await pass.step()
  return {
    active: await isActive(parts.store),
    due: reportOf(pass, true),
    old: await retention.countEnded(Math.max(0, parts.store.now() - OLD_MS), COUNT_MAX),
    keys: await retention.countKeys(COUNT_MAX),
  }
}

async function isActive(store: Store): Promise<boolean> {
  const looked = await store.retention.lastLook()
  return looked !== undefined && looked > store.now() - ACTIVE_MS
}
