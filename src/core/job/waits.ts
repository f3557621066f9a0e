/**
 * Waits of a job: sleeps, and waits for signals and for children. A job that waits occupies no slot
 * and has no lease. Its handler starts from the top when the wait is over, and waits that are over
 * are answered from the ledger.
 *
 *   signal    a signal was sent; it stays unread until a wait receives it
 *   wait      the attempt ended because the job waits
 *   receive   a wait is over: a signal was received, its time has passed, the sleep has ended, or
 *             all children have ended
 *
 * All three are decided under the lock of the job. So a signal and the time-out of its wait never
 * both count, and each signal is received once, in the order in which signals were sent.
 */
import { Committed, JobEnded, Unsupported } from '../errors.ts'
import type { Command } from './commands.ts'
import { type Decision, follow, note, reject, SAME, type Situation } from './decision.ts'
import type { Fact } from './facts.ts'
import { isCommitted } from './job.ts'
import { LINKS } from './links.ts'

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>

/** A sleep, or a wait for a signal or for children: the n-th of its name in a job. */
export interface Wait {
  readonly for: 'sleep' | 'signal' | 'children'
  readonly name: string
  readonly n: number
  /** When it ends at the latest; null if it has no end. */
  readonly until: number | null
  /** How many children the job waits for. */
  readonly children?: number
  /** How many of them may be under way at once; all if absent. */
  readonly concurrency?: number
  /** Children go on if their parent ends without success. */
  readonly abandons?: true
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
  return what === 'sleep' ? 'sleep' : `${what}:${name}`
}

/** What a wait is called in a job. */
type WaitId = Omit<Wait, 'until'>

/** Returns true if both are the n-th wait of one name. */
export function isSameWait(one: WaitId | undefined, { for: what, name, n }: WaitId): boolean {
  return one?.for === what && one.name === name && one.n === n
}

/** Returns what the ledger says about a signal. A store reads it under the lock of the job. */
export function findSignal(
  facts: readonly Fact[],
  { name, key }: SentSignal,
): { readonly known: boolean; readonly awaited: boolean } {
  const current = facts.findLast((fact) => fact.wait !== undefined || fact.received !== undefined)
  return {
    known: facts.some(({ signal }) => signal?.name === name && signal.key === key),
    awaited: current?.wait?.for === 'signal' && current.wait.name === name,
  }
}

/** Returns what the ledger says about a wait. A store reads it under the lock of the job. */
export function findWait(
  facts: readonly Fact[],
  wait: Wait,
): { readonly wait: Wait; readonly known: boolean; readonly next?: number } {
  // The end of a wait is fixed when it begins.
  const begun = facts.find((fact) => isSameWait(fact.wait, wait))?.wait
  const known = facts.some(({ received }) => isSameWait(received, wait))
  const read = new Set(facts.map(({ received }) => received?.signal))
  const isNext = ({ seq, signal }: Fact) => signal?.name === wait.name && !read.has(seq)
  const next = wait.for === 'signal' ? facts.find(isNext)?.seq : undefined
  return { wait: begun ?? wait, known, ...(next !== undefined && { next }) }
}

/** The same reason, for a filter by the name of a signal. */
export function reasonToFind(signal: string | undefined): string | undefined {
  return signal === undefined ? undefined : reasonOf({ for: 'signal', name: signal })
}

/** Keeps the signal. A job that waits for it becomes ready in the same step. */
export function decideSignal(situation: Situation, command: Of<'signal'>): Decision {
  const { lifecycle, job, context } = situation
  if (!lifecycle.targets.has('wait')) return reject(new Unsupported(lifecycle.name, 'signal'))
  if (command.known) return SAME
  if (job.outcome !== null) return reject(new JobEnded(job.id, job.state, 'signal'))
  if (isCommitted(job)) return reject(new Committed(job.id, 'signal'))
  const signal = { name: command.name, key: command.key }
  // A job with a blocked reason leaves the state as well, and stays parked: whatever takes the
  // reason away need not know about signals.
  const isWaiting = job.state === lifecycle.targets.get('wait')
  if (!command.awaited || !isWaiting) return note(situation, 'signal', { signal })
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
  const isOver = what === 'children' ? command.ended : until !== null && until <= context.now
  if (isOver) return note(situation, 'receive', { received: receipt })
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
    {
      wait: { ...command.wait },
      runAt,
      reason: reasonOf(command.wait),
      ...(what === 'children' && { links: job.links | LINKS.waits | LINKS.children }),
    },
    'suspended',
  )
}

/** A job with so many attempts does not wait again. Attempts only increase, so this is a bound. */
const ATTEMPTS_MAX = 10_000
