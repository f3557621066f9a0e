/** How commands end, for scripts: the same numbers everywhere. */
import type { PawlError } from '../core/errors.ts'

/** What each exit code means. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  findings: 3,
  notFound: 4,
  conflict: 5,
  interrupted: 130,
} as const

/** An exit code. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

const USAGE = [
  'E_USAGE',
  'E_COMMAND_INVALID',
  'E_CONFIG_INVALID',
  'E_DEFINITION_INVALID',
  'E_INPUT_INVALID',
  'E_NOT_CONFIRMED',
  'E_RUN_NAME_INVALID',
  'E_STORE_NAME_INVALID',
  'E_VALUE_INVALID',
]
const NOT_FOUND = [
  'E_EFFECT_NOT_FOUND',
  'E_JOB_NOT_FOUND',
  'E_NAME_UNKNOWN',
  'E_RUN_DEFINITION_UNKNOWN',
  'E_RUN_NOT_FOUND',
  'E_STORE_MISSING',
  'E_WORK_UNKNOWN',
]
const CONFLICT = [
  'E_COMMITTED',
  'E_EFFECTS_OPEN',
  'E_EFFECT_DELIVERED',
  'E_JOB_CHANGED',
  'E_JOB_ENDED',
  'E_JOB_EXISTS',
  'E_JOB_NOT_ENDED',
  'E_JOB_NOT_STALLED',
  'E_JOB_PARKED',
  'E_JOB_RUNNING',
  'E_JOB_STARTED',
  'E_KEY_TAKEN',
  'E_LEASE_LIVE',
  'E_LIFECYCLE_UNKNOWN',
  'E_MACHINE_CHANGED',
  'E_MIGRATION_INVALID',
  'E_NOT_DUE',
  'E_QUEUE_FULL',
  'E_RUN_DIFFERS',
  'E_RUN_ENDED',
  'E_RUN_EXISTS',
  'E_RUN_HELD',
  'E_STALE_FENCE',
  'E_TRANSITION_INVALID',
  'E_TRANSITION_RACE',
  'E_UNSUPPORTED',
]

/** The exit code that belongs to an error. */
export function exitCodeOf({ code }: Pick<PawlError, 'code'>): ExitCode {
  if (USAGE.includes(code)) return EXIT.usage
  if (NOT_FOUND.includes(code)) return EXIT.notFound
  return CONFLICT.includes(code) ? EXIT.conflict : EXIT.failure
}
