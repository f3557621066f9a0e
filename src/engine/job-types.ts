/** The job types that a process knows. */
import { CommandInvalid } from '../core/errors.ts'
import { shown } from '../core/format.ts'
import type { JobDefinition } from './define-job.ts'
import type { AnySignal } from './define-signal.ts'
import { JobTypeTwice } from './errors.ts'

/** Any type: a definition decides the types of its handler. */
// biome-ignore lint/suspicious/noExplicitAny: the definition decides the types of its handler
export type AnyValue = any
/** A job type with any input and output. */
export type AnyJob = JobDefinition<AnyValue, AnyValue, AnyValue, AnyValue, AnyValue, AnyValue>

/**
 * A job type as the key for `enqueue`: the types of its input, its output and its signals. Types
 * with `after` are not: only `pawl.flow` makes their jobs.
 */
export type JobKey<Input, Output, G extends AnySignal = AnySignal> = JobDefinition<
  Input,
  AnyValue,
  Output,
  AnyValue,
  undefined,
  G
>

/** The job types that a worker runs: the chosen ones, or all that have a handler. */
export function runnableOf(
  known: ReadonlyMap<string, AnyJob>,
  chosen: readonly AnyJob[] = [...known.values()].filter(({ run }) => run !== undefined),
): Map<string, AnyJob> {
  if (chosen.length === 0) {
    const hint = 'Pass job types that have `run` to createPawl({ jobs }) or work({ jobs }).'
    throw new CommandInvalid('jobs', 'must contain a job type with a handler (`run`)', hint)
  }
  for (const { name, run, lifecycle } of chosen) {
    if (run === undefined) {
      throw new CommandInvalid('jobs', `must have a handler (\`run\`), and ${name} has none`)
    }
    if (known.get(name)?.lifecycle === lifecycle) continue
    throw new CommandInvalid('jobs', `must also be passed to createPawl, and ${name} is not`)
  }
  return byName(chosen)
}

/** Throws `CommandInvalid` if a value is not a job type. */
export function checkJobType(value: AnyJob): void {
  const isType = typeof value === 'object' && typeof value?.implement === 'function'
  if (isType) return
  const why = `must be a job type, which defineJob returns, not ${shown(value)}`
  throw new CommandInvalid('job', why, HINT)
}

const HINT =
  'If it is `undefined`, check that the file that defines the job type exports it, and that two ' +
  'files do not import each other.'

/** Throws `JobTypeTwice`, and `CommandInvalid` if a value is not a job type. */
export function byName(definitions: readonly AnyJob[]): Map<string, AnyJob> {
  const jobs = new Map<string, AnyJob>()
  for (const job of definitions) {
    checkJobType(job)
    if (jobs.has(job.name)) throw new JobTypeTwice(job.name)
    jobs.set(job.name, job)
  }
  return jobs
}
