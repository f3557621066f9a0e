/** R0's table, typed by hand, and a job in each of its states. */
import { type Command, type Fence, hardened } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { commit, failRetryably, failTerminally } from '../support/job-answers.ts'

/** The states of R0. */
export type State = 'pending' | 'running' | 'succeeded' | 'failed' | 'quarantined'

/** The states in the order of R0. */
export const STATES: readonly State[] = ['pending', 'running', 'succeeded', 'failed', 'quarantined']

/** VALID_TRANSITIONS: from each state to each state, in the order of `STATES`. */
const TABLE: Readonly<Record<State, readonly ('edge' | 'same' | 'invalid')[]>> = {
  pending: ['same', 'edge', 'invalid', 'invalid', 'invalid'],
  running: ['invalid', 'same', 'edge', 'edge', 'invalid'],
  succeeded: ['invalid', 'invalid', 'same', 'invalid', 'invalid'],
  failed: ['edge', 'invalid', 'invalid', 'same', 'edge'],
  quarantined: ['edge', 'invalid', 'invalid', 'invalid', 'same'],
}

/** Every ordered pair of states with what the table says of it. */
export const PAIRS = STATES.flatMap((from) =>
  STATES.map((to, column) => ({ from, to, kind: TABLE[from][column] ?? 'missing' })),
)

/** A job that was just created. */
export function pending(): JobScript {
  const script = new JobScript(hardened)
  script.create()
  return script
}

/** A job whose first attempt has started. */
export function running(): JobScript {
  const script = pending()
  script.claim()
  return script
}

/** A job that waits for its first retry. */
export function failed(): JobScript {
  const script = running()
  failRetryably(script)
  return script
}

/** A job that was given up. */
export function quarantined(): JobScript {
  const script = running()
  failTerminally(script)
  return script
}

/** A job that is done. */
export function succeeded(): JobScript {
  const script = running()
  commit(script)
  return script
}

/** A job that is committed, with an effect still to deliver. */
export function committed(): JobScript {
  const script = running()
  commit(script, 1)
  return script
}

/** A new job in each state. */
export const IN_STATE: Readonly<Record<State, () => JobScript>> = {
  pending,
  running,
  succeeded,
  failed,
  quarantined,
}

/** The fence of the first attempt: the script gives its first id to the job, its second to it. */
export const FIRST_FENCE: Fence = { attempt: 1, claim: '00000000-0000-7000-8000-000000000002' }

/** A claim that nobody ever held. */
export const FOREIGN_CLAIM = '99999999-0000-7000-8000-000000000000'

/** Every command that a worker gives under its fence. */
export function workerCommands(fence: Fence): Command[] {
  const failure = { class: 'retryable', kind: 'error', message: 'it broke' } as const
  return [
    { kind: 'start', fence },
    { kind: 'step', fence, name: 'fetch', n: 1 },
    { kind: 'commit', fence },
    { kind: 'done', attempt: fence.attempt },
    { kind: 'fail', fence, failure },
    { kind: 'release', fence },
    { kind: 'cancel', fence },
  ]
}

/** One command of each kind, well-formed, for a job of which this fence is known. */
export function everyCommand(fence: Fence, now: number): Command[] {
  return [
    { kind: 'create', jobId: FOREIGN_CLAIM, type: 'example', queue: 'default' },
    { kind: 'submit' },
    { kind: 'schedule', runAt: now + 90_000 },
    { kind: 'due' },
    { kind: 'reschedule', runAt: now + 90_000 },
    { kind: 'prioritise', priority: 7 },
    { kind: 'replace' },
    { kind: 'exhaust' },
    {
      kind: 'claim',
      claim: FOREIGN_CLAIM,
      worker: 'worker-2',
      leaseUntil: now + 30_000,
      start: true,
    },
    ...workerCommands(fence).filter(({ kind }) => kind !== 'cancel'),
    { kind: 'suspend', fence, runAt: now + 90_000 },
    { kind: 'signal', name: 'approval', key: 'k1' },
    { kind: 'arrive', look: { open: false } },
    { kind: 'wait', fence, wait: { for: 'sleep', name: 'pause', n: 1, until: now + 90_000 } },
    { kind: 'expire', fence },
    { kind: 'cancel' },
    { kind: 'park' },
    { kind: 'redrive' },
    { kind: 'discard' },
    { kind: 'force', to: 'failed' },
    { kind: 'repair' },
  ]
}
