/**
 * The filters of lists, audits and bulk commands, checked in one place for every store and every
 * caller. An unknown field, an unknown value and a field that is `undefined` are refused: each of
 * them would otherwise widen the selection, in the worst case to every job. So is a period that
 * ends before it begins, which would match nothing.
 */
import { count, flag, NAME_MAX, NOTE_MAX, oneOf, text, time } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks } from '../../core/fields.ts'
import { ACTORS, FACT_CODES } from '../../core/job/facts.ts'
import { LANES } from '../../core/job/lanes.ts'
import type { AuditFilter, AuditOptions } from '../audit.ts'
import { OUTCOME_WORDS } from '../ends.ts'
import { LIMIT_MAX } from './requests.ts'
import { EFFECT_STATES, type EffectFilter, type JobFilter } from './store.ts'

const nameText = (value: string) => text(value, NAME_MAX)
const noteText = (value: string) => text(value, NOTE_MAX)

const JOB_FILTER: FieldChecks<JobFilter> = {
  state: nameText,
  lane: (value) => oneOf(value, Object.keys(LANES)),
  outcome: (value) => oneOf(value, OUTCOME_WORDS),
  stalled: flag,
  queue: nameText,
  type: nameText,
  tag: nameText,
  key: nameText,
  error: noteText,
  waitsFor: nameText,
  flow: nameText,
  waitsForSignal: (value) => (value === true ? undefined : 'must be true'),
  createdFrom: time,
  createdBefore: time,
}

const EFFECT_FILTER: FieldChecks<EffectFilter> = {
  jobId: nameText,
  state: (value) => oneOf(value, EFFECT_STATES),
  type: nameText,
}

const AUDIT_FILTER: FieldChecks<AuditFilter> = {
  jobId: nameText,
  actor: (value) => oneOf(value, ACTORS),
  operator: nameText,
  worker: nameText,
  trigger: (value) => oneOf(value, Object.keys(FACT_CODES)),
  fromState: nameText,
  toState: nameText,
  reason: noteText,
  from: time,
  before: time,
}

const PAGE: FieldChecks<PageOptions> = {
  limit: (value) => count(value, 0, LIMIT_MAX),
  after: nameText,
}

const AUDIT_OPTIONS: FieldChecks<AuditOptions> = {
  ...PAGE,
  order: (value) => oneOf(value, ['oldest', 'newest']),
  payloads: flag,
}

/** Which page of a list. */
export interface PageOptions {
  readonly limit?: number
  readonly after?: string
}

/** Throws `CommandInvalid` if a filter of jobs is not one; `prefix` is put before its fields. */
export function checkJobFilter(filter: JobFilter, prefix = ''): void {
  checkFields(filter, JOB_FILTER, { what: 'filter', prefix, refuseUndefined: true })
  checkPeriod(prefix, ['createdFrom', filter.createdFrom], ['createdBefore', filter.createdBefore])
}

/** Throws `CommandInvalid` if a filter of effects is not one. */
export function checkEffectFilter(filter: EffectFilter, prefix = ''): void {
  checkFields(filter, EFFECT_FILTER, { what: 'filter', prefix, refuseUndefined: true })
}

/** Throws `CommandInvalid` if a filter of facts, or the way in which they are read, is not one. */
export function checkAudit(filter: AuditFilter, options: AuditOptions): void {
  checkFields(filter, AUDIT_FILTER, { what: 'filter', refuseUndefined: true })
  checkPeriod('', ['from', filter.from], ['before', filter.before])
  checkFields(options, AUDIT_OPTIONS, { what: 'options' })
}

/** Throws `CommandInvalid` if a page of a list is not one. */
export function checkPage(page: PageOptions): void {
  checkFields(page, PAGE, { what: 'page' })
}

type Bound = readonly [field: string, value: number | undefined]

function checkPeriod(prefix: string, [, from]: Bound, [field, before]: Bound): void {
  if (from === undefined || before === undefined || from < before) return
  throw new CommandInvalid(`${prefix}${field}`, 'must be later than the beginning of the period')
}
