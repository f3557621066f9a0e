/** Planted bugs in deadlines, in jobs that handlers enqueue, and in stored errors. */
import { type Canary, canary, change, core, sqlite } from './planted.ts'

const OVERDUE = 'CASE WHEN deadline_at <= ?9'
/** All of them. */
export const JOB_CANARIES: readonly Canary[] = [
  canary(
    'the deadline of a job is not checked when it commits',
    'deadline',
    change(core('decide'), "'step', 'wait', 'commit']", "'step', 'wait']"),
  ),
  canary(
    'a job past its deadline is started',
    'deadline',
    change(sqlite('claim'), OVERDUE, 'CASE WHEN ?9 < 0'),
  ),
  canary(
    'a deadline ends a job that waits before it has passed',
    'deadline',
    change(sqlite('statements/shed'), 'WHERE deadline_at <= ?1 AND', 'WHERE deadline_at > ?1 AND'),
    change(core('overdue'), 'if (!isPastDeadline(job, now))', 'if (false)'),
  ),
  canary(
    'a repeated attempt enqueues its jobs once more',
    'children',
    change(
      'engine/worker/children.js',
      'const jobId = childId(job.id, as);',
      'const jobId = childId(job.id, as + job.attempt);',
    ),
  ),
  canary(
    'what a handler threw is not stored',
    'errors',
    change(
      core('decide-attempt'),
      '...(failure.thrown !== undefined && { thrown: failure.thrown }),',
      '',
    ),
  ),
]
