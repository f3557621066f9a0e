/**
 * Plays the last attempt at a recorded job again, in memory: nothing is written to a store, and
 * effects, jobs and statements of a commit are recorded instead of done.
 */
import type { Job } from '../../core/job/job.ts'
import type { Logger } from '../../core/ports.ts'
import type { JobDefinition } from '../../engine/define-job.ts'
import type { SqlValue } from '../../stores/user-sql.ts'
import { playAttempt, type RunJobOutcome } from '../../testing/run-job.ts'
import { testEnvironment } from '../../testing/test-environment.ts'
import { ReplayQueryRefused } from '../errors.ts'
import type { RecordedJob } from './recorded.ts'

interface Statement {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

export interface Replayed {
  readonly outcome: RunJobOutcome<unknown>
  /** The first statement of the commit, which ended it. */
  readonly statement: Statement | undefined
  /** Names of steps whose recorded results were offered to the handler. */
  readonly known: readonly string[]
}

export interface PlayOptions {
  /** Steps that run, although their results are recorded. */
  readonly liveSteps: readonly string[]
  readonly logger: Logger
  readonly signal: AbortSignal
}

export async function play(
  definition: JobDefinition,
  { job, input, steps, others }: RecordedJob,
  { liveSteps, logger, signal }: PlayOptions,
): Promise<Replayed> {
  let statement: Statement | undefined
  const offered = steps.filter(({ name }) => !liveSteps.includes(name))
  const outcome = await playAttempt<unknown>(definition, leased(job), input, {
    environment: testEnvironment(),
    isReplay: true,
    steps: offered,
    ...(others !== undefined && { children: others.children, afterEnds: others.after }),
    logger,
    signal,
    query: async (sql, values = []) => {
      statement = { sql, values }
      throw new ReplayQueryRefused()
    },
  })
  return { outcome, statement, known: [...new Set(offered.map(({ name }) => name))] }
}

/** The job as its last attempt had it: open, not ended. */
function leased(job: Job): Job {
  return { ...job, attempt: Math.max(1, job.attempt), outcome: null, error: null }
}
