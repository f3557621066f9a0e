/** The kinds of job that a process knows, by name. */
import { CommandInvalid } from '../core/errors.ts'
import type { JobDefinition } from './define-job.ts'
import { JobTypeTwice } from './errors.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a handler gets is an affair of its definition
export type Whatever = any
/** A definition, whatever its input and output. */
export type AnyJob = JobDefinition<Whatever, Whatever, Whatever>

/** What a worker runs: everything that has code, or what was chosen, which then must have it. */
export function runnableOf(
  known: ReadonlyMap<string, AnyJob>,
  chosen: readonly AnyJob[] = [...known.values()].filter(({ run }) => run !== undefined),
): Map<string, AnyJob> {
  if (chosen.length === 0) throw new CommandInvalid('jobs', 'must hold one that has code')
  for (const { name, run, lifecycle } of chosen) {
    if (run === undefined) throw new CommandInvalid('jobs', `must have code, and ${name} has none`)
    if (known.get(name)?.lifecycle === lifecycle) continue
    throw new CommandInvalid('jobs', `must be given to createPawl as well, and ${name} is not`)
  }
  return byName(chosen)
}

/** Definitions by name; throws `JobTypeTwice`. */
export function byName(definitions: readonly AnyJob[]): Map<string, AnyJob> {
  const jobs = new Map<string, AnyJob>()
  for (const job of definitions) {
    if (jobs.has(job.name)) throw new JobTypeTwice(job.name)
    jobs.set(job.name, job)
  }
  return jobs
}
