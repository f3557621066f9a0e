/** What a command for a run may hold. That a path stays in the run's folder is checked there. */
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

/** Nothing when the command is well-formed; else its first fault. */
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
      return [['kind', 'is no command of a run']]
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

/** Any text may be asked for as a state, but telemetry and logs repeat it. */
function tooLong(value: string): string | undefined {
  return value.length > NAME_MAX ? `must not be longer than ${NAME_MAX} characters` : undefined
}

function sha256(value: string): string | undefined {
  return /^[0-9a-f]{64}$/.test(value) ? undefined : 'must be a SHA-256 in lower-case hex'
}

function gitSha(value: string): string | undefined {
  return /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(value) ? undefined : 'must be a whole commit hash'
}

function inputs(values: Readonly<Record<string, string>>): string | undefined {
  const why = record(values)
  if (why !== undefined) return why
  const entries = Object.entries(values)
  if (entries.length > INPUTS_MAX) return `must not be more than ${INPUTS_MAX}`
  return entries.flat().map(name).find(isBroken)
}
