/** What a command for a job may hold. */
import {
  count,
  findBroken,
  isBroken,
  message,
  NOTE_MAX,
  name,
  oneOf,
  optional,
  type Rule,
  record,
  text,
  time,
  uuid,
  within,
} from '../checks.ts'
import type { CommandInvalid } from '../errors.ts'
import { FAILURE_KINDS, type Failure, MESSAGE_MAX } from '../failure.ts'
import { DELAY_MAX_MS, findPolicyFault, type JobPolicy } from '../retry.ts'
import {
  COMMAND_KINDS,
  type Command,
  type Context,
  FENCED_COMMANDS,
  type Fence,
  OPERATOR_COMMANDS,
} from './commands.ts'
import type { ActorKind } from './facts.ts'

const TAGS_MAX = 32
const METADATA_MAX = 32
const USAGE_MAX = 64
const PRIORITY_MAX = 32_767
const EFFECTS_MAX = 10_000

/** Nothing when the command is well-formed; else its first fault. */
export function findFault(command: Command, context: Context): CommandInvalid | undefined {
  return findBroken([
    ['kind', oneOf(command.kind, COMMAND_KINDS)],
    ['fence', fenceOf(command)],
    ...contextRules(command, context),
    ...commandRules(command),
  ])
}

const ACTORS: readonly ActorKind[] = ['worker', 'client', 'engine', 'doctor', 'operator']

/** Only a cancel may come without a fence: everything else that names one needs it (promise P4). */
function fenceOf(command: Command): string | undefined {
  if (command.kind === 'cancel') return optional(command.fence, fence)
  return FENCED_COMMANDS.includes(command.kind)
    ? fence((command as FencedCommand).fence)
    : undefined
}

type FencedCommand = Extract<Command, { fence: Fence }>

function contextRules(command: Command, context: Context): Rule[] {
  const named =
    OPERATOR_COMMANDS.includes(command.kind) || (command.kind === 'expire' && command.approved)
  const actors: ActorKind[] = command.kind === 'repair' ? ['doctor'] : ['operator']
  return [
    ['now', time(context.now)],
    ['random', within(context.random, 0, 1)],
    ['operator', named || context.operator !== undefined ? name(context.operator) : undefined],
    ['note', named || context.note !== undefined ? text(context.note, NOTE_MAX) : undefined],
    ['actor', oneOf(context.actor, named ? actors : ACTORS)],
    ['metadata', optional(context.metadata, metadata)],
    ['traceId', optional(context.traceId, name)],
    ['spanId', optional(context.spanId, name)],
  ]
}

function commandRules(command: Command): Rule[] {
  switch (command.kind) {
    case 'create':
      return [
        ['jobId', uuid(command.jobId)],
        ['type', name(command.type)],
        ['queue', name(command.queue)],
        ['priority', optional(command.priority, priority)],
        ['tags', optional(command.tags, tags)],
        ['key', optional(command.key, name)],
        ['limitKey', optional(command.limitKey, name)],
        ['retryOf', optional(command.retryOf, uuid)],
        ['timeoutMs', optional(command.timeoutMs, (ms) => count(ms, 1, DELAY_MAX_MS))],
        ['deadlineAt', optional(command.deadlineAt, time)],
        ['runAt', optional(command.runAt, time)],
        ['policy', optional(command.policy, policy)],
      ]
    case 'schedule':
    case 'reschedule':
    case 'suspend':
      return [['runAt', time(command.runAt)]]
    case 'prioritise':
      return [['priority', priority(command.priority)]]
    case 'claim':
      return [
        ['claim', uuid(command.claim)],
        ['worker', name(command.worker)],
        ['leaseUntil', time(command.leaseUntil)],
      ]
    case 'step':
      return [
        ['name', name(command.name)],
        ['n', count(command.n, 1, Number.MAX_SAFE_INTEGER)],
      ]
    case 'commit':
      return [
        ['effects', optional(command.effects, (n) => count(n, 0, EFFECTS_MAX))],
        ['usage', optional(command.usage, usage)],
      ]
    case 'fail':
      return [
        ['failure', failure(command.failure)],
        // `classify` cuts a message and then adds an ellipsis.
        ['failure.message', message(command.failure?.message, MESSAGE_MAX + 1)],
        ['retryAfterMs', optional(command.failure?.retryAfterMs, (n) => count(n, 0, DELAY_MAX_MS))],
        ['usage', optional(command.usage, usage)],
      ]
    default:
      return []
  }
}

function tags(values: readonly string[]): string | undefined {
  if (values.length > TAGS_MAX) return `must not be more than ${TAGS_MAX}`
  if (new Set(values).size !== values.length) return 'must not repeat'
  return values.map(name).find(isBroken)
}

function metadata(values: Readonly<Record<string, string>>): string | undefined {
  const entries = Object.entries(values)
  if (entries.length > METADATA_MAX) return `must not have more than ${METADATA_MAX} entries`
  return entries.map(([key, value]) => name(key) ?? text(value, NOTE_MAX)).find(isBroken)
}

function usage(values: Readonly<Record<string, number>>): string | undefined {
  const entries = Object.entries(values)
  if (entries.length > USAGE_MAX) return `must not have more than ${USAGE_MAX} numbers`
  if (entries.some(([, value]) => !Number.isFinite(value))) return 'must hold finite numbers'
  return entries.map(([key]) => name(key)).find(isBroken)
}

/** Whether a fence is a good one is not asked here: a bad one is stale. */
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

function priority(value: number): string | undefined {
  return count(value, -PRIORITY_MAX, PRIORITY_MAX)
}
