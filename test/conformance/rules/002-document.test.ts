// R2: the lifecycle of document processing jobs. Expected tables are typed from R2.
import fc from 'fast-check'
import { RetryAfter, Retryable, Terminal } from 'pawl'
import {
  analyse,
  type Command,
  checkFacts,
  checkP6,
  classify,
  DEFAULT_POLICY,
  DefinitionInvalid,
  document,
  hopsOf,
  move,
  policyFor,
  type RetryPolicy,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { expect, it } from 'vitest'
import { histories } from '../../support/random-history.ts'
import { ACTIVE, backToWork, ENDED, jobIn, retried, viewed } from '../document-job.ts'
import {
  ASK_NAMES,
  answerOf,
  ask,
  factOf,
  fail,
  failAs,
  LEASE_MS,
  readPairs,
  running,
  statesOf,
  wayOf,
} from '../played-job.ts'

/** The ways in which an attempt meets a retryable end: the document's, and a lost worker. */
const RETRYABLE_ENDS = ['fail retryably', 'expire']
const OFF_TABLE: readonly string[] = ['force', 'repair']

// States and transitions.

it('the machine has exactly the six documented states, of which two are terminal', () => {
  expect([...document.machine.states.keys()].sort()).toEqual([...ACTIVE, ...ENDED].sort())
  expect(document.machine.initial).toBe('CREATED')
  expect(analyse(document.machine).terminal.toSorted()).toEqual(['FAILED', 'SUCCEEDED'])
  expect([document.ready, document.held]).toEqual(['QUEUED', 'RUNNING'])
  expect(document.parked).toBeUndefined()
})

it('every ordered pair of states is an edge, the same state or refused, as documented', () => {
  const pairs = readPairs(`
               CREATED  QUEUED   RUNNING  RETRYING SUCCEEDED FAILED
    CREATED    same     edge     invalid  invalid  invalid   invalid
    QUEUED     invalid  same     edge     invalid  invalid   edge
    RUNNING    invalid  invalid  same     edge     edge      edge
    RETRYING   invalid  edge     invalid  same     invalid   invalid
    SUCCEEDED  invalid  invalid  invalid  invalid  same      invalid
    FAILED     invalid  invalid  invalid  invalid  invalid   same
  `)
  expect(pairs).toHaveLength(36)
  for (const { from, to, word } of pairs) {
    expect([from, to, moveOf(from, to).kind]).toEqual([from, to, word])
  }
  expect(document.machine.edges).toHaveLength(7)
  expect(document.machine.edges.filter(({ because }) => because !== undefined)).toEqual([])
})

it('the transitions that the document forbids are refused', () => {
  const out = (from: string) =>
    [...ACTIVE, ...ENDED].filter((to) => to !== from).map((to) => [from, to])
  const named = [
    ['QUEUED', 'CREATED'],
    ['SUCCEEDED', 'QUEUED'],
    ['RUNNING', 'QUEUED'],
    ['CREATED', 'RUNNING'],
  ]
  for (const [from = '', to = ''] of [...named, ...out('SUCCEEDED'), ...out('FAILED')]) {
    const answer = moveOf(from, to)
    const message = `Invalid transition: ${from} → ${to}`
    expect(answer).toMatchObject({ kind: 'invalid', error: { from, to, message } })
  }
})

it('a command that would take a forbidden transition is refused and leaves no fact', () => {
  const cases = [
    ['CREATED', 'claim', 'Invalid transition: CREATED → RUNNING'],
    ['RUNNING', 'submit', 'Invalid transition: RUNNING → QUEUED'],
    ['RUNNING', 'due', 'Invalid transition: RUNNING → QUEUED'],
    ['FAILED', 'submit', 'Invalid transition: FAILED → QUEUED'],
    ['FAILED', 'claim', 'Invalid transition: FAILED → RUNNING'],
    ['RETRYING', 'exhaust', 'Invalid transition: RETRYING → FAILED'],
  ]
  for (const [state = '', name = '', message] of cases) {
    const script = jobIn(state)
    const before = script.facts.length
    const decision = ask(script, name)
    expect(decision).toMatchObject({ kind: 'rejected', error: { message } })
    expect(script.facts).toHaveLength(before)
  }
})

it('each documented transition is taken by its trigger', () => {
  // Whatever is not named here takes no edge in that state. Parking gives a running job back.
  const ways: Record<string, Record<string, string>> = {
    CREATED: { submit: 'CREATED → QUEUED', cancel: 'CREATED → QUEUED → FAILED' },
    QUEUED: {
      claim: 'QUEUED → RUNNING',
      exhaust: 'QUEUED → FAILED',
      cancel: 'QUEUED → FAILED',
    },
    RUNNING: {
      commit: 'RUNNING → SUCCEEDED',
      'fail for good': 'RUNNING → FAILED',
      'fail retryably': 'RUNNING → RETRYING',
      expire: 'RUNNING → RETRYING',
      cancel: 'RUNNING → FAILED',
      release: 'RUNNING → RETRYING → QUEUED',
      park: 'RUNNING → RETRYING → QUEUED',
    },
    RETRYING: { due: 'RETRYING → QUEUED', cancel: 'RETRYING → QUEUED → FAILED' },
  }
  for (const state of ACTIVE) {
    const taken: Record<string, string> = {}
    for (const name of ASK_NAMES) {
      const decision = ask(jobIn(state), name)
      if (decision.kind !== 'fact') continue
      if (decision.fact.from !== decision.fact.to) taken[name] = wayOf(decision.fact)
    }
    expect(taken).toEqual(ways[state])
  }
})

it('every active state has a way to a terminal state', () => {
  const { reachable, endless } = analyse(document.machine)
  for (const state of ACTIVE) {
    expect(reachable.get(state as 'CREATED')).toEqual(expect.arrayContaining(ENDED))
  }
  expect(endless).toEqual([])
})

function moveOf(from: string, to: string) {
  return move<string, string>(document.machine, from, { to })
}

// Retries.

it('a retryable error with retries left goes to RETRYING and counts one retry', () => {
  for (const n of [0, 1, 2]) {
    const script = retried(n)
    expect(viewed(script).retryCount).toBe(n)
    const fact = factOf(fail(script, new Retryable('busy')))
    expect(wayOf(fact)).toBe('RUNNING → RETRYING')
    expect(viewed(script)).toMatchObject({ state: 'RETRYING', retryCount: n + 1 })
    expect(script.job.runAt).toBe(script.clock.now() + 1000)
  }
})

it('a retryable error with no retry left ends in FAILED', () => {
  const script = retried(3)
  const fact = factOf(fail(script, new Retryable('still busy')))
  expect(wayOf(fact)).toBe('RUNNING → FAILED')
  expect(fact.reason).toBe('retries_exhausted')
  expect(viewed(script)).toMatchObject({ state: 'FAILED', retryCount: 3, errorType: 'RETRYABLE' })
})

it('a terminal error ends in FAILED without a retry', () => {
  for (const n of [0, 1, 3]) {
    const script = retried(n)
    const fact = factOf(fail(script, new Terminal('corrupted')))
    expect(wayOf(fact)).toBe('RUNNING → FAILED')
    expect(fact.reason).not.toBe('retries_exhausted')
    expect(viewed(script)).toMatchObject({
      state: 'FAILED',
      retryCount: n,
      errorType: 'TERMINAL',
    })
  }
})

it('a retrying job returns to QUEUED one second later and not before', () => {
  const script = jobIn('RETRYING')
  const before = script.facts.length
  script.clock.advance(999)
  expect(answerOf(script.applyCommand({ kind: 'due' }))).toBe('E_NOT_DUE')
  expect(answerOf(script.claim())).toBe('E_TRANSITION_INVALID')
  const sooner = script.applyCommand({ kind: 'reschedule', runAt: script.clock.now() })
  expect(answerOf(sooner)).toBe('E_UNSUPPORTED')
  expect(script.facts).toHaveLength(before)
  script.clock.advance(1)
  expect(wayOf(factOf(script.applyCommand({ kind: 'due' })))).toBe('RETRYING → QUEUED')
})

it('the policy is three retries with a fixed delay of one second, and cannot be changed', () => {
  const { retry } = document.policy
  expect(retry).toMatchObject({ max: 3, backoff: 'fixed', delayMs: 1000, jitter: 0 })
  const overrides: (Partial<RetryPolicy> | 'exponential')[] = [{ max: 5 }, {}, 'exponential']
  for (const override of overrides) {
    expect(() => policyFor(document, { retry: override })).toThrow(DefinitionInvalid)
  }
  expect(policyFor(document).retry).toEqual(retry)
  for (const random of [0, 0.5, 0.999_999]) {
    const script = new JobScript(document, { random: { next: () => random } })
    script.create()
    for (const thrown of [new Error('any'), new RetryAfter(60_000), new RetryAfter(1)]) {
      script.claim()
      expect(factOf(fail(script, thrown)).runAt).toBe(script.clock.now() + 1000)
      script.clock.advance(1000)
      script.applyCommand({ kind: 'due' })
    }
  }
})

it('a job does not bring a retry policy of its own', () => {
  const script = new JobScript(document)
  const retry = { ...document.policy.retry, max: 9, delayMs: 5 }
  const decision = script.create({ policy: { ...DEFAULT_POLICY, retry } })
  expect(decision.kind).toBe('rejected')
  expect(script.facts).toEqual([])
})

it('a job that is given back passes RETRYING on its way to QUEUED and counts no retry', () => {
  const script = retried(2)
  const fact = factOf(script.applyCommand({ kind: 'release', fence: script.fence }))
  expect(wayOf(fact)).toBe('RUNNING → RETRYING → QUEUED')
  expect(viewed(script)).toMatchObject({ state: 'QUEUED', retryCount: 2 })
  expect(script.job).toMatchObject({ releases: 1, runAt: script.clock.now() })
  expect(script.claim().kind).toBe('fact')
})

it('a lost worker counts as a retryable failure', () => {
  for (const n of [0, 1, 2, 3]) {
    const script = retried(n)
    script.clock.advance(LEASE_MS)
    const fact = factOf(script.applyCommand({ kind: 'expire', fence: script.fence }))
    const spent = n === 3
    expect(wayOf(fact)).toBe(spent ? 'RUNNING → FAILED' : 'RUNNING → RETRYING')
    expect(viewed(script)).toMatchObject({
      retryCount: spent ? 3 : n + 1,
      errorType: 'RETRYABLE',
    })
    if (!spent) expect(script.job.runAt).toBe(script.clock.now() + 1000)
  }
})

it('no sequence of errors makes more than three retries', () => {
  const ends = fc.constantFrom(...RETRYABLE_ENDS, 'release', 'fail for good')
  const check = (endings: readonly string[]) => {
    const script = running(document)
    for (const end of endings) {
      ask(script, end)
      expect(script.job.failures).toBeLessThanOrEqual(3)
      if (script.job.state === 'FAILED') break
      backToWork(script)
    }
    const entered = statesOf(script.facts).filter((state) => state === 'RUNNING').length
    expect(entered).toBeLessThanOrEqual(4 + script.job.releases)
    const failures = endings.filter((end) => RETRYABLE_ENDS.includes(end)).length
    // Not fewer either: without a terminal error the job ends by the fourth failure exactly.
    if (!endings.includes('fail for good')) {
      expect(script.job.state).toBe(failures > 3 ? 'FAILED' : 'RUNNING')
      expect(script.job.failures).toBe(Math.min(failures, 3))
    }
    expect(checkFacts(document, script.facts)).toEqual([])
  }
  fc.assert(fc.property(fc.array(ends, { maxLength: 12 }), check), { numRuns: 300 })
})

// Classes of failures.

it('transient errors, time-outs, overload and missing dependencies are retryable', () => {
  const thrown = [
    new Retryable('a resource is away for a moment'),
    new Retryable('temporarily unavailable', 'transient'),
    new Retryable('took too long', 'timeout'),
    new Retryable('the queue is full', 'overload'),
    new Retryable('the scanner does not answer', 'unavailable'),
    new Error('nobody knows'),
    'a thrown text',
  ]
  for (const error of thrown) {
    const script = running(document)
    fail(script, error)
    expect(viewed(script)).toMatchObject({ state: 'RETRYING', errorType: 'RETRYABLE' })
  }
})

it('invalid input, failed validation, bad configuration and exceeded limits are terminal', () => {
  const kinds = ['invalid_input', 'validation', 'configuration', 'limit_exceeded', 'terminal']
  for (const kind of kinds as ConstructorParameters<typeof Terminal>[1][]) {
    const script = running(document)
    expect(wayOf(factOf(fail(script, new Terminal('no', kind))))).toBe('RUNNING → FAILED')
    expect(viewed(script)).toMatchObject({ errorType: 'TERMINAL', retryCount: 0 })
  }
})

it('an attempt that times out is retryable, a job past its deadline is not', () => {
  const slow = running(document)
  const aborted = factOf(fail(slow, new Retryable('took too long', 'timeout')))
  expect(aborted.execution).toMatchObject({ statuses: ['ABORTED'], abort: 'timeout' })
  expect(viewed(slow)).toMatchObject({ state: 'RETRYING', errorType: 'RETRYABLE' })
  const late = running(document)
  expect(factOf(failAs(late, 'deadline')).reason).toBe('deadline')
  expect(viewed(late)).toMatchObject({ state: 'FAILED', errorType: 'TERMINAL', retryCount: 0 })
  expect(classify(new Terminal('late', 'deadline')).class).toBe('terminal')
})

it('a queued job that exhausts resources ends in FAILED', () => {
  const script = retried(1)
  script.applyCommand({ kind: 'release', fence: script.fence })
  const fact = factOf(script.applyCommand({ kind: 'exhaust' }, { actor: 'engine' }))
  expect([wayOf(fact), fact.reason]).toEqual(['QUEUED → FAILED', 'resource_exhausted'])
  expect(viewed(script)).toMatchObject({ state: 'FAILED', retryCount: 1 })
})

it('cancellation ends in FAILED from every active state', () => {
  const ways: Record<string, string> = {
    CREATED: 'CREATED → QUEUED → FAILED',
    QUEUED: 'QUEUED → FAILED',
    RUNNING: 'RUNNING → FAILED',
    RETRYING: 'RETRYING → QUEUED → FAILED',
  }
  for (const state of ACTIVE) {
    const script = jobIn(state)
    const fact = factOf(script.applyCommand({ kind: 'cancel' }))
    expect([wayOf(fact), fact.reason]).toEqual([ways[state], 'cancelled'])
    expect(fact.outcome).toBe('failed')
  }
  expect(answerOf(jobIn('SUCCEEDED').applyCommand({ kind: 'cancel' }))).toBe('E_COMMITTED')
  expect(answerOf(jobIn('FAILED').applyCommand({ kind: 'cancel' }))).toBe('same')
})

// Safety and order.

it('a job that has ended never changes', () => {
  for (const state of ENDED) {
    for (const name of ASK_NAMES) {
      const script = jobIn(state)
      const before = script.job
      expect([state, name, ask(script, name).kind]).not.toContain('fact')
      expect(script.job).toBe(before)
    }
    const script = jobIn(state)
    for (const to of [...ACTIVE, ...ENDED]) {
      for (const kind of ['force', 'repair'] as const) {
        expect(script.operate({ kind, to }).kind).not.toBe('fact')
      }
    }
  }
  expect(answerOf(jobIn('FAILED').operate({ kind: 'redrive' }))).toBe('E_UNSUPPORTED')
  expect(answerOf(jobIn('SUCCEEDED').operate({ kind: 'redrive' }))).toBe('E_COMMITTED')
})

it('what the doctor notes on an ended job changes nothing that the document knows', () => {
  for (const state of ENDED) {
    const script = jobIn(state)
    const before = viewed(script)
    script.clock.advance(5000)
    expect(factOf(script.operate({ kind: 'repair' }))).toMatchObject({ from: state, to: state })
    expect(viewed(script)).toEqual(before)
    expect(checkP6(document, script.facts)).toEqual([])
  }
})

it('a running job is not given to another worker', () => {
  const script = retried(1)
  const { job, fence } = script
  expect(answerOf(script.claim({ worker: 'worker-2' }))).toBe('E_STALE_FENCE')
  const foreign = [
    { ...fence, attempt: fence.attempt - 1 },
    { ...fence, attempt: fence.attempt + 1 },
    { ...fence, claim: '00000000-0000-7000-8000-00000000ffff' },
  ]
  for (const other of foreign) {
    const asked: Command[] = [
      { kind: 'start', fence: other },
      { kind: 'step', fence: other, name: 'a', n: 1 },
      { kind: 'commit', fence: other },
      { kind: 'fail', fence: other, failure: classify(new Error('late')) },
      { kind: 'release', fence: other },
      { kind: 'expire', fence: other },
      { kind: 'cancel', fence: other },
    ]
    for (const command of asked)
      expect(answerOf(script.applyCommand(command))).toBe('E_STALE_FENCE')
  }
  expect(script.job).toBe(job)
  expect(script.applyCommand({ kind: 'commit', fence }).kind).toBe('fact')
})

it('a job only goes forward, but for the restart of a retry', () => {
  const rank: Record<string, number> = {
    CREATED: 0,
    QUEUED: 1,
    RUNNING: 2,
    RETRYING: 3,
    SUCCEEDED: 3,
    FAILED: 3,
  }
  const back = ({ from, to }: { from: string; to: string }) =>
    (rank[to] ?? -1) <= (rank[from] ?? -1) && `${from} → ${to}` !== 'RETRYING → QUEUED'
  // Only a forced or repaired fact may leave the table, by a named operator.
  fc.assert(
    fc.property(histories({ lifecycles: [document] }), ({ script }) => {
      const ruled = script.facts.filter(({ trigger }) => !OFF_TABLE.includes(trigger))
      expect(ruled.flatMap(hopsOf).filter(back)).toEqual([])
    }),
    { numRuns: 300 },
  )
})
