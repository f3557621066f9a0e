/**
 * Several entries of one call that concern the same job or the same effect. Each entry is decided
 * on what the entries before it have left, as if every entry were a call of its own.
 */
import assert from 'node:assert/strict'
import { JobNotFound, StaleFence, TransitionRace } from '../../../src/core/errors.ts'
import type { Answer, EffectReport, Held, HeldEffect } from '../../../src/stores/contract/store.ts'
import { type Bench, type Cases, CLIENT, done, fenceOf, OPERATOR, one, refused } from './bench.ts'

const EFFECT_LEASE_MS = 1000
const NOBODY = '00000000-0000-7000-8000-00000000dead'

const take = (bench: Bench): Promise<HeldEffect[]> =>
  bench.store.claimEffects({ limit: 100, leaseMs: EFFECT_LEASE_MS })

const delivered = (effect: HeldEffect): EffectReport => ({ kind: 'delivered', effect })

const kindsOf = (answers: readonly Answer[]) => answers.map(({ kind }) => kind)

const priority = (value: number) => ({ kind: 'prioritise', priority: value }) as const

/** A job that has committed and declared effects of these names. */
async function committed(bench: Bench, ...names: readonly string[]): Promise<Held> {
  const held = await bench.hold({ type: 'sender' })
  await bench.store.commit(held, (tx) => {
    for (const name of names) tx.effect(name, '1')
    return '1'
  })
  return held
}

/** The seqs of a job's facts, which must have no gap. */
async function factNumbers(bench: Bench, id: string): Promise<number[]> {
  return (await bench.store.facts(id)).map(({ seq }) => seq)
}

/** Jobs whose last fact must have the number that the caller names. */
export const raceCases: Cases = {
  'a job that has moved on is answered with TransitionRace, and hinders no other': async (
    bench,
  ) => {
    const [a, b] = [await bench.enqueue(), await bench.enqueue()]
    done(await bench.applyCommand(a.id, priority(1)))
    const ids = [a.id, NOBODY, b.id]
    const answers = await bench.store.applyCommand(ids, priority(2), CLIENT, [a.seq, 1, b.seq])
    refused(answers[0], TransitionRace)
    refused(answers[1], JobNotFound)
    done(answers[2])
    assert.deepEqual([(await bench.job(a.id)).priority, (await bench.job(b.id)).priority], [1, 2])
  },

  'of one id with the same number twice only the first entry is done': async (bench) => {
    const { id, seq } = await bench.enqueue()
    const answers = await bench.store.applyCommand([id, id], priority(2), CLIENT, [seq, seq])
    done(answers[0])
    refused(answers[1], TransitionRace)
    assert.deepEqual(await factNumbers(bench, id), [1, 2])
  },

  'the second entry of an id can name the number that the first one will write': async (bench) => {
    const { id, seq } = await bench.enqueue()
    const answers = await bench.store.applyCommand([id, id], { kind: 'repair' }, DOCTOR, [
      seq,
      seq + 1,
    ])
    assert.deepEqual(kindsOf(answers), ['done', 'done'])
    assert.deepEqual(await factNumbers(bench, id), [1, 2, 3])
  },

  'the second entry of an id is refused where the number is that of the row alone': async (
    bench,
  ) => {
    const { id, seq } = await bench.enqueue()
    const answers = await bench.store.applyCommand([id, id], priority(2), CLIENT, [seq + 1, seq])
    refused(answers[0], TransitionRace)
    done(answers[1])
  },

  'a cancellation is refused for a job that has moved on, held or not': async (bench) => {
    const held = await bench.hold()
    const { id, seq } = await bench.enqueue()
    await bench.assertUntouched(held.job.id, async () => {
      const ids = [held.job.id, id, id]
      const seqs = [held.job.seq - 1, seq, seq]
      const answers = await bench.store.cancel(ids, CLIENT, seqs)
      refused(answers[0], TransitionRace)
      done(answers[1])
      refused(answers[2], TransitionRace)
    })
    const beat = { ref: held.ref, fence: fenceOf(held) }
    const { cancelling } = await bench.store.heartbeat([beat], EFFECT_LEASE_MS)
    assert.deepEqual(cancelling, [])
  },
}

const DOCTOR = { actor: 'doctor', operator: 'ann', note: 'rebuilt' } as const

/** The same id more than once in one call. */
export const repeatedIdCases: Cases = {
  'each entry of a repeated id is decided on what the entry before it left': async (bench) => {
    const { id } = await bench.enqueue()
    const parked = await bench.store.applyCommand([id, id, id], { kind: 'park' }, OPERATOR)
    assert.deepEqual(kindsOf(parked), ['done', 'same', 'same'])
    const redriven = await bench.store.applyCommand([id, id], { kind: 'redrive' }, OPERATOR)
    assert.equal(redriven[0]?.kind, 'done')
    assert.notEqual(redriven[1]?.kind, 'done')
    assert.deepEqual(await factNumbers(bench, id), [1, 2, 3])
  },

  'facts of one job and one call are written with rising numbers, and the row is their fold':
    async (bench) => {
      const { id } = await bench.enqueue()
      const answers = await bench.store.applyCommand([id, id, id], { kind: 'repair' }, DOCTOR)
      assert.deepEqual(
        answers.map((answer) => done(answer).fact.seq),
        [2, 3, 4],
      )
      assert.deepEqual(await factNumbers(bench, id), [1, 2, 3, 4])
      assert.equal((await bench.job(id)).seq, 4)
    },

  'a job that is cancelled twice in one call is cancelled once': async (bench) => {
    const { id } = await bench.enqueue()
    assert.deepEqual(kindsOf(await bench.store.cancel([id, id], CLIENT)), ['done', 'same'])
    assert.deepEqual(await factNumbers(bench, id), [1, 2])
    assert.equal((await bench.store.counts()).lanes.ended, 1)
  },

  'the holder of a job is asked once, however often one call names the job': async (bench) => {
    const held = await bench.hold()
    await bench.assertUntouched(held.job.id, async () => {
      const answers = await bench.store.cancel([held.job.id, held.job.id], CLIENT)
      assert.deepEqual(kindsOf(answers), ['asked', 'asked'])
    })
  },

  'a step that one call reports twice is recorded once': async (bench) => {
    const held = await bench.hold()
    const step = { kind: 'step', name: 'a', n: 1, fence: fenceOf(held) } as const
    const answers = await bench.store.applyCommand([held.job.id, held.job.id], step, CLIENT)
    assert.deepEqual(kindsOf(answers), ['done', 'same'])
  },

  'an ended job is counted once, however often one call names it': async (bench) => {
    const { id } = await bench.enqueue()
    done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    const answers = await bench.store.applyCommand([id, id], { kind: 'discard' }, OPERATOR)
    assert.equal(answers[0]?.kind, 'done')
    assert.notEqual(answers[1]?.kind, 'done')
    assert.deepEqual({ ...(await bench.store.counts()).ended }, { failed: 1 })
  },

  'a key of an effect that one call names twice is retried once': async (bench) => {
    const { job } = await committed(bench, 'mail', 'hook')
    const [mail, hook] = await take(bench)
    assert.ok(mail && hook)
    const parked = [mail, hook].map((effect) => ({ kind: 'parked', effect, error: 'x' }) as const)
    await bench.store.settleEffects(parked)
    const keys = [mail.key, mail.key, hook.key]
    assert.deepEqual(await bench.store.retryEffects(keys, OPERATOR), [true, false, true])
    assert.equal((await take(bench)).length, 2)
    const redrives = (await bench.store.facts(job.id)).filter(
      ({ trigger }) => trigger === 'redrive',
    )
    assert.equal(redrives.length, 2)
  },
}

/** Reports of dispatchers that no longer hold the effect. */
export const staleReportCases: Cases = {
  'a late report before that of the present holder, in one call, does not hide it': async (
    bench,
  ) => {
    const { job } = await committed(bench, 'mail')
    const late = one(await take(bench))
    await bench.advance(EFFECT_LEASE_MS)
    const present = one(await take(bench))
    const reports = [delivered(late), delivered(present), delivered(late)]
    assert.deepEqual(await bench.store.settleEffects(reports), [false, true, false])
    assert.equal((await bench.job(job.id)).outcome, 'succeeded')
  },

  'a late report of an effect that has been delivered moves no job, and tells of none': async (
    bench,
  ) => {
    const { job } = await committed(bench, 'mail')
    const late = one(await take(bench))
    await bench.advance(EFFECT_LEASE_MS)
    assert.deepEqual(await bench.store.settleEffects([delivered(one(await take(bench)))]), [true])
    const moved: Answer[] = []
    await bench.assertUntouched(job.id, async () => {
      const settled = bench.store.settleEffects([delivered(late)], (answers) => {
        moved.push(...answers)
      })
      assert.deepEqual(await settled, [false])
    })
    assert.deepEqual(moved, [])
  },

  'a delivery whose job has others open moves no job, and the last one tells of it': async (
    bench,
  ) => {
    const { job } = await committed(bench, 'mail', 'hook')
    const [mail, hook] = await take(bench)
    assert.ok(mail && hook)
    const moved: Answer[] = []
    const settle = (effect: HeldEffect) =>
      bench.store.settleEffects([delivered(effect)], (answers) => moved.push(...answers))
    assert.deepEqual(await settle(mail), [true])
    assert.deepEqual(moved, [])
    assert.deepEqual(await settle(hook), [true])
    assert.deepEqual(
      moved.map((answer) => done(answer).job.id),
      [job.id],
    )
  },

  'a late report neither parks nor releases nor postpones what another one delivers': async (
    bench,
  ) => {
    await committed(bench, 'mail')
    const late = one(await take(bench))
    await bench.advance(EFFECT_LEASE_MS)
    const present = one(await take(bench))
    const before = await bench.store.listEffects({})
    const runAt = bench.store.now()
    for (const report of [
      { kind: 'parked', effect: late, error: 'late' },
      { kind: 'released', effect: late, runAt, error: 'late' },
      { kind: 'retry', effect: late, runAt, error: 'late' },
    ] as const) {
      assert.deepEqual(await bench.store.settleEffects([report]), [false])
    }
    assert.deepEqual(await bench.store.listEffects({}), before)
    assert.deepEqual(await bench.store.settleEffects([delivered(present)]), [true])
  },

  'a report of an attempt that has lost its job is refused beside one that counts': async (
    bench,
  ) => {
    const [a, b] = [await bench.hold(), await bench.hold()]
    done(await bench.applyCommand(a.job.id, { kind: 'force', to: 'failed' }, OPERATOR))
    const settlements = [a, b].map((held) => ({
      held,
      command: { kind: 'commit', fence: fenceOf(held) } as const,
      payload: '1',
    }))
    const { answers } = await bench.store.settle(settlements)
    refused(answers[0], StaleFence)
    done(answers[1])
  },
}
