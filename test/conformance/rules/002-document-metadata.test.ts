// The job-lifecycle requirements (R2): its examples, its table of metadata and its notes.
import fc from 'fast-check'
import { type Job, Retryable, Terminal } from 'pawl'
import { type Command, document, encode, type Fact, fold, viewOf } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { expect, it } from 'vitest'
import { histories } from '../../support/random-history.ts'
import { backToWork, heldBack, jobIn, retried, viewed } from '../document-job.ts'
import {
  answerOf,
  ask,
  factOf,
  fail,
  LEASE_MS,
  running,
  statesOf,
  submitted,
  wayOf,
} from '../played-job.ts'

// Examples.

it('example: a job succeeds without errors', () => {
  const script = heldBack()
  script.applyCommand({ kind: 'submit' })
  script.claim()
  script.applyCommand({ kind: 'commit', fence: script.fence })
  expect(statesOf(script.facts)).toEqual(['CREATED', 'QUEUED', 'RUNNING', 'SUCCEEDED'])
  expect(viewed(script)).toMatchObject({ retryCount: 0, lastError: null, errorType: null })
})

it('example: a job fails once and succeeds on its retry', () => {
  const script = submitted(document)
  script.claim()
  fail(script, new Retryable('timeout', 'timeout'))
  expect(viewed(script)).toMatchObject({ state: 'RETRYING', retryCount: 1 })
  script.clock.advance(1000)
  script.applyCommand({ kind: 'due' })
  script.claim()
  script.applyCommand({ kind: 'commit', fence: script.fence })
  expect(statesOf(script.facts)).toEqual([
    'CREATED',
    'QUEUED',
    'RUNNING',
    'RETRYING',
    'QUEUED',
    'RUNNING',
    'SUCCEEDED',
  ])
  expect(viewed(script)).toMatchObject({ retryCount: 1, lastError: null, errorType: null })
})

it('example: a job exhausts its retries', () => {
  const script = running(document)
  const counts: unknown[] = []
  for (let failures = 0; failures < 4; failures++) {
    fail(script, new Retryable('temporarily unavailable'))
    if (script.job.state === 'RETRYING') counts.push(viewed(script).retryCount)
    backToWork(script)
  }
  expect(counts).toEqual([1, 2, 3])
  const round = ['QUEUED', 'RUNNING', 'RETRYING']
  expect(statesOf(script.facts)).toEqual([
    'CREATED',
    ...round,
    ...round,
    ...round,
    'QUEUED',
    'RUNNING',
    'FAILED',
  ])
  expect(viewed(script).retryCount).toBe(3)
})

it('example: an invalid document fails at once', () => {
  const script = running(document)
  fail(script, new Terminal('invalid document format', 'invalid_input'))
  expect(statesOf(script.facts)).toEqual(['CREATED', 'QUEUED', 'RUNNING', 'FAILED'])
  expect(viewed(script).retryCount).toBe(0)
})

// Metadata.

it('the view has exactly the documented fields', () => {
  const fields = [
    'completedAt',
    'createdAt',
    'errorType',
    'jobId',
    'lastError',
    'maxRetries',
    'retryCount',
    'startedAt',
    'state',
  ]
  for (const state of ['CREATED', 'QUEUED', 'RUNNING', 'RETRYING', 'SUCCEEDED', 'FAILED']) {
    const script = jobIn(state)
    expect(Object.keys(viewed(script)).sort()).toEqual(fields)
    expect(viewed(script)).toMatchObject({ jobId: script.job.id, state })
  }
})

it('jobId, createdAt and maxRetries never change', () => {
  fc.assert(
    fc.property(histories({ lifecycles: [document] }), ({ script }) => {
      const { jobId, at } = script.facts[0] as Fact
      for (const n of script.facts.keys()) {
        const job = fold(script.facts.slice(0, n + 1)) as Job
        const expected = { jobId, createdAt: at, maxRetries: 3 }
        expect(viewOf(document, job)).toMatchObject(expected)
      }
    }),
    { numRuns: 200 },
  )
})

it('startedAt is null until RUNNING and then the start of the latest attempt', () => {
  const script = heldBack()
  expect(viewed(script).startedAt).toBeNull()
  script.applyCommand({ kind: 'submit' })
  expect(viewed(script).startedAt).toBeNull()
  script.clock.advance(70)
  script.claim()
  const first = script.clock.now()
  expect(viewed(script).startedAt).toBe(first)
  script.clock.advance(5)
  fail(script, new Error('once'))
  expect(viewed(script).startedAt).toBe(first)
  script.clock.advance(1000)
  script.applyCommand({ kind: 'due' })
  expect(viewed(script).startedAt).toBe(first)
  script.claim({ start: false })
  script.clock.advance(40)
  script.applyCommand({ kind: 'start', fence: script.fence })
  expect(viewed(script).startedAt).toBe(first + 1045)
  script.clock.advance(3)
  script.applyCommand({ kind: 'commit', fence: script.fence })
  expect(viewed(script).startedAt).toBe(first + 1045)
})

it('completedAt is null until the job has ended', () => {
  for (const state of ['CREATED', 'QUEUED', 'RUNNING', 'RETRYING']) {
    const script = jobIn(state)
    expect(viewed(script).completedAt).toBeNull()
    script.clock.advance(123)
    script.applyCommand({ kind: 'cancel' })
    expect(viewed(script)).toMatchObject({ state: 'FAILED', completedAt: script.clock.now() })
  }
  // With an effect to deliver, the job ends when it is delivered and not when it is committed.
  const script = running(document)
  script.clock.advance(10)
  script.applyCommand({ kind: 'commit', fence: script.fence, effects: 1 })
  expect(viewed(script).completedAt).toBeNull()
  script.clock.advance(20)
  script.applyCommand({ kind: 'done', attempt: 1 })
  expect(viewed(script)).toMatchObject({ state: 'SUCCEEDED', completedAt: script.clock.now() })
})

it('lastError and errorType hold the latest failure and are null on success', () => {
  const script = running(document)
  expect(viewed(script)).toMatchObject({ lastError: null, errorType: null })
  fail(script, new Retryable('the first'))
  const first = { lastError: 'Retryable: the first', errorType: 'RETRYABLE' }
  expect(viewed(script)).toMatchObject(first)
  backToWork(script)
  expect(viewed(script)).toMatchObject(first)
  fail(script, new Retryable('the second'))
  expect(viewed(script).lastError).toBe('Retryable: the second')
  backToWork(script)
  script.applyCommand({ kind: 'commit', fence: script.fence })
  expect(viewed(script)).toMatchObject({ lastError: null, errorType: null })
  const other = retried(1)
  fail(other, new Terminal('broken', 'validation'))
  expect(viewed(other)).toMatchObject({ lastError: 'Terminal: broken', errorType: 'TERMINAL' })
})

it('retryCount is 0 at first and counts retries', () => {
  const script = heldBack()
  expect(viewed(script).retryCount).toBe(0)
  script.applyCommand({ kind: 'submit' })
  script.claim()
  expect(viewed(script).retryCount).toBe(0)
  const ends = ['fail retryably', 'release', 'expire', 'release', 'fail retryably']
  const counts = ends.map((end) => {
    ask(script, end)
    const count = viewed(script).retryCount
    backToWork(script)
    return count
  })
  expect(counts).toEqual([1, 1, 2, 2, 3])
  const entered = statesOf(script.facts).filter((state) => state === 'RETRYING').length
  expect(entered - script.job.releases).toBe(3)
})

/** A whole life with a retry, in which everybody also hands the payload to the core. */
function lifeWith(payload: string): readonly Fact[] {
  const script = new JobScript(document)
  const seen = { payload, input: payload, document: payload, result: payload }
  const tell = (command: Command) => script.applyCommand({ ...seen, ...command })
  const jobId = '01890000-0000-7000-8000-000000000002'
  tell({ kind: 'create', jobId, type: 'scan', queue: 'default' })
  script.claim()
  const failure = { class: 'retryable', kind: 'transient', message: 'busy', ...seen } as const
  tell({ kind: 'fail', fence: script.fence, failure })
  backToWork(script)
  tell({ kind: 'step', fence: script.fence, name: 'read', n: 1 })
  tell({ kind: 'commit', fence: script.fence })
  expect(script.job.state).toBe('SUCCEEDED')
  return script.facts
}

// Notes.

it('two payloads give the same facts', () => {
  const plain = lifeWith('plain text of an invoice')
  expect(lifeWith('U2FsdGVkX1+ciphertext')).toEqual(plain)
  expect(lifeWith('')).toEqual(plain)
  expect(encode(plain)).not.toContain('invoice')
})

it('a delayed job stays CREATED until it is due', () => {
  const late = new JobScript(document)
  late.create({ runAt: late.clock.now() + LEASE_MS })
  const held = heldBack()
  held.applyCommand({ kind: 'schedule', runAt: held.clock.now() + LEASE_MS })
  for (const script of [late, held]) {
    expect(script.job).toMatchObject({ state: 'CREATED', runAt: script.clock.now() + LEASE_MS })
    script.clock.advance(LEASE_MS - 1)
    expect(answerOf(script.applyCommand({ kind: 'due' }))).toBe('E_NOT_DUE')
    expect(answerOf(script.claim())).toBe('E_TRANSITION_INVALID')
    expect(script.job.state).toBe('CREATED')
    script.clock.advance(1)
    expect(wayOf(factOf(script.applyCommand({ kind: 'due' })))).toBe('CREATED → QUEUED')
    expect(script.claim().kind).toBe('fact')
  }
})
