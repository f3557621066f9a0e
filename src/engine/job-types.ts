/** The job types that a process knows. */
import { CommandInvalid } from '../core/errors.ts'
import type { JobDefinition } from './define-job.ts'
import { JobTypeTwice } from './errors.ts'

// biome-ignore lint/suspicious/noExplicitAny: the definition decides the types of its handler
export type AnyValue = any
/** A job type with any input and output. */
export type AnyJob = JobDefinition<AnyValue, AnyValue, AnyValue>

/** The job types that a worker runs: the chosen ones, or all that have a handler. */
export function runnableOf(
  known: ReadonlyMap<string, AnyJob>,
  chosen: readonly AnyJob[] = [...known.values()].filter(({ run }) => run !== undefined),
): Map<string, AnyJob> {
  if (chosen.length === 0) {
    throw new CommandInvalid('jobs', 'must contain a job type with a handler (`run`)')
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

/** Throws `JobTypeTwice`. */
export function byName(definitions: readonly AnyJob[]): Map<string, AnyJob> {
  const jobs = new Map<string, AnyJob>()
  for (const job of definitions) {
    if (jobs.has(job.name)) throw new JobTypeTwice(job.name)
    jobs.set(job.name, job)
  }
  return jobs
}
