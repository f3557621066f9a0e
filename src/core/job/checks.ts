/** Checks of the commands for jobs. */
import {
  count,
  flag,
  isBroken,
  listOf,
  message,
  NAME_MAX,
  NOTE_MAX,
  name,
  oneOf,
  optional,
  record,
  text,
  time,
  uuid,
  within,
} from '../checks.ts'
import { CommandInvalid } from '../errors.ts'
import { FAILURE_KINDS, type Failure, MESSAGE_MAX } from '../failure.ts'
import { gateFault, limitKeys } from '../limits/keys.ts'
import { DELAY_MAX_MS, findPolicyFault, type JobPolicy } from '../retry.ts'
import { safely, THROWN_MAX, type ThrownError } from '../thrown.ts'
import { TRACE_STATE_MAX } from '../trace.ts'
import {
  COMMAND_KINDS,
  type Command,
  type Context,
  type CreateCommand,
  FENCED_COMMANDS,
  type Fence,
  OPERATOR_COMMANDS,
} from './commands.ts'
import { ACTORS, type ActorKind } from './facts.ts'
import { afterFault, flowPlace, INVOKED_MAX, lookFault } from './link-checks.ts'
import { PARENT_ENDED } from './links.ts'
import { AHEAD_MAX_MS } from './priority.ts'
import type { Wait } from './waits.ts'

const TAGS_MAX = 32
const METADATA_MAX = 32
/** The maximum number of usage values of an attempt. */
export const USAGE_MAX = 64
const PRIORITY_MAX = 32_767
/** The maximum number of effects of a commit. */
export const EFFECTS_MAX = 10_000

/** Returns the first fault of a command; `undefined` if it is well-formed. */
export function findFault(command: Command, context: Context): CommandInvalid | undefined {
  return (
    fault('kind', oneOf(command.kind, COMMAND_KINDS)) ??
    fault('fence', fenceOf(command)) ??
    contextFault(command, context) ??
    commandFault(command)
  )
}

/** Rules are joined by `??`, so only the first broken one is evaluated and reported. */
function fault(field: string, why: string | undefined): CommandInvalid | undefined {
  return why === undefined ? undefined : new CommandInvalid(field, why)
}

const OPERATOR: readonly ActorKind[] = ['operator']
const DOCTOR: readonly ActorKind[] = ['doctor']

/** A cancel may omit the fence. All other fenced commands need it (promise P4). */
function fenceOf(command: Command): string | undefined {
  if (command.kind === 'cancel') return optional(command.fence, fence)
  return FENCED_COMMANDS.includes(command.kind)
    ? fence((command as FencedCommand).fence)
    : undefined
}

type FencedCommand = Extract<Command, { fence: Fence }>

function contextFault(command: Command, context: Context): CommandInvalid | undefined {
  const named =
    OPERATOR_COMMANDS.includes(command.kind) || (command.kind === 'expire' && command.approved)
  const actors = named ? (command.kind === 'repair' ? DOCTOR : OPERATOR) : ACTORS
  const { operator, note } = context
  return (
    fault('now', time(context.now)) ??
    fault('random', within(context.random, 0, 1)) ??
    fault('operator', named || operator !== undefined ? name(operator) : undefined) ??
    fault('note', named || note !== undefined ? text(note, NOTE_MAX) : undefined) ??
    fault('actor', oneOf(context.actor, actors)) ??
    fault('metadata', optional(context.metadata, metadata)) ??
    fault('traceId', optional(context.traceId, name)) ??
    fault('spanId', optional(context.spanId, name)) ??
    fault(
      'traceFlags',
      optional(context.traceFlags, (flags) => count(flags, 0, 1)),
    ) ??
    fault(
      'traceState',
      optional(context.traceState, (state) => text(state, TRACE_STATE_MAX)),
    )
  )
}

function commandFault(command: Command): CommandInvalid | undefined {
  switch (command.kind) {
    case 'create':
      return createFault(command)
    case 'schedule':
    case 'reschedule':
      return fault('runAt', time(command.runAt))
    case 'suspend':
      return (
        fault('runAt', time(command.runAt)) ??
        fault(
          'reason',
          optional(command.reason, (reason) => oneOf(reason, ['snoozed', 'throttled'])),
        ) ??
        fault('gate', optional(command.gate, gateFault))
      )
    case 'replace':
      return fault('limitKeys', optional(command.limitKeys, limitKeys))
    case 'prioritise':
      return (
        fault('priority', priority(command.priority)) ??
        fault('aheadMs', optional(command.aheadMs, ahead))
      )
    case 'claim':
      return (
        fault('claim', uuid(command.claim)) ??
        fault('worker', name(command.worker)) ??
        fault('leaseUntil', time(command.leaseUntil))
      )
    case 'step':
      return (
        fault('name', name(command.name)) ??
        fault('n', count(command.n, 1, Number.MAX_SAFE_INTEGER))
      )
    case 'signal':
      return fault('name', name(command.name)) ?? fault('key', name(command.key))
    case 'wait':
      return waitFault(command.wait)
    case 'arrive':
      return fault('look', lookFault(command.look))
    case 'cancel':
      return fault(
        'reason',
        optional(command.reason, (reason) => oneOf(reason, [PARENT_ENDED])),
      )
    case 'redrive':
      return (
        fault('arrived', optional(command.arrived, flag)) ??
        fault('missed', optional(command.missed, flag))
      )
    case 'commit':
      return (
        fault('effects', optional(command.effects, effects)) ??
        fault('usage', optional(command.usage, usage))
      )
    case 'fail':
      return (
        fault('failure', failure(command.failure)) ??
        // `classify` cuts a message and then adds an ellipsis.
        fault('failure.message', message(command.failure.message, MESSAGE_MAX + 1)) ??
        fault('retryAfterMs', optional(command.failure.retryAfterMs, delay)) ??
        fault('failure', details(command.failure)) ??
        fault('usage', optional(command.usage, usage))
      )
    default:
      return undefined
  }
}

function waitFault(wait: Wait): CommandInvalid | undefined {
  const { for: what, name: own, n, until } = wait
  return (
    fault('wait.for', oneOf(what, ['sleep', 'signal', 'children'])) ??
    fault('wait.name', name(own)) ??
    fault('wait.n', count(n, 1, Number.MAX_SAFE_INTEGER)) ??
    // A sleep without an end would never be over.
    fault('wait.until', what === 'sleep' || until !== null ? time(until as number) : undefined) ??
    (what === 'children' ? childrenFault(wait) : undefined)
  )
}

/** A wait for children ends when they have ended. */
function childrenFault({ until, children, concurrency, abandons }: Wait) {
  return (
    fault('wait.until', until === null ? undefined : 'must be null') ??
    fault('wait.children', count(children as number, 0, INVOKED_MAX)) ??
    fault(
      'wait.concurrency',
      optional(concurrency, (own) => count(own, 1, INVOKED_MAX)),
    ) ??
    fault('wait.abandons', optional(abandons, flag))
  )
}

function createFault(command: CreateCommand): CommandInvalid | undefined {
  return (
    fault('jobId', uuid(command.jobId)) ??
    fault('type', name(command.type)) ??
    fault('queue', name(command.queue)) ??
    fault('priority', optional(command.priority, priority)) ??
    fault('aheadMs', optional(command.aheadMs, ahead)) ??
    fault('tags', optional(command.tags, tags)) ??
    fault('key', optional(command.key, name)) ??
    fault('limitKeys', optional(command.limitKeys, limitKeys)) ??
    fault('retryOf', optional(command.retryOf, uuid)) ??
    fault('timeoutMs', optional(command.timeoutMs, timeout)) ??
    fault('deadlineAt', optional(command.deadlineAt, time)) ??
    fault('runAt', optional(command.runAt, time)) ??
    fault('hold', optional(command.hold, flag)) ??
    fault('policy', optional(command.policy, policy)) ??
    linksFault(command)
  )
}

function linksFault({ flow, awaited, after, hold, runAt }: CreateCommand) {
  if (flow === undefined && awaited === undefined && after === undefined) return undefined
  const own = after && (hold !== undefined ? 'hold' : runAt !== undefined ? 'runAt' : undefined)
  return (
    fault('flow', optional(flow, flowPlace)) ??
    fault('awaited', optional(awaited, flag)) ??
    fault('after', optional(after, afterFault)) ??
    fault('after', after && flow === undefined ? 'must be of a job with a flow' : undefined) ??
    fault(own ?? '', own && 'must not be set for a job that waits for others')
  )
}

function effects(value: number): string | undefined {
  return count(value, 0, EFFECTS_MAX)
}

function delay(value: number): string | undefined {
  return count(value, 0, DELAY_MAX_MS)
}

function timeout(value: number): string | undefined {
  return count(value, 1, DELAY_MAX_MS)
}

function tags(values: readonly string[]): string | undefined {
  const why = listOf(values, TAGS_MAX, name)
  if (why !== undefined) return why
  return new Set(values).size === values.length ? undefined : 'must not repeat'
}

function metadata(values: Readonly<Record<string, string>>): string | undefined {
  const why = record(values)
  if (why !== undefined) return why
  const entries = Object.entries(values)
  if (entries.length > METADATA_MAX) return `must not have more than ${METADATA_MAX} entries`
  return entries.map(([key, value]) => name(key) ?? text(value, NOTE_MAX)).find(isBroken)
}

function usage(values: Readonly<Record<string, number>>): string | undefined {
  const why = record(values)
  if (why !== undefined) return why
  const entries = Object.entries(values)
  if (entries.length > USAGE_MAX) return `must not have more than ${USAGE_MAX} numbers`
  if (entries.some(([, value]) => !Number.isFinite(value))) return 'must hold finite numbers'
  return entries.map(([key]) => name(key)).find(isBroken)
}

/** Checks the shape only. The fence is compared with the job later, and may be stale. */
function fence(value: Fence): string | undefined {
  const why = record(value)
  if (why !== undefined) return why
  const whole = Number.isSafeInteger(value.attempt) && typeof value.claim === 'string'
  return whole ? undefined : 'must have an attempt and a claim'
}

function policy(value: JobPolicy): string | undefined {
  const why = record(value) ?? record(value.retry)
  return why ?? findPolicyFault(value)?.join(' ')
}

const FAILURE_CLASSES = [...new Set<string>(Object.values(FAILURE_KINDS))]

function failure(value: Failure): string | undefined {
  const why = record(value)
  if (why !== undefined) return why
  return oneOf(value.kind, Object.keys(FAILURE_KINDS)) ?? oneOf(value.class, FAILURE_CLASSES)
}

/** Checks what describes a failure. `describeThrown` makes all of it, within its bounds. */
function details({ name: own, code, fingerprint, thrown }: Failure): string | undefined {
  return (
    [own, code, fingerprint].map((one) => optional(one, describing)).find(isBroken) ??
    optional(thrown, thrownError)
  )
}

function describing(value: string): string | undefined {
  return message(value, NAME_MAX)
}

function thrownError(value: ThrownError): string | undefined {
  const why = record(value)
  if (why !== undefined) return why
  const length = safely(() => JSON.stringify(value).length, Number.POSITIVE_INFINITY)
  return length <= THROWN_MAX ? undefined : `must not be longer than ${THROWN_MAX} characters`
}

function ahead(value: number): string | undefined {
  return count(value, 0, AHEAD_MAX_MS)
}

function priority(value: number): string | undefined {
  return count(value, -PRIORITY_MAX, PRIORITY_MAX)
}
