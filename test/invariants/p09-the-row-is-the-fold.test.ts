// P9: the row of a job is the fold of its ledger, declared volatile fields aside.
import fc from 'fast-check'
import type { Job } from 'pawl'
import { checkP9, decode, encode, evolve, type Fact, fold, leased, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, played } from '../core/job-play.ts'
import { histories } from '../support/random-history.ts'
import { alter, lines } from './tamper.ts'

describe('P9, the row is the fold of the ledger', () => {
  it('holds in every random history of every lifecycle', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script: { job, facts } }) => {
        expect(lines(checkP9(job, facts))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('holds at every point of a history: each prefix folds to the job of that time', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script: { facts }, told }) => {
        const steps = told.filter(({ answer }) => answer.kind === 'fact')
        expect(steps).toHaveLength(facts.length)
        for (const [i, { after }] of steps.entries()) {
          expect(fold(facts.slice(0, i + 1))).toEqual(after)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('holds from any point on: the job of that time and the rest of the facts give the job', () => {
    fc.assert(
      fc.property(
        histories({ lifecycles: EVERY_LIFECYCLE }),
        fc.nat(),
        ({ script: { facts, job } }, n) => {
          const cut = n % (facts.length + 1)
          const early = fold(facts.slice(0, cut))
          expect(facts.slice(cut).reduce<Job | null>(evolve, early)).toEqual(job)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('holds for facts that were written as canonical JSON and read back', () => {
    fc.assert(
      fc.property(histories({ lifecycles: EVERY_LIFECYCLE }), ({ script: { facts, job } }) => {
        const texts = facts.map((fact) => encode(fact))
        const read = texts.map((text) => decode(text) as unknown as Fact)
        expect(read).toEqual(facts)
        expect(fold(read)).toEqual(job)
        expect(encode(fold(read))).toBe(encode(job))
        expect(read.map((fact) => encode(fact))).toEqual(texts)
      }),
      { numRuns: 200 },
    )
  })
})

/** A value for every field of a row that differs from what the test's job has there. */
const OTHER: { readonly [Key in keyof Job]: Job[Key] } = {
  id: '00000000-0000-7000-8000-0000000000ff',
  type: 'other',
  queue: 'other',
  lifecycle: 'task',
  lifecycleVersion: 3,
  tags: ['other'],
  key: 'other',
  limitKey: 'other',
  retryOf: '00000000-0000-7000-8000-0000000000ff',
  timeoutMs: 1,
  deadlineAt: 1,
  policy: standard.policy,
  state: 'other',
  seq: 99,
  attempt: 99,
  failures: 99,
  crashes: 99,
  releases: 99,
  priority: 99,
  aheadMs: 99,
  runAt: null,
  createdAt: 1,
  startedAt: null,
  endedAt: 1,
  updatedAt: 1,
  outcome: 'failed',
  reason: 'other',
  error: { message: 'other', kind: 'other', type: 'TERMINAL' },
  blockedReason: 'other',
  stalled: true,
  execution: null,
  flow: '00000000-0000-7000-8000-0000000000ff',
  node: 99,
  links: 1,
}

describe('P9 reports', () => {
  const { facts, job } = played(standard, 'create', 'claim')

  it('every field of the row that differs, by its name', () => {
    for (const [key, value] of Object.entries(OTHER)) {
      const row = { ...job, [key]: value }
      expect(lines(checkP9(row, facts))).toEqual([
        `P9 at ${row.seq}: row and fold differ in ${key}`,
      ])
    }
    expect(Object.keys(OTHER).sort()).toEqual(Object.keys(job).sort())
  })

  it('all fields that differ at once', () => {
    const [violation] = checkP9({ ...job, state: 'queued', attempt: 7 }, facts)
    expect(violation?.what).toBe('row and fold differ in state, attempt')
  })

  it('an execution that differs in its status, its claim or its worker', () => {
    for (const fields of [{ status: 'LEASED' }, { claim: 'other' }, { worker: 'w' }] as const) {
      const execution = job.execution && { ...job.execution, ...fields }
      expect(checkP9({ ...job, execution }, facts)).toHaveLength(1)
    }
  })

  it('an execution of a row whose ledger has none', () => {
    const closed = played(standard, 'create', 'claim', 'retry')
    expect(checkP9({ ...closed.job, execution: job.execution }, closed.facts)).toHaveLength(1)
  })

  it('nothing of a lease that was renewed since, which is volatile', () => {
    const execution = job.execution && { ...job.execution, leaseUntil: 9_999_999_999_999 }
    expect(checkP9({ ...job, execution }, facts)).toEqual([])
  })

  it('a field that is missing in the row, or that no job has', () => {
    const { stalled: _, ...partial } = job
    expect(checkP9(partial as Job, facts)).toHaveLength(1)
    const extended: Job & { extra: number } = { ...job, extra: 1 }
    expect(checkP9(extended, facts)).toHaveLength(1)
  })

  it('a row that has no facts', () => {
    expect(lines(checkP9(job, []))).toEqual(['P9 at 2: the ledger is empty'])
  })

  it('a ledger that does not fold, with its place, instead of throwing', () => {
    const gap = [...facts.slice(0, 1), ...alter(facts, 2, { seq: 3 }).slice(1)]
    expect(checkP9(job, gap)).toMatchObject([
      { promise: 'P9', seq: 2, what: expect.stringContaining('broken at seq 3') },
    ])
    expect(checkP9(job, facts.slice(1))).toHaveLength(1)
  })

  it('the row of another job', () => {
    const other = played(leased, 'create', 'claim')
    const [violation] = checkP9(other.job, facts)
    expect(violation?.what).toBe('row and fold differ in lifecycle, lifecycleVersion, state')
  })
})
