/** What may be asked of a store, checked before anything is read or written. */
import { type JsonBounds, nestingOf, utf8Length } from '../../core/canonical-json.ts'
import {
  callable,
  count,
  findBroken,
  flag,
  listOf,
  message,
  NAME_MAX,
  NOTE_MAX,
  name,
  oneOf,
  optional,
  type Rule,
  record,
  reservedName,
  text,
  time,
} from '../../core/checks.ts'
import { type PawlError, ValueInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { LEASE_MAX_MS } from '../../core/job/fence.ts'
import { ENDED_WORDS, KEEP_MAX_MS } from '../../core/retention.ts'
import { findAdmissionFault } from './admission-checks.ts'
import { checkRequester } from './requester.ts'
import type { RemovalAuthor, SweepRequest } from './retention.ts'
import type {
  Beat,
  ClaimRequest,
  EffectClaim,
  EffectReport,
  EnqueueItem,
  EnqueueOptions,
  PruneRequest,
  Requester,
  Settlement,
} from './store.ts'

/** No verb takes, returns or removes more than this at once. */
export const LIMIT_MAX = 10_000

/** How many things a verb may take at once. */
export function checkLimit(limit: number): void {
  check([['limit', count(limit, 0, LIMIT_MAX)]])
}

// Rules that must hold also for absent fields follow after the known fields.
const CLAIM: FieldChecks<ClaimRequest> = {
  worker: unchecked,
  queues: unchecked,
  types: unchecked,
  limit: unchecked,
  leaseMs: unchecked,
  start: flag,
  onFound: callable,
}

const EFFECT_CLAIM: FieldChecks<EffectClaim> = {
  types: unchecked,
  limit: unchecked,
  leaseMs: unchecked,
}

const ENQUEUE: FieldChecks<EnqueueOptions> = {
  requester: (value) => {
    checkRequester(value)
    return undefined
  },
  tx: unchecked,
  onJoined: callable,
}

/** How jobs are enqueued. */
export function checkEnqueue(options: EnqueueOptions): EnqueueOptions {
  checkFields(options, ENQUEUE, { what: 'options' })
  return options
}

const ITEM: FieldChecks<EnqueueItem> = {
  lifecycle: record,
  command: record,
  // Checked with the bounds of payloads.
  input: unchecked,
  onConflict: (value) => oneOf(value, ['existing', 'replace', 'reject']),
  admission: findAdmissionFault,
}

// The rules of commands check the values.
const CREATE: FieldChecks<EnqueueItem['command']> = {
  jobId: unchecked,
  type: unchecked,
  queue: unchecked,
  priority: unchecked,
  aheadMs: unchecked,
  tags: unchecked,
  key: unchecked,
  limitKeys: unchecked,
  retryOf: unchecked,
  timeoutMs: unchecked,
  deadlineAt: unchecked,
  policy: unchecked,
  runAt: unchecked,
  hold: unchecked,
  flow: unchecked,
  awaited: unchecked,
  after: unchecked,
}

/** Returns what is wrong with the fields of a job to enqueue. */
export function findItemFault(item: EnqueueItem): PawlError | undefined {
  try {
    checkFields(item, ITEM, { what: 'item' })
    checkFields(item.command, CREATE, { what: 'command', prefix: 'command.' })
    return undefined
  } catch (error) {
    return error as PawlError
  }
}

/** A claim of jobs. */
export function checkClaim(request: ClaimRequest): void {
  checkFields(request, CLAIM, { what: 'request' })
  const { worker, limit, leaseMs, queues, types } = request
  check([
    ['worker', name(worker)],
    ['limit', count(limit, 0, LIMIT_MAX)],
    ['leaseMs', count(leaseMs, 1, LEASE_MAX_MS)],
    ['queues', optional(queues, texts)],
    ['types', optional(types, texts)],
  ])
}

/** A claim of effects. */
export function checkEffectClaim(request: EffectClaim): void {
  checkFields(request, EFFECT_CLAIM, { what: 'request' })
  const { limit, leaseMs, types } = request
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

const SWEEP: FieldChecks<SweepRequest> = {
  outcome: (value) => oneOf(value, ENDED_WORDS),
  types: (values: readonly string[]) => listOf(values, LIMIT_MAX, name),
  endedBefore: time,
  limit: (value) => count(value, 0, LIMIT_MAX),
  after: (value) => text(value, NAME_MAX),
  keysMs: (value) => count(value, 1, KEEP_MAX_MS),
  archive: callable,
  by: (value: RemovalAuthor) => {
    checkFields(value, AUTHOR, { what: 'by', prefix: 'by.' })
    return name(value.operator) ?? text(value.note, NOTE_MAX)
  },
  dryRun: flag,
}

const AUTHOR: FieldChecks<RemovalAuthor> = {
  operator: name,
  note: (value) => text(value, NOTE_MAX),
}

/** One step of a pass of retention. */
export function checkSweep(request: SweepRequest): void {
  checkFields(request, SWEEP, { what: 'request' })
  const { outcome, endedBefore, limit } = request
  check([
    ['outcome', oneOf(outcome, ENDED_WORDS)],
    ['endedBefore', time(endedBefore)],
    ['limit', count(limit, 0, LIMIT_MAX)],
  ])
}

/** A name of the caller's choice. */
export function checkName(field: string, value: string): void {
  check([[field, name(value)]])
}

/** A cursor that the store has returned, in the form that this store uses. */
export function checkCursor(field: string, cursor: string | undefined, form: RegExp): void {
  if (cursor === undefined || (typeof cursor === 'string' && form.test(cursor))) return
  const hint = 'Pass the cursor of a page that this store returned, or leave it out.'
  throw new ValueInvalid(field, 'is not a cursor of this store', hint)
}

/** How an opener may bound payloads. */
export interface PayloadOptions {
  /**
   * The largest input, result, step or effect, in bytes of JSON text.
   * @defaultValue 16 MiB
   */
  readonly payloadBytesMax?: number
  /**
   * How deep its arrays and objects may nest.
   * @defaultValue 512 levels
   */
  readonly payloadDepthMax?: number
}

/** The bounds of a store's payloads; throws `CommandInvalid` if they are not valid. */
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

/** What is wrong with a payload; `undefined` if it can be stored and read back unchanged. */
export function findPayloadFault(
  field: string,
  text: unknown,
  { bytesMax, depthMax }: JsonBounds,
): ValueInvalid | undefined {
  if (typeof text !== 'string') return new ValueInvalid(field, 'is no JSON text')
  // JSON writes both as escapes. Unescaped, not every database can store them.
  if (/\p{Surrogate}|\0/u.test(text)) {
    return new ValueInvalid(field, 'contains a lone surrogate or NUL')
  }
  // A text has at most three bytes for each of its units, so most need not be counted.
  const large = text.length * 3 > bytesMax && utf8Length(text) > bytesMax
  if (large) return new ValueInvalid(field, `is larger than ${bytesMax} bytes`)
  const deep = couldNest(text, depthMax) && nestingOf(text) > depthMax
  return deep ? new ValueInvalid(field, `is nested deeper than ${depthMax} levels`) : undefined
}

/** Whether a text may nest deeper than this. Cheap, and false for most texts. */
function couldNest(text: string, levels: number): boolean {
  if (text.length <= 2 * levels) return false
  let brackets = 0
  for (const bracket of '[{') {
    let at = text.indexOf(bracket)
    for (; at >= 0 && brackets <= levels; at = text.indexOf(bracket, at + 1)) brackets++
  }
  return brackets > levels
}

/** An effect that a commit declares. */
export function checkEffect(effect: string, payload: string, bounds: JsonBounds): void {
  check([['effect', name(effect) ?? reservedName(effect)]])
  const fault = findPayloadFault('effect', payload, bounds)
  if (fault !== undefined) throw fault
}

/** The progress that attempts report with their heartbeats. */
export function checkProgress(beats: readonly Beat[], bounds: JsonBounds): void {
  for (const { progress } of beats) {
    const fault =
      progress === undefined ? undefined : findPayloadFault('progress', progress, bounds)
    if (fault !== undefined) throw fault
  }
}

/** Reports of deliveries. */
export function checkReports(reports: readonly EffectReport[]): void {
  check(
    reports.flatMap((report): Rule[] => [
      ['runAt', 'runAt' in report ? time(report.runAt) : undefined],
      ['error', report.kind === 'delivered' ? undefined : message(report.error, NOTE_MAX)],
    ]),
  )
}

/** Effects to be tried again, and who asks for it. */
export function checkRetry(keys: readonly string[], requester: Requester): void {
  const { actor, operator, note } = checkRequester(requester)
  check([
    ['keys', texts(keys)],
    ['actor', oneOf(actor, ['operator'])],
    ['operator', name(operator)],
    ['note', text(note, NOTE_MAX)],
  ])
}

/** Whether a report makes nothing ready, so that no worker has to be woken. */
export function isStep({ command }: Settlement): boolean {
  return command.kind === 'step'
}

/** Texts to search for. One that cannot be stored is not refused: nothing matches it. */
function texts(values: readonly string[]): string | undefined {
  return listOf(values, LIMIT_MAX, (value) =>
    typeof value === 'string' ? undefined : 'must be a list of texts',
  )
}

export function check(rules: readonly Rule[]): void {
  const broken = findBroken(rules)
  if (broken !== undefined) throw broken
}
