// Shared by the tests of the job core: a lifecycle of a user with as few states as possible, the
// commands that bring a job into a state, and a short word for each answer.
import type { Lifecycle, PawlError } from 'pawl'
import {
  type Command,
  type Decision,
  defineLifecycle,
  document,
  type Fact,
  type Failure,
  hardened,
  type JobPolicy,
  leased,
  standard,
  task,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'

/** As few states as a lifecycle can have; it has no retry, no operator edge and no parked state. */
export const tiny = defineLifecycle({
  name: 'tiny',
  version: 7,
  initial: 'open',
  states: {
    open: { role: 'ready', meaning: 'May be claimed.' },
    busy: { role: 'held', meaning: 'Is being worked on.' },
    good: { role: 'succeeded', meaning: 'Went well.' },
    bad: { role: 'failed', meaning: 'Went wrong.' },
  },
  edges: [
    { from: 'open', to: 'busy', on: ['claim', 'cancel'] },
    { from: 'busy', to: 'good', on: ['succeed'] },
    { from: 'busy', to: 'open', on: ['expire', 'release'] },
    { from: 'busy', to: 'bad', on: ['fail', 'give-up', 'reject', 'cancel'] },
  ],
  policy: { retry: { delayMs: 200, jitter: 0.5, backoff: 'exponential' }, crashesMax: 2 },
})

/** Every lifecycle that ships, and the user's. */
export const EVERY_LIFECYCLE: readonly Lifecycle[] = [
  standard,
  hardened,
  leased,
  document,
  task,
  tiny,
]

/** A failure that a retry may cure. */
export const TRANSIENT: Failure = { class: 'retryable', kind: 'transient', message: 'try later' }
/** A failure that no retry cures. */
export const FINAL: Failure = { class: 'terminal', kind: 'validation', message: 'never' }
/** Input that cannot be read. */
export const UNREADABLE: Failure = {
  class: 'invalid_input',
  kind: 'invalid_input',
  message: 'not JSON',
}

/** An hour, in milliseconds: longer than any delay of the default policy. */
export const HOUR = 3_600_000

/** The policy of a lifecycle with small bounds instead of its own. */
export function policyWith(
  lifecycle: Lifecycle,
  fields: Partial<Omit<JobPolicy, 'retry'>>,
): JobPolicy {
  return { ...lifecycle.policy, ...fields }
}

/** The answer in one word: the trigger of the fact, `same`, or the code of the refusal. */
export function wordOf(decision: Decision): string {
  if (decision.kind === 'fact') return decision.fact.trigger
  return decision.kind === 'same' ? 'same' : decision.error.code
}

/** The fact that was accepted. */
export function factOf(decision: Decision): Fact {
  if (decision.kind === 'fact') return decision.fact
  throw new Error(`no fact but ${wordOf(decision)}`)
}

/** The refusal. */
export function errorOf(decision: Decision): PawlError {
  if (decision.kind === 'rejected') return decision.error
  throw new Error(`no refusal but ${wordOf(decision)}`)
}

/** Why a fence was stale; the word of the answer where it was something else. */
export function staleness(decision: Decision): string {
  const stale = decision.kind === 'rejected' && decision.error.code === 'E_STALE_FENCE'
  return stale ? String(decision.error.details.because) : wordOf(decision)
}

/** The states of a fact, from the first to the last. */
export function statesOf({ from, via = [], to }: Fact): (string | null)[] {
  return [from, ...via, to]
}

/** What brings a new job into a state, one word per command. */
type Move =
  | 'create'
  | 'hold'
  | 'delay'
  | 'claim'
  | 'lease'
  | 'retry'
  | 'fail'
  | 'effects'
  | 'commit'
  | 'cancel'
  | 'park'

function perform(script: JobScript, move: Move): Decision {
  switch (move) {
    case 'create':
      return script.create()
    case 'hold':
      return script.create({ hold: true })
    case 'delay':
      return script.create({ runAt: script.clock.now() + HOUR })
    case 'claim':
      return script.claim()
    case 'lease':
      return script.claim({ start: false })
    case 'retry':
      return script.applyCommand({ kind: 'fail', fence: script.fence, failure: TRANSIENT })
    case 'fail':
      return script.applyCommand({ kind: 'fail', fence: script.fence, failure: FINAL })
    case 'effects':
      return script.applyCommand({ kind: 'commit', fence: script.fence, effects: 2 })
    case 'commit':
      return script.applyCommand({ kind: 'commit', fence: script.fence })
    case 'cancel':
      return script.applyCommand({ kind: 'cancel' })
    case 'park':
      return script.operate({ kind: 'park' })
  }
}

/** A script whose job has made these moves, each of which must be accepted. */
export function played(lifecycle: Lifecycle, ...moves: readonly Move[]): JobScript {
  const script = new JobScript(lifecycle)
  for (const move of moves) factOf(perform(script, move))
  return script
}

/** Lets a claimed and started job crash: its lease runs out and is expired. */
export function crash(script: JobScript): Decision {
  const { fence } = script
  script.clock.advance(30_000)
  return script.applyCommand({ kind: 'expire', fence }, { actor: 'engine' })
}

/** Brings a job that waits for its time back to ready. */
export function awaken(script: JobScript): void {
  script.clock.advance(Math.max(0, (script.job.runAt ?? 0) - script.clock.now()))
  const { ready } = script.lifecycle
  if (script.job.state !== ready) factOf(script.applyCommand({ kind: 'due' }, { actor: 'engine' }))
}

/** The commands of a holder, under any fence. */
export function holderCommands(fence: { attempt: number; claim: string }, now: number): Command[] {
  return [
    { kind: 'start', fence },
    { kind: 'step', fence, name: 'fetch', n: 1 },
    { kind: 'commit', fence },
    { kind: 'fail', fence, failure: TRANSIENT },
    { kind: 'release', fence },
    { kind: 'suspend', fence, runAt: now + HOUR },
    { kind: 'cancel', fence },
  ]
}
