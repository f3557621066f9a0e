/**
 * Checks of the commands for runs. The journal checks that a path stays in the folder of the run.
 */
import {
  count,
  findBroken,
  flag,
  isBroken,
  NAME_MAX,
  NOTE_MAX,
  name,
  oneOf,
  optional,
  type Rule,
  record,
  text,
} from '../checks.ts'
import type { CommandInvalid } from '../errors.ts'
import type { RunCommand } from './commands.ts'

const FIX_ATTEMPTS_MAX = 1000
const INPUTS_MAX = 10_000
const ERROR_MAX = 4000
const PATH_MAX = 1024

/** Returns the first fault of a command; `undefined` if it is well-formed. */
export function findRunFault(command: RunCommand): CommandInvalid | undefined {
  return findBroken(rulesOf(command))
}

function rulesOf(command: RunCommand): Rule[] {
  switch (command.kind) {
    case 'create':
      return [
        ['maxFixAttempts', optional(command.maxFixAttempts, (n) => count(n, 0, FIX_ATTEMPTS_MAX))],
      ]
    case 'move':
      return [['to', tooLong(command.to)]]
    case 'record-validation':
      return [['ok', flag(command.ok)]]
    case 'count-fix':
      return []
    case 'reset-fixes':
      return [['because', name(command.because)]]
    case 'rewind':
      return [['reason', oneOf(command.reason, ['resume', 'stale'])]]
    case 'write-artifact':
      return [
        ['name', name(command.name)],
        ['path', text(command.path, PATH_MAX)],
        ['sha256', sha256(command.sha256)],
        ['schemaId', optional(command.schemaId, name)],
        ['worker', name(command.worker)],
        ['workItem', optional(command.workItem, name)],
      ]
    case 'invalidate-artifact':
    case 'revalidate-artifact':
      return [['name', name(command.name)]]
    case 'start-item':
    case 'finish-item':
    case 'fail-item':
      return itemRules(command)
    case 'change-section':
      return [
        ['section', name(command.section)],
        ['to', name(command.to)],
      ]
    case 'open-issue':
      return [
        ['issue', name(command.issue)],
        ['severity', oneOf(command.severity, ['blocker', 'error', 'warning'])],
        ['message', text(command.message, ERROR_MAX)],
      ]
    case 'resolve-issue':
      return [['issue', name(command.issue)]]
    case 'discard-tail':
      return [
        ['bytes', count(command.bytes, 1, Number.MAX_SAFE_INTEGER)],
        ['sha256', sha256(command.sha256)],
      ]
    case 'link-commit':
      return [['sha', gitSha(command.sha)]]
    case 'fail':
    case 'cancel':
      return [['reason', text(command.reason, NOTE_MAX)]]
    default:
      return [['kind', 'is not a command of a run']]
  }
}

function itemRules(
  command: Extract<RunCommand, { kind: 'start-item' | 'finish-item' | 'fail-item' }>,
): Rule[] {
  const key: Rule = ['key', name(command.key)]
  switch (command.kind) {
    case 'start-item':
      return [
        key,
        ['inputs', inputs(command.inputs)],
        ['code', optional(command.code, name)],
        ['worker', name(command.worker)],
      ]
    case 'finish-item':
      return [key, ['inputs', optional(command.inputs, inputs)]]
    case 'fail-item':
      return [key, ['error', text(command.error, ERROR_MAX)]]
  }
}

/**
 * A requested state may be any text, but telemetry and logs repeat it, so its length is bounded.
 */
function tooLong(value: string): string | undefined {
  return value.length > NAME_MAX ? `must not be longer than ${NAME_MAX} characters` : undefined
}

function sha256(value: string): string | undefined {
  return /^[0-9a-f]{64}$/.test(value) ? undefined : 'must be a SHA-256 in lower-case hex'
}

function gitSha(value: string): string | undefined {
  return /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(value) ? undefined : 'must be a full commit hash'
}

function inputs(values: Readonly<Record<string, string>>): string | undefined {
  const why = record(values)
  if (why !== undefined) return why
  const entries = Object.entries(values)
  if (entries.length > INPUTS_MAX) return `must not have more than ${INPUTS_MAX} entries`
  return entries.flat().map(name).find(isBroken)
}
