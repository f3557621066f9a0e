/** What a command for a job may hold. */
import {
  count,
  findBroken,
  isBroken,
  NOTE_MAX,
  name,
  optional,
  type Rule,
  text,
  time,
  uuid,
  within,
} from '../checks.ts'
import type { CommandInvalid } from '../errors.ts'
import { FAILURE_KINDS, MESSAGE_MAX } from '../failure.ts'
import { DELAY_MAX_MS } from '../retry.ts'
import { type Command, type Context, OPERATOR_COMMANDS } from './commands.ts'

const TAGS_MAX = 32
const METADATA_MAX = 32
const USAGE_MAX = 64
const PRIORITY_MAX = 32_767
const EFFECTS_MAX = 10_000

/** Nothing when the command is well-formed; else its first fault. */
export function findFault(command: Command, context: Context): CommandInvalid | undefined {
  return findBroken([...contextRules(command, context), ...commandRules(command)])
}

function contextRules(command: Command, context: Context): Rule[] {
  const named =
    OPERATOR_COMMANDS.includes(command.kind) || (command.kind === 'expire' && command.approved)
  const actors = command.kind === 'repair' ? ['doctor'] : ['operator']
  return [
    ['now', time(context.now)],
    ['random', within(context.random, 0, 1)],
    ['operator', named || context.operator !== undefined ? name(context.operator) : undefined],
    ['note', named || context.note !== undefined ? text(context.note, NOTE_MAX) : undefined],
    [
      'actor',
      named && !actors.includes(context.actor) ? `must be ${actors.join()} here` : undefined,
    ],
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
        ['failure', failureKind(command.failure.kind)],
        ['failure.message', message(command.failure.message)],
        ['retryAfterMs', optional(command.failure.retryAfterMs, (n) => count(n, 0, DELAY_MAX_MS))],
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

function failureKind(kind: string): string | undefined {
  return Object.hasOwn(FAILURE_KINDS, kind) ? undefined : 'is of no known kind'
}

/** `classify` cuts a message and then adds an ellipsis; an empty message is allowed. */
function message(value: string): string | undefined {
  return value === '' ? undefined : text(value, MESSAGE_MAX + 1)
}

function priority(value: number): string | undefined {
  return count(value, -PRIORITY_MAX, PRIORITY_MAX)
}
