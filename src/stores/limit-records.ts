/**
 * Changes of limits, and the records of them; the same rules in every store.
 *
 * The code proposes, operators override: a number from code has a version, of which the highest
 * counts; an operator's number counts until it is reset. Every change leaves a record. A process
 * that declares what the store has already writes nothing.
 */
import {
  count,
  findBroken,
  NOTE_MAX,
  name,
  oneOf,
  optional,
  type Rule,
  text,
} from '../core/checks.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { ActorKind } from '../core/job/facts.ts'
import {
  concurrency,
  gateFault,
  isRate,
  isRotating,
  isStrict,
  parseGate,
  UNITS_MAX,
} from '../core/limits/keys.ts'
import { defaultBurst } from '../core/limits/throttle.ts'
import { DELAY_MAX_MS } from '../core/retry.ts'
import type {
  DeclaredLimit,
  GateFilter,
  LimitDeclaration,
  LimitInfo,
  LimitRecord,
  LimitRecordFilter,
  LimitValues,
} from './contract/limits.ts'
import type { Requester } from './contract/store.ts'
import type { SettingRow } from './gate-rows.ts'
import type { Value } from './rows.ts'

/** A row of `limits`. */
export interface LimitRow extends SettingRow {
  readonly version: number
  readonly declared_at: number | null
  readonly override_at: number | null
  readonly override_by: string | null
  readonly override_note: string | null
}

/** Its columns, in the order of `limitValues`. */
export const LIMIT_COLUMNS = [
  'name',
  'max',
  'period_ms',
  'burst',
  'version',
  'declared_at',
  'override',
  'override_at',
  'override_by',
  'override_note',
] as const

export function toLimit(row: LimitRow): LimitInfo {
  return {
    name: row.name,
    max: row.max,
    periodMs: row.period_ms,
    burst: row.burst,
    version: row.version,
    declaredAt: row.declared_at,
    override: row.override,
    overrideAt: row.override_at,
    overrideBy: row.override_by,
    overrideNote: row.override_note,
  }
}

export function limitValues(limit: LimitInfo): Value[] {
  return [
    ...[limit.name, limit.max, limit.periodMs, limit.burst, limit.version, limit.declaredAt],
    ...[limit.override, limit.overrideAt, limit.overrideBy, limit.overrideNote],
  ]
}

/** A row of `limit_records`. */
export interface LimitRecordRow {
  readonly number: number
  readonly at: number
  readonly name: string
  readonly action: LimitRecord['action']
  readonly actor: ActorKind
  readonly operator: string | null
  readonly note: string | null
  readonly version_before: number
  readonly version: number
  readonly max_before: number | null
  readonly max: number | null
  readonly period_ms_before: number | null
  readonly period_ms: number | null
  readonly burst_before: number | null
  readonly burst: number | null
  readonly override_before: number | null
  readonly override: number | null
}

/** Its columns but its number, in the order of `limitRecordValues`. */
export const LIMIT_RECORD_COLUMNS = [
  ...['at', 'name', 'action', 'actor', 'operator', 'note', 'version_before', 'version'],
  ...['max_before', 'max', 'period_ms_before', 'period_ms', 'burst_before', 'burst'],
  ...['override_before', 'override'],
]

export function limitRecordValues(record: Omit<LimitRecord, 'number'>): Value[] {
  const { at, name, action, actor, operator = null, note = null, before, after } = record
  return [
    ...[at, name, action, actor, operator, note],
    ...[before.version, after.version],
    ...[before.max, after.max],
    ...[before.periodMs, after.periodMs],
    ...[before.burst, after.burst],
    ...[before.override, after.override],
  ]
}

export function toLimitRecord(row: LimitRecordRow): LimitRecord {
  const { number, at, name, action, actor, operator, note } = row
  return {
    number,
    at,
    name,
    action,
    actor,
    ...(operator !== null && { operator }),
    ...(note !== null && { note }),
    before: {
      max: row.max_before,
      periodMs: row.period_ms_before,
      burst: row.burst_before,
      version: row.version_before,
      override: row.override_before,
    },
    after: {
      max: row.max,
      periodMs: row.period_ms,
      burst: row.burst,
      version: row.version,
      override: row.override,
    },
  }
}

/** A limit that was never declared or set. */
export function unsetLimit(name: string): LimitInfo {
  const none = { max: null, periodMs: null, burst: null, version: 0, declaredAt: null }
  return { name, ...none, override: null, overrideAt: null, overrideBy: null, overrideNote: null }
}

/** What a declaration makes of a limit: nothing, or the limit after it; with a warning. */
export function declared(
  before: LimitInfo,
  { max, version = 1, ...rest }: LimitDeclaration,
  now: number,
): { readonly after?: LimitInfo; readonly warning?: NonNullable<DeclaredLimit['warning']> } {
  const periodMs = rest.periodMs ?? null
  const burst = rest.burst ?? null
  const own = isRate(before.name) && max !== null ? (burst ?? defaultBurst(max)) : burst
  const isSame = max === before.max && periodMs === before.periodMs && own === before.burst
  if (version < before.version) return isSame ? {} : { warning: 'kept' }
  if (isSame && version === before.version) return {}
  const after = { ...before, max, periodMs, burst: own, version, declaredAt: now }
  const isConflict = version === before.version && before.declaredAt !== null
  return isConflict ? { after, warning: 'conflict' } : { after }
}

/** The limit with an operator's number, or without one; `undefined` if it stays the same. */
export function overridden(
  before: LimitInfo,
  override: number | null,
  { operator = null, note = null }: Partial<Record<'operator' | 'note', string | null>>,
  now: number,
): LimitInfo | undefined {
  if (before.override === override) return undefined
  if (override === null) {
    return { ...before, override, overrideAt: null, overrideBy: null, overrideNote: null }
  }
  return { ...before, override, overrideAt: now, overrideBy: operator, overrideNote: note }
}

function valuesIn({ max, periodMs, burst, version, override }: LimitInfo): LimitValues {
  return { max, periodMs, burst, version, override }
}

/** The record of a change, before it has a number. */
export function limitRecordOf(
  action: LimitRecord['action'],
  { actor, operator, note }: Requester,
  at: number,
  before: LimitInfo,
  after: LimitInfo,
): Omit<LimitRecord, 'number'> {
  return {
    at,
    name: after.name,
    action,
    actor,
    ...(operator !== undefined && { operator }),
    ...(note !== undefined && { note }),
    before: valuesIn(before),
    after: valuesIn(after),
  }
}

/** How many limits can be declared at once. */
const DECLARED_MAX = 10_000
const VERSION_MAX = 1_000_000_000

const DECLARATION: FieldChecks<LimitDeclaration> = {
  name: unchecked,
  max: unchecked,
  periodMs: unchecked,
  burst: unchecked,
  version: (value) => count(value, 1, VERSION_MAX),
}

/** Throws `CommandInvalid` if a limit cannot be declared. */
export function checkDeclarations(limits: readonly LimitDeclaration[]): void {
  check([['limits', limits.length > DECLARED_MAX ? `must not be over ${DECLARED_MAX}` : undefined]])
  for (const limit of limits) {
    checkFields(limit, DECLARATION, { what: 'limit' })
    check([['name', gateFault(limit.name)]])
    check(isRate(limit.name) ? rateRules(limit) : concurrencyRules(limit))
  }
}

function rateRules({ max, periodMs, burst }: LimitDeclaration): Rule[] {
  const whole = count(max ?? -1, 1, UNITS_MAX)
  return [
    ['max', whole],
    ['periodMs', count(periodMs ?? -1, 1, DELAY_MAX_MS)],
    ['burst', optional(burst, (value) => count(value, 1, max ?? 1))],
  ]
}

function concurrencyRules({ max, periodMs, burst }: LimitDeclaration): Rule[] {
  const none = periodMs === undefined && burst === undefined
  return [
    ['max', max === null ? undefined : concurrency(max)],
    ['periodMs', none ? undefined : 'must be left out, with burst: the limit is not a throttle'],
  ]
}

/** Throws `CommandInvalid` if an operator cannot change a limit in this way. */
export function checkOverride(
  limit: string,
  value: number | null,
  { actor, operator, note }: Requester,
): void {
  const isThrottle = typeof limit === 'string' && isRate(limit)
  check([
    ['name', gateFault(limit)],
    ['name', isThrottle ? 'must not be a throttle, which only code changes' : undefined],
    ['concurrency', value === null ? undefined : overrideFault(limit, value)],
    ['actor', oneOf(actor, ['operator'])],
    ['operator', name(operator)],
    ['note', text(note, NOTE_MAX)],
  ])
}

function overrideFault(limit: string, value: number): string | undefined {
  if (isRotating(limit)) return 'must be set for a limit, not for groups that take turns'
  if (isStrict(limit) && value > 1)
    return 'must be 0 or 1: the jobs of a strict group run one by one'
  return concurrency(value)
}

/** Throws `CommandInvalid` if this does not name a gate. */
export function checkGate(gate: string): void {
  check([['gate', gateFault(gate)]])
}

const GATE_FILTER: FieldChecks<GateFilter> = {
  limit: gateFault,
  waiting: (value) => oneOf(String(value), ['true']),
}
const RECORD_FILTER: FieldChecks<LimitRecordFilter> = { name: gateFault }

/** Throws `CommandInvalid` if a filter of gates is not one. */
export function checkGateFilter(filter: GateFilter): void {
  checkFields(filter, GATE_FILTER, { what: 'filter', refuseUndefined: true })
}

/** Throws `CommandInvalid` if a filter of records is not one. */
export function checkLimitRecordFilter(filter: LimitRecordFilter): void {
  checkFields(filter, RECORD_FILTER, { what: 'filter', refuseUndefined: true })
}

function check(rules: readonly Rule[]): void {
  const broken = findBroken(rules)
  if (broken !== undefined) throw broken
}

/** The queue that a limit belongs to; `undefined` if it is not one of a queue. */
export function queueOf(limit: string): string | undefined {
  const parts = parseGate(limit)
  return parts?.kind === 'queue' ? parts.names[0] : undefined
}

/** The queue whose groups take turns by this declaration; `undefined` if it is another one. */
export function rotatingQueueOf(limit: string): string | undefined {
  const parts = parseGate(limit)
  return parts?.kind === 'group' ? parts.names[0] : undefined
}
