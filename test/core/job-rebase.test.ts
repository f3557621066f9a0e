// A repair that says what the job is from then on: folding and judging begin there anew, and
// nothing is forgiven that comes after it.
import type { Job } from 'pawl'
import { checkFacts, checkP9, evolve, type Fact, fold, LedgerBroken, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { sinceRebase } from '../../src/core/job/facts.ts'
import { append } from '../invariants/tamper.ts'
import { played } from './job-play.ts'

/** Create, claim, a failure that will be retried. */
const { facts, job } = played(standard, 'create', 'claim', 'retry')

/** The same job, parked by a repair after facts that were lost. */
function repairOf(changes: Partial<Fact> = {}, rebased: Partial<Job> = {}): Fact {
  const { execution: _none, ...kept } = facts[2] as Fact
  return {
    ...kept,
    seq: 7,
    trigger: 'repair',
    from: 'retrying',
    to: 'quarantined',
    actor: 'doctor',
    operator: 'ann',
    note: 'INC-7',
    rebased: { ...job, state: 'quarantined', attempt: 4, reason: 'quarantined', ...rebased },
    ...changes,
  }
}

const damaged = [facts[0] as Fact, facts[2] as Fact]

describe('a repair that says what the job is', () => {
  it('is where folding begins, whatever stands before it', () => {
    const repair = repairOf()
    expect(fold([...damaged, repair])).toEqual({
      ...(repair.rebased as Job),
      seq: 7,
      updatedAt: repair.at,
    })
    expect(fold([repair])).toEqual(fold([...damaged, repair]))
  })

  it('keeps the links of the job, and has none in facts of earlier releases', () => {
    const linked = { flow: job.id, node: 3, links: 1 }
    expect(fold([repairOf({}, linked)])).toMatchObject(linked)
    const { flow: _, node: __, links: ___, ...earlier } = repairOf().rebased as Job
    expect(fold([repairOf({ rebased: earlier as Job })])).toMatchObject({
      ...{ flow: null, node: null, links: 0 },
    })
  })

  it('is where judging begins: what was wrong before is answered for', () => {
    expect(checkFacts(standard, damaged)).not.toEqual([])
    const all = [...damaged, repairOf()]
    expect(checkFacts(standard, all)).toEqual([])
    expect(checkP9(fold(all) as Job, all)).toEqual([])
  })

  it('lets nothing pass that comes after it', () => {
    const redrive = { trigger: 'redrive', to: 'queued', operator: 'ann', note: 'again' } as const
    const before = [...damaged, repairOf()]
    const judged = (changes: Partial<Fact>) =>
      checkFacts(standard, append(before, { ...redrive, resets: true, ...changes })).map(
        ({ promise }) => promise,
      )
    expect(judged({})).toEqual([])
    expect(judged({ seq: 9 })).toContain('P2')
    expect(judged({ to: 'running' })).toContain('P2')
    expect(judged({ from: 'queued' })).toContain('P2')
    const opens = { attempt: 2, statuses: ['LEASED'], claim: 'c', worker: 'w', leaseUntil: 9 }
    expect(judged({ execution: opens as never })).toContain('P5')
    const commits = { attempt: 4, statuses: ['COMMITTED'], claim: 'c' }
    expect(judged({ execution: commits as never })).toContain('P2')
  })

  it('is signed, and hands the job to nobody', () => {
    const unsigned = repairOf()
    expect(checkFacts(standard, [{ ...unsigned, operator: '' }])).toMatchObject([{ promise: 'P2' }])
    expect(checkFacts(standard, [{ ...unsigned, note: '' }])).toMatchObject([{ promise: 'P2' }])
    const handed = repairOf({ to: 'running' }, { state: 'running' })
    expect(checkFacts(standard, [handed])).toMatchObject([{ promise: 'P2' }])
    const nowhere = repairOf({ to: 'limbo' }, { state: 'limbo' })
    expect(checkFacts(standard, [nowhere])).toMatchObject([{ promise: 'P2' }])
  })

  it('counts a commit that it knows of: another one is the second', () => {
    const execution = { status: 'COMMITTED', claim: 'c', worker: 'w', leaseUntil: 0 } as const
    const repair = repairOf({ to: 'running' }, { state: 'running', execution })
    expect(checkFacts(standard, [repair])).toEqual([])
    const second: Fact = {
      ...(facts[1] as Fact),
      seq: 8,
      trigger: 'commit',
      from: 'running',
      to: 'running',
      execution: { attempt: 4, statuses: ['COMMITTED'], claim: 'c', leaseUntil: 9e15 },
    }
    const promises = checkFacts(standard, [repair, second]).map(({ promise }) => promise)
    expect(promises).toContain('P3')
  })

  it('is of this job, comes later, and agrees with itself', () => {
    const broken = (fact: Fact, before: readonly Fact[] = []) => {
      expect(() => fold([...before, fact])).toThrow(LedgerBroken)
    }
    broken(repairOf({ trigger: 'force' }))
    broken(repairOf({}, { id: '00000000-0000-7000-8000-00000000beef' }))
    broken(repairOf({ to: 'queued' }))
    expect(() => evolve(job, repairOf({ seq: job.seq }))).toThrow(LedgerBroken)
    expect(evolve(job, repairOf())).toMatchObject({ state: 'quarantined', seq: 7 })
  })

  it('is the last one where there are several', () => {
    const [first, second] = [repairOf(), repairOf({ seq: 9 }, { attempt: 6 })]
    expect(sinceRebase([...damaged, first, second])).toEqual([second])
    expect(fold([...damaged, first, second])?.attempt).toBe(6)
    expect(sinceRebase(facts)).toBe(facts)
  })
})
