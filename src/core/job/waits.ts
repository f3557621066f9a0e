/**
 * Waits of a job: sleeps, and waits for signals. A job that waits occupies no slot and has no
 * lease. Its handler starts from the top when the wait is over, and waits that are over are
 * answered from the ledger.
 *
 *   signal    a signal was sent; it stays unread until a wait receives it
 *   wait      the attempt ended because the job waits
 *   receive   a wait is over: a signal was received, its time has passed, or the sleep has ended
 *
 * All three are decided under the lock of the job. So a signal and the time-out of its wait never
 * both count, and each signal is received once, in the order in which signals were sent.
 */
import { JobEnded, Unsupported } from '../errors.ts'
import type { Command } from './commands.ts'
import { type Decision, follow, note, reject, SAME, type Situation } from './decision.ts'

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>

/** A sleep or a wait for a signal: the n-th of its name in a job. */
export interface Wait {
  readonly for: 'sleep' | 'signal'
  readonly name: string
  readonly n: number
  /** When it ends at the latest; null if it has no end. */
  readonly until: number | null
}

/** A signal as its fact names it. A job has at most one signal of a name and key. */
export interface SentSignal {
  readonly name: string
  readonly key: string
}

/** A wait that is over. */
export interface Receipt extends Omit<Wait, 'until'> {
  /** The number of the fact of the signal; absent after a time-out or a sleep. */
  readonly signal?: number
}

/** The reason of a job that is ready again because its wait is over. */
export const RESUMED = 'resumed'

/** The reason of a job that waits. */
export function reasonOf({ for: what, name }: Pick<Wait, 'for' | 'name'>): string {
  return what === 'sleep' ? 'sleep' : `signal:${name}`
}

/** Keeps the signal. A job that waits for it becomes ready in the same step. */
export function decideSignal(situation: Situation, command: Of<'signal'>): Decision {
  const { lifecycle, job, context } = situation
  if (!lifecycle.targets.has('wait')) return reject(new Unsupported(lifecycle.name, 'signal'))
  if (command.known) return SAME
  if (job.outcome !== null) return reject(new JobEnded(job.id, job.state, 'signal'))
  const signal = { name: command.name, key: command.key }
  if (!command.awaited || job.state !== lifecycle.targets.get('wait')) {
    return note(situation, 'signal', { signal })
  }
  return follow(situation, 'signal', { signal, runAt: context.now, reason: RESUMED })
}

/** Ends the wait at once if it is over, else ends the attempt. */
export function decideWait(situation: Situation, command: Of<'wait'>): Decision {
  const { lifecycle, job, context } = situation
  if (!lifecycle.targets.has('wait')) return reject(new Unsupported(lifecycle.name, 'wait'))
  if (command.known) return SAME
  const { for: what, name, n, until } = command.wait
  const receipt = { for: what, name, n }
  if (what === 'signal' && command.next !== undefined) {
    return note(situation, 'receive', { received: { ...receipt, signal: command.next } })
  }
  if (until !== null && until <= context.now) {
    return note(situation, 'receive', { received: receipt })
  }
  if (job.attempt >= ATTEMPTS_MAX) {
    const error = {
      message: 'Waited too often',
      kind: 'waits_exhausted',
      type: 'TERMINAL',
    } as const
    return follow(situation, 'give-up', { error, reason: 'waits_exhausted' }, 'suspended')
  }
  // Without a time-out the job is looked at again when its deadline passes.
  const runAt = until ?? job.deadlineAt
  return follow(
    situation,
    'wait',
    { wait: { ...command.wait }, runAt, reason: reasonOf(command.wait) },
    'suspended',
  )
}

/** A job with so many attempts does not wait again. Attempts only increase, so this is a bound. */
const ATTEMPTS_MAX = 10_000
