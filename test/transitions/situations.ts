// The situations and the commands of the tables in `command-tables.ts`, all brought about by real
// commands. Every script that is made here is fresh: no cell of a table can influence another.
import type { Lifecycle } from 'pawl'
import type { AttemptCommand, Command, Decision, Failure, Fence } from 'pawl/rules'
import { JobScript } from 'pawl/testing'

const DAY_MS = 24 * 60 * 60 * 1000
const LATER_MS = 60_000
const LEASE_MS = 30_000
const RELEASES_MAX = 100
const FOREIGN_CLAIM = '99999999-9999-7999-8999-999999999999'

/** Which budget a held job has used up, by how many failures, crashes or releases. */
export interface Spending {
  readonly budget: 'failures' | 'crashes' | 'releases'
  readonly times: number
}

/** How a job gets where a table wants it; `spent` matters only where it is held at the end. */
type Way = (script: JobScript, spent?: Spending) => void

/** Where a job is when it got there. */
export interface Situation {
  readonly way: Way
  readonly state: string
  readonly status?: 'LEASED' | 'IN_PROGRESS' | 'COMMITTED' | 'DONE'
  readonly blocked?: true
}

/** Failures of each class that the tables tell apart. */
const RETRYABLE: Failure = { class: 'retryable', kind: 'unavailable', message: 'try again' }
const TERMINAL: Failure = { class: 'terminal', kind: 'configuration', message: 'never' }
const BAD_INPUT: Failure = { class: 'invalid_input', kind: 'invalid_input', message: 'unreadable' }

/** The fence of the latest attempt, whether it still holds the job or not. */
export function lastFence({ job, facts }: JobScript): Fence {
  const claims = facts.map(({ execution }) => execution?.claim)
  return { attempt: job.attempt, claim: claims.findLast((own) => own) ?? FOREIGN_CLAIM }
}

/** A fence that names the right attempt, but a claim that nobody ever made. */
export const foreignFence = ({ job }: JobScript): Fence => ({
  attempt: job.attempt,
  claim: FOREIGN_CLAIM,
})

const waitUntil = (until: number | null) =>
  ({ for: 'signal', name: 'approval', n: 1, until }) as const

const later = (script: JobScript) => script.clock.now() + LATER_MS

const ready: Way = (script) => script.create()
const delayed: Way = (script) => script.create({ runAt: later(script) })
const heldBack: Way = (script) => script.create({ hold: true })

/** One attempt that ends without ending the job. */
const spendOnce: Readonly<Record<Spending['budget'], (script: JobScript) => void>> = {
  failures: (script) =>
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: RETRYABLE }),
  crashes: (script) => {
    script.clock.advance(LEASE_MS)
    script.applyCommand({ kind: 'expire', fence: script.fence })
  },
  releases: (script) => script.applyCommand({ kind: 'release', fence: script.fence }),
}

const held =
  (start: boolean): Way =>
  (script, spent) => {
    script.create()
    for (let i = 0; i < (spent?.times ?? 0); i++) {
      script.claim()
      spendOnce[spent?.budget ?? 'failures'](script)
      script.clock.advance(DAY_MS)
      script.applyCommand({ kind: 'due' })
    }
    script.claim({ start })
  }
const leased = held(false)
const begun = held(true)

const committed: Way = (script) => {
  begun(script)
  script.applyCommand({ kind: 'commit', fence: script.fence, effects: 1 })
}
const succeeded: Way = (script) => {
  begun(script)
  script.applyCommand({ kind: 'commit', fence: script.fence })
}
const afterFailure =
  (failure: Failure): Way =>
  (script) => {
    begun(script)
    script.applyCommand({ kind: 'fail', fence: script.fence, failure })
  }
const retrying = afterFailure(RETRYABLE)
const failed = afterFailure(TERMINAL)
const rejected = afterFailure(BAD_INPUT)

const waiting: Way = (script) => {
  begun(script)
  script.applyCommand({ kind: 'wait', fence: script.fence, wait: waitUntil(later(script)) })
}

const parked =
  (way: Way): Way =>
  (script) => {
    way(script)
    script.operate({ kind: 'park' })
  }
const cancelled: Way = (script) => {
  begun(script)
  script.applyCommand({ kind: 'cancel' })
}

const LEASED = { way: leased, status: 'LEASED' } as const
const BEGUN = { way: begun, status: 'IN_PROGRESS' } as const
const COMMITTED = { way: committed, status: 'COMMITTED' } as const
const SUCCEEDED = { way: succeeded, status: 'DONE' } as const

/** Per lifecycle, every situation that its table has a column for. */
export const SITUATIONS: Readonly<Record<string, Readonly<Record<string, Situation>>>> = {
  standard: {
    held: { way: heldBack, state: 'created' },
    sched: { way: delayed, state: 'scheduled' },
    queued: { way: ready, state: 'queued' },
    leased: { ...LEASED, state: 'running' },
    begun: { ...BEGUN, state: 'running' },
    retry: { way: retrying, state: 'retrying' },
    waits: { way: waiting, state: 'waiting' },
    commit: { ...COMMITTED, state: 'running' },
    succ: { ...SUCCEEDED, state: 'succeeded' },
    failed: { way: failed, state: 'failed' },
    quar: { way: rejected, state: 'quarantined' },
    canc: { way: cancelled, state: 'cancelled' },
  },
  hardened: {
    pending: { way: ready, state: 'pending' },
    delayed: { way: delayed, state: 'pending' },
    leased: { ...LEASED, state: 'running' },
    begun: { ...BEGUN, state: 'running' },
    failed: { way: retrying, state: 'failed' },
    commit: { ...COMMITTED, state: 'running' },
    succ: { ...SUCCEEDED, state: 'succeeded' },
    quar: { way: failed, state: 'quarantined' },
  },
  leased: {
    pending: { way: ready, state: 'PENDING' },
    delayed: { way: delayed, state: 'PENDING' },
    parked: { way: parked(ready), state: 'PENDING', blocked: true },
    leased: { ...LEASED, state: 'RUNNING' },
    begun: { ...BEGUN, state: 'RUNNING' },
    commit: { ...COMMITTED, state: 'RUNNING' },
    succ: { ...SUCCEEDED, state: 'SUCCEEDED' },
    failed: { way: failed, state: 'FAILED' },
  },
  document: {
    held: { way: heldBack, state: 'CREATED' },
    later: { way: delayed, state: 'CREATED' },
    queued: { way: ready, state: 'QUEUED' },
    leased: { ...LEASED, state: 'RUNNING' },
    begun: { ...BEGUN, state: 'RUNNING' },
    retry: { way: retrying, state: 'RETRYING' },
    commit: { ...COMMITTED, state: 'RUNNING' },
    succ: { ...SUCCEEDED, state: 'SUCCEEDED' },
    failed: { way: failed, state: 'FAILED' },
    parkC: { way: parked(delayed), state: 'CREATED', blocked: true },
    parkQ: { way: parked(ready), state: 'QUEUED', blocked: true },
    parkT: { way: parked(retrying), state: 'RETRYING', blocked: true },
  },
  task: {
    pending: { way: ready, state: 'pending' },
    delayed: { way: delayed, state: 'pending' },
    parked: { way: parked(begun), state: 'pending', blocked: true },
    leased: { ...LEASED, state: 'running' },
    begun: { ...BEGUN, state: 'running' },
    commit: { ...COMMITTED, state: 'running' },
    done: { ...SUCCEEDED, state: 'done' },
    error: { way: failed, state: 'error' },
  },
}

/** A fresh job, brought into a situation. */
export function bring(lifecycle: Lifecycle, situation: Situation, spent?: Spending): JobScript {
  const script = new JobScript(lifecycle)
  situation.way(script, spent)
  return script
}

/** How a row of a table is carried out. */
export interface Row {
  /** Used up before the command is given, in those situations where the job is held. */
  readonly spent?: Spending['budget']
  /** What happens before, if the situation allows it. */
  readonly before?: (script: JobScript) => void
  readonly run: (script: JobScript, aside: string) => Decision
}

type FencedCommand = AttemptCommand | Extract<Command, { kind: 'wait' }>

/** Everything that an attempt may ask, with a given fence. */
export const ATTEMPT_COMMANDS: Readonly<
  Record<string, (fence: Fence, script: JobScript) => FencedCommand>
> = {
  start: (fence) => ({ kind: 'start', fence }),
  step: (fence) => ({ kind: 'step', fence, name: 'fetch', n: 1 }),
  commit: (fence) => ({ kind: 'commit', fence }),
  'commit, effects': (fence) => ({ kind: 'commit', fence, effects: 2 }),
  'fail, retryable': (fence) => ({ kind: 'fail', fence, failure: RETRYABLE }),
  'fail, terminal': (fence) => ({ kind: 'fail', fence, failure: TERMINAL }),
  'fail, bad input': (fence) => ({ kind: 'fail', fence, failure: BAD_INPUT }),
  release: (fence) => ({ kind: 'release', fence }),
  suspend: (fence, script) => ({ kind: 'suspend', fence, runAt: later(script) }),
  wait: (fence, script) => ({ kind: 'wait', fence, wait: waitUntil(later(script)) }),
  'wait, time over': (fence, script) => ({
    kind: 'wait',
    fence,
    wait: waitUntil(script.clock.now()),
  }),
}

const fenced = (command: keyof typeof ATTEMPT_COMMANDS): Row['run'] => {
  const ask = ATTEMPT_COMMANDS[command]
  if (ask === undefined) throw new Error(`there is no ${command}`)
  return (script) => script.applyCommand(ask(lastFence(script), script), { actor: 'worker' })
}
const plain = (command: Command): Row => ({ run: (script) => script.applyCommand(command) })
const operated = (command: Command): Row => ({ run: (script) => script.operate(command) })
const expire: Row['run'] = (script) =>
  script.applyCommand({ kind: 'expire', fence: lastFence(script) })
const after =
  (ms: number, run: Row['run']): Row['run'] =>
  (script, aside) => {
    script.clock.advance(ms)
    return run(script, aside)
  }
const SIGNAL = { kind: 'signal', name: 'approval', key: 'k1' } as const
const sendSignal = (script: JobScript) => {
  script.applyCommand(SIGNAL)
}
const due: Row = plain({ kind: 'due' })

/** Every row that a table must have, and how it is carried out. */
export const ROWS: Readonly<Record<string, Row>> = {
  submit: plain({ kind: 'submit' }),
  schedule: {
    run: (script) => script.applyCommand({ kind: 'schedule', runAt: later(script) + 1 }),
  },
  'schedule, past': {
    run: (script) => script.applyCommand({ kind: 'schedule', runAt: script.clock.now() }),
  },
  due,
  'due, time over': { run: after(DAY_MS, due.run) },
  'reschedule later': {
    run: (script) => script.applyCommand({ kind: 'reschedule', runAt: later(script) + 1 }),
  },
  'reschedule to now': {
    run: (script) => script.applyCommand({ kind: 'reschedule', runAt: script.clock.now() }),
  },
  prioritise: plain({ kind: 'prioritise', priority: 7 }),
  replace: plain({ kind: 'replace' }),
  signal: plain(SIGNAL),
  'signal, other': plain({ ...SIGNAL, name: 'payment' }),
  'signal, known': plain({ ...SIGNAL, known: true }),
  arrive: plain({ kind: 'arrive', look: { open: false } }),
  'arrive, one open': plain({ kind: 'arrive', look: { open: true } }),
  'arrive, failed': plain({ kind: 'arrive', look: { open: true, failed: FOREIGN_CLAIM } }),
  exhaust: plain({ kind: 'exhaust' }),
  claim: { run: (script) => script.claim() },
  start: { run: fenced('start') },
  step: { run: fenced('step') },
  commit: { run: fenced('commit') },
  'commit, effects': { run: fenced('commit, effects') },
  done: { run: (script) => script.applyCommand({ kind: 'done', attempt: script.job.attempt }) },
  'fail, retryable': { run: fenced('fail, retryable') },
  'fail, terminal': { run: fenced('fail, terminal') },
  'fail, bad input': { run: fenced('fail, bad input') },
  'fail, spent': { spent: 'failures', run: fenced('fail, retryable') },
  release: { run: fenced('release') },
  'release, spent': { spent: 'releases', run: fenced('release') },
  suspend: { run: fenced('suspend') },
  wait: { run: fenced('wait') },
  'wait, time over': { run: fenced('wait, time over') },
  'wait, signal sent': { before: sendSignal, run: fenced('wait') },
  'wait, known': {
    before: (script) => {
      const fence = lastFence(script)
      script.applyCommand({ kind: 'wait', fence, wait: waitUntil(script.clock.now()) })
    },
    run: fenced('wait'),
  },
  'expire too early': { run: after(LEASE_MS - 1, expire) },
  expire: { run: after(LEASE_MS, expire) },
  'expire, spent': { spent: 'crashes', run: after(LEASE_MS, expire) },
  cancel: plain({ kind: 'cancel' }),
  'cancel by holder': {
    run: (script) => script.applyCommand({ kind: 'cancel', fence: lastFence(script) }),
  },
  park: operated({ kind: 'park' }),
  redrive: operated({ kind: 'redrive' }),
  'redrive, arrived': operated({ kind: 'redrive', arrived: true }),
  discard: operated({ kind: 'discard' }),
  'force to ready': {
    run: (script) => script.operate({ kind: 'force', to: script.lifecycle.ready }),
  },
  'force aside': { run: (script, aside) => script.operate({ kind: 'force', to: aside }) },
  'force to held': {
    run: (script) => script.operate({ kind: 'force', to: script.lifecycle.held }),
  },
  'force to success': {
    run: (script) => script.operate({ kind: 'force', to: script.lifecycle.succeeded }),
  },
  'force to nowhere': operated({ kind: 'force', to: '__proto__' }),
  repair: operated({ kind: 'repair' }),
  'repair to ready': {
    run: (script) => script.operate({ kind: 'repair', to: script.lifecycle.ready }),
  },
  'repair to held': {
    run: (script) => script.operate({ kind: 'repair', to: script.lifecycle.held }),
  },
}

/** How often each budget must have been used for the next time to be too often. */
export function spendingOf(
  budget: Spending['budget'] | undefined,
  budgets: { readonly failures: number; readonly crashes: number },
): Spending | undefined {
  if (budget === undefined) return undefined
  return { budget, times: { ...budgets, releases: RELEASES_MAX }[budget] }
}
