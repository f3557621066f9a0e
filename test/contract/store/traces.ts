/** The spans that facts keep, and how later work finds them. */

import assert from 'node:assert/strict'
import type { TraceContext } from '../../../src/core/trace.ts'
import { type Cases, CLIENT, done, fenceOf, OPERATOR, settlement } from './bench.ts'

const SPAN: TraceContext = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
const OTHER: TraceContext = { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) }
const FULL: TraceContext = { ...SPAN, traceFlags: 0, traceState: 'vendor=1,other=x:y' }

/** What of a fact says in which span it was written. */
function spanOf({ traceId, spanId, traceFlags, traceState }: Partial<TraceContext>) {
  return JSON.parse(JSON.stringify({ traceId, spanId, traceFlags, traceState })) as object
}

export const traceCases: Cases = {
  'the span of an enqueue is kept on the first fact, and can be read by job': async (bench) => {
    const { store } = bench
    const [plain, traced] = [bench.item(), bench.item()]
    await store.enqueue([plain])
    await store.enqueue([traced], { requester: { ...CLIENT, ...FULL } })
    const { jobId } = traced.command
    const [fact] = await store.facts(jobId)
    assert.ok(fact)
    assert.deepEqual(spanOf(fact), FULL)
    const ids = [jobId, plain.command.jobId, '00000000-0000-7000-8000-00000000dead', 'x', "'"]
    assert.deepEqual([...(await store.traces(ids, 'create'))], [[jobId, FULL]])
    assert.deepEqual([...(await store.traces(ids, 'commit'))], [])
    assert.deepEqual([...(await store.traces([], 'create'))], [])
  },

  'reports keep the span of their attempt: of a step, a success, a failure and a release': async (
    bench,
  ) => {
    const { store } = bench
    const [success, failure, release] = [await bench.hold(), await bench.hold(), await bench.hold()]
    const step = settlement(success, { kind: 'step', name: 's', n: 1 }, '1')
    const { answers } = await store.settle([{ ...step, trace: OTHER }])
    const [answer] = answers
    assert.ok(answer?.kind === 'done')
    const held = { ...success, job: answer.job }
    const failed = { class: 'retryable', kind: 'transient', message: 'boom' } as const
    const settled = await store.settle([
      { ...settlement(held, { kind: 'commit' }, '1'), trace: SPAN },
      { ...settlement(failure, { kind: 'fail', failure: failed }), trace: FULL },
      { ...settlement(release, { kind: 'release' }), trace: SPAN },
    ])
    for (const one of settled.answers) done(one)
    const facts = await store.facts(success.job.id)
    assert.deepEqual(facts.map(spanOf), [{}, {}, OTHER, SPAN])
    assert.deepEqual(spanOf(await bench.lastFact(failure.job.id)), FULL)
    assert.deepEqual(spanOf(await bench.lastFact(release.job.id)), SPAN)
    const ids = [success.job.id, failure.job.id]
    assert.deepEqual([...(await store.traces(ids, 'commit'))], [[success.job.id, SPAN]])
  },

  'successes of one call keep the span of each, beside some that have none': async (bench) => {
    const { store } = bench
    for (let i = 0; i < 4; i++) await bench.enqueue()
    const held = await bench.claim({ limit: 4 })
    const spans = [SPAN, undefined, OTHER, undefined]
    const { answers } = await store.settle(
      held.map((one, i) => {
        const trace = spans[i]
        return { ...settlement(one, { kind: 'commit' }, '1'), ...(trace && { trace }) }
      }),
    )
    for (const answer of answers) done(answer)
    const kept = await Promise.all(held.map(({ job }) => bench.lastFact(job.id)))
    assert.deepEqual(kept.map(spanOf), [SPAN, {}, OTHER, {}])
  },

  'a commit with a function keeps its span': async (bench) => {
    const held = await bench.hold()
    const answer = await bench.store.commit(
      held,
      () => '1',
      () => ({ trace: SPAN }),
    )
    assert.equal(answer.kind, 'done')
    assert.deepEqual(spanOf(await bench.lastFact(held.job.id)), SPAN)
  },

  'ids of spans that are no names are refused, and change nothing': async (bench) => {
    const held = await bench.hold()
    const { id } = held.job
    const bad = [
      { ...SPAN, traceId: '' },
      { ...SPAN, spanId: 'x'.repeat(300) },
      { ...SPAN, traceFlags: 7 },
      { ...SPAN, traceState: 'x'.repeat(513) },
    ]
    await bench.assertUntouched(id, async () => {
      for (const trace of bad) {
        const command = { kind: 'commit', fence: fenceOf(held) } as const
        const { answers } = await bench.store.settle([{ held, command, trace }])
        assert.equal(answers[0]?.kind, 'rejected')
        await assert.rejects(
          bench.store.cancel([id], { ...OPERATOR, ...trace }).then(([one]) => {
            if (one?.kind === 'rejected') throw one.error
          }),
        )
      }
    })
  },
}
