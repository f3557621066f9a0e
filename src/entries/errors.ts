/**
 * `pawl/errors`: every error class, for programs that tell errors apart by their class. Those that
 * programs usually catch are exported by `pawl` and `pawl/runs` as well. Each class has a stable
 * `code`: docs/reference/errors.md.
 */
export * from '../core/errors.ts'
export { RetryAfter, Retryable, Terminal } from '../core/failure.ts'
export * from '../engine/errors.ts'
export * from '../http/errors.ts'
export * from '../runs/errors.ts'
export * from '../runs/journal/errors.ts'
export * from '../stores/errors.ts'
