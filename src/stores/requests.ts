/** What may be asked of a store, checked before anything is read or written. */
import { type JsonBounds, nestingOf, utf8Length } from '../core/canonical-json.ts'
import {
  callable,
  count,
  findBroken,
  listOf,
  message,
  NOTE_MAX,
  name,
  oneOf,
  optional,
  type Rule,
  text,
  time,
} from '../core/checks.ts'
import { ValueInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import { LEASE_MAX_MS } from '../core/job/fence.ts'
import { reservedName } from './notices.ts'
import type {
  Asker,
  Beat,
  ClaimRequest,
  EffectClaim,
  EffectReport,
  PruneRequest,
  Settlement,
} from './store.ts'

/** No verb takes, returns or removes more than this at once. */
export const LIMIT_MAX = 10_000

/** How many things a verb may take at once. */
export function checkLimit(limit: number): void {
  check([['limit', count(limit, 0, LIMIT_MAX)]])
}

/** A claim of jobs. */
export function checkClaim({ worker, limit, leaseMs, queues, types }: ClaimRequest): void {
  check([
    ['worker', name(worker)],
    ['limit', count(limit, 0, LIMIT_MAX)],
    ['leaseMs', count(leaseMs, 1, LEASE_MAX_MS)],
    ['queues', optional(queues, texts)],
    ['types', optional(types, texts)],
  ])
}

/** A claim of effects. */
export function checkEffectClaim({ limit, leaseMs, types }: EffectClaim): void {
  check([
    ['limit', count(limit, 0, LIMIT_MAX)],
    ['leaseMs', count(leaseMs, 1, LEASE_MAX_MS)],
    ['types', optional(types, texts)],
  ])
}

/** How long leases are renewed for. */
export function checkLease(leaseMs: number): void {
  check([['leaseMs', count(leaseMs, 1, LEASE_MAX_MS)]])
}

const PRUNE: FieldChecks<PruneRequest> = {
  endedBefore: time,
  limit: (value) => count(value, 0, LIMIT_MAX),
  archive: callable,
}

/** Throws `CommandInvalid` if retention is asked for something unknown; returns the request. */
export function checkPrune(request: PruneRequest): PruneRequest {
  checkFields(request, PRUNE, { what: 'request' })
  const { endedBefore, limit } = request
  check([
    ['endedBefore', time(endedBefore)],
    ['limit', count(limit, 0, LIMIT_MAX)],
  ])
  return request
}

/** A name of the caller's choice. */
export function checkName(field: string, value: string): void {
  check([[field, name(value)]])
}

/** A place in a list or in the ledger that the store gave out, in the form that it has there. */
export function checkPlace(field: string, place: string | undefined, form: RegExp): void {
  if (place === undefined || (typeof place === 'string' && form.test(place))) return
  throw new ValueInvalid(field, 'is no place that this store gave out')
}

/** How an opener may bound payloads. */
export interface PayloadOptions {
  /** The largest input, result, step or effect, in bytes of JSON text; 16 MiB if absent. */
  readonly payloadBytesMax?: number
  /** How deep its arrays and objects may nest; 512 levels if absent. */
  readonly payloadDepthMax?: number
}

/** The bounds of a store's payloads; throws `CommandInvalid` where they make no sense. */
export function payloadBoundsOf({
  payloadBytesMax: bytesMax = 16 * 1024 * 1024,
  payloadDepthMax: depthMax = 512,
}: PayloadOptions): JsonBounds {
  check([
    ['payloadBytesMax', count(bytesMax, 1, Number.MAX_SAFE_INTEGER)],
    ['payloadDepthMax', count(depthMax, 0, Number.MAX_SAFE_INTEGER)],
  ])
  return { bytesMax, depthMax }
}

/** What is wrong with a payload; nothing when it can be stored and read back as it is. */
export function findPayloadFault(
  field: string,
  text: unknown,
  { bytesMax, depthMax }: JsonBounds,
): ValueInvalid | undefined {
  if (typeof text !== 'string') return new ValueInvalid(field, 'is no JSON text')
  // JSON writes both as escapes; as they are, not every database can keep them.
  if (/\p{Surrogate}|\0/u.test(text)) {
    return new ValueInvalid(field, 'contains a lone surrogate or NUL')
  }
  // No text has more than three bytes for each of its units, so most need not be counted.
  const large = text.length * 3 > bytesMax && utf8Length(text) > bytesMax
  if (large) return new ValueInvalid(field, `is larger than ${bytesMax} bytes`)
  const deep = couldNest(text, depthMax) && nestingOf(text) > depthMax
  return deep ? new ValueInvalid(field, `is nested deeper than ${depthMax} levels`) : undefined
}

/** Whether a text has room and brackets for more levels than these; most have not. */
function couldNest(text: string, levels: number): boolean {
  if (text.length <= 2 * levels) return false
  let brackets = 0
  for (const bracket of '[{') {
    let place = text.indexOf(bracket)
    for (; place >= 0 && brackets <= levels; place = text.indexOf(bracket, place + 1)) brackets++
  }
  return brackets > levels
}

/** An effect that a commit declares. */
export function checkEffect(effect: string, payload: string, bounds: JsonBounds): void {
  check([['effect', name(effect) ?? reservedName(effect)]])
  const fault = findPayloadFault('effect', payload, bounds)
  if (fault !== undefined) throw fault
}

/** What attempts tell of themselves with their heartbeats. */
export function checkProgress(beats: readonly Beat[], bounds: JsonBounds): void {
  for (const { progress } of beats) {
    const fault =
      progress === undefined ? undefined : findPayloadFault('progress', progress, bounds)
    if (fault !== undefined) throw fault
  }
}

/** What came of deliveries. */
export function checkReports(reports: readonly EffectReport[]): void {
  check(
    reports.flatMap((report): Rule[] => [
      ['runAt', 'runAt' in report ? time(report.runAt) : undefined],
      ['error', report.kind === 'delivered' ? undefined : message(report.error, NOTE_MAX)],
    ]),
  )
}

/** Effects to be tried again, and who asks for it. */
export function checkRetry(keys: readonly string[], { actor, operator, note }: Asker): void {
  check([
    ['keys', texts(keys)],
    ['actor', oneOf(actor, ['operator'])],
    ['operator', name(operator)],
    ['note', text(note, NOTE_MAX)],
  ])
}

/** Whether a report makes nothing ready, so that nobody need be woken. */
export function isStep({ command }: Settlement): boolean {
  return command.kind === 'step'
}

/** Texts to look for. One that cannot be stored is not refused: it is found nowhere. */
function texts(values: readonly string[]): string | undefined {
  return listOf(values, LIMIT_MAX, (value) =>
    typeof value === 'string' ? undefined : 'must be a list of texts',
  )
}

function check(rules: readonly Rule[]): void {
  const broken = findBroken(rules)
  if (broken !== undefined) throw broken
}
