/**
 * Errors by what the caller has to change. The command line makes exit codes of it, the HTTP API
 * status codes. An error that is not listed here means that Pawl or its database failed: the same
 * call may succeed later.
 */

/** What an error means for the caller. */
export type ErrorClass = 'usage' | 'not-found' | 'conflict' | 'failure'

/** The call itself is wrong: its arguments, its files or its definitions. */
const USAGE = [
  'E_AFTER_MISSING',
  'E_USAGE',
  'E_BUNDLE_INVALID',
  'E_COMMAND_INVALID',
  'E_CONFIG_INVALID',
  'E_DEFINITION_INVALID',
  'E_EVENT_INVALID',
  'E_INPUT_FILE_INVALID',
  'E_INPUT_INVALID',
  'E_JOB_BUNDLE_INVALID',
  'E_JOB_FILE_INVALID',
  'E_JOB_TYPE_TWICE',
  'E_KEY_FUNCTION_FAILED',
  'E_LIMIT_KEY_INVALID',
  'E_MACHINE_UNSOUND',
  'E_NOT_CONFIRMED',
  'E_PATH_REFUSED',
  'E_RUN_FILE_INVALID',
  'E_RUN_NAME_INVALID',
  'E_SIGNAL_INVALID',
  'E_SIGNAL_UNDECLARED',
  'E_STORE_NAME_INVALID',
  'E_TOKEN_INVALID',
  'E_TOKEN_MISSING',
  'E_VALUE_INVALID',
]
/** What the call names does not exist. */
const NOT_FOUND = [
  'E_ARTIFACT_UNKNOWN',
  'E_EFFECT_NOT_FOUND',
  'E_FLOW_NOT_FOUND',
  'E_JOB_NOT_FOUND',
  'E_LIMIT_UNKNOWN',
  'E_NAME_UNKNOWN',
  'E_RUN_DEFINITION_UNKNOWN',
  'E_RUN_NOT_FOUND',
  'E_SCHEDULE_NOT_FOUND',
  'E_STORE_MISSING',
  'E_WORK_UNKNOWN',
]
/** What the call names is in a state in which the command does not apply. */
const CONFLICT = [
  'E_BATCH_CLOSED',
  'E_CHILD_FAILED',
  'E_COMMITTED',
  'E_DEADLINE_PASSED',
  'E_DEPENDENCY_OPEN',
  'E_DEPENDENCY_UNMET',
  'E_EFFECTS_OPEN',
  'E_EFFECT_DELIVERED',
  'E_GUARD_REFUSED',
  'E_JOB_CHANGED',
  'E_JOB_ENDED',
  'E_JOB_EXISTS',
  'E_JOB_NOT_ASKING',
  'E_JOB_NOT_ENDED',
  'E_JOB_NOT_STALLED',
  'E_JOB_PARKED',
  'E_JOB_REMOVED',
  'E_JOB_RUNNING',
  'E_JOB_STARTED',
  'E_KEY_TAKEN',
  'E_LEASE_LIVE',
  'E_LIFECYCLE_UNKNOWN',
  'E_MACHINE_CHANGED',
  'E_MIGRATION_INVALID',
  'E_NOT_DUE',
  'E_QUEUE_FULL',
  'E_RATE_LIMITED',
  'E_REWIND_REFUSED',
  'E_RUN_DIFFERS',
  'E_RUN_ENDED',
  'E_RUN_EXISTS',
  'E_RUN_HELD',
  'E_RUN_INCOMPLETE',
  'E_RUN_NOT_DAMAGED',
  'E_STALE_FENCE',
  'E_TOKEN_EXPIRED',
  'E_TOKEN_USED',
  'E_TRANSITION_INVALID',
  'E_TRANSITION_RACE',
  'E_UNSUPPORTED',
  'E_WORKERS_TOO_OLD',
]

/** Returns the class of an error by its code. */
export function errorClassOf({ code }: { readonly code: string }): ErrorClass {
  if (USAGE.includes(code)) return 'usage'
  if (NOT_FOUND.includes(code)) return 'not-found'
  return CONFLICT.includes(code) ? 'conflict' : 'failure'
}
