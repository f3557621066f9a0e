/**
 * `pawl/errors`: every error class, for programs that recognise errors by their class. `pawl` and
 * `pawl/runs` also export those that programs usually catch. Each class has a stable `code`, listed
 * in docs/reference/errors.md.
 */
export * from '../core/errors.ts'
export { RetryAfter, Retryable, Snooze, Terminal } from '../core/failure.ts'
export * from '../engine/errors.ts'
export * from '../http/errors.ts'
export * from '../runs/errors.ts'
export * from '../runs/journal/errors.ts'
export * from '../stores/errors.ts'
