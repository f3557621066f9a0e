/**
 * The fence (promise P4): every verb by a holder that has lost its job, one by one, after each way
 * of losing it. Whatever it asks, the job stays as it is and the holder learns that it is late.
 */
import assert from 'node:assert/strict'
import { JobNotFound, StaleFence } from '../../../src/core/errors.ts'
import type { Held } from '../../../src/stores/contract/store.ts'
import {
  type Bench,
  type Cases,
  done,
  failureOf,
  fenceOf,
  LEASE_MS,
  OPERATOR,
  one,
  policyWith,
  type Report,
  refused,
} from './bench.ts'

/** How a holder loses its job. */
const LOSSES: Readonly<Record<string, (bench: Bench, held: Held) => Promise<void>>> = {
  'its lease expired': (bench) => bench.advance(LEASE_MS),
  'its job was taken back': async (bench) => {
    done(one(await bench.expire()))
  },
  'another worker claimed its job': async (bench, held) => {
    await bench.expire()
    await bench.store.promote(10)
    await bench.reclaim(held)
  },
  'its own worker claimed the job again': async (bench, held) => {
    done(await bench.settle(held, { kind: 'release' }))
    await bench.reclaim(held, { worker: held.job.execution?.worker ?? '' })
  },
  'its job was cancelled': async (bench, held) => {
    done(await bench.applyCommand(held.job.id, { kind: 'cancel' }))
  },
  'its job was parked': async (bench, held) => {
    done(await bench.applyCommand(held.job.id, { kind: 'park' }, OPERATOR))
  },
  'its job was forced elsewhere': async (bench, held) => {
    done(await bench.applyCommand(held.job.id, { kind: 'force', to: 'queued' }, OPERATOR))
  },
  'another worker committed its job': async (bench, held) => {
    await bench.expire()
    await bench.store.promote(10)
    const other = await bench.reclaim(held)
    assert.equal((await bench.store.commit(other, () => '"theirs"')).kind, 'done')
  },
  'another worker committed its job and effects are open': async (bench, held) => {
    await bench.expire()
    await bench.store.promote(10)
    const other = await bench.reclaim(held)
    await bench.store.commit(other, (tx) => {
      tx.effect('mail', '1')
      return '"theirs"'
    })
  },
}

/** What a late holder may try. */
const VERBS: Readonly<Record<string, (bench: Bench, held: Held) => Promise<void>>> = {
  start: late({ kind: 'start' }),
  step: late({ kind: 'step', name: 'late', n: 1 }),
  'implicit commit': late({ kind: 'commit' }),
  'retryable failure': late({ kind: 'fail', failure: failureOf('transient') }),
  'terminal failure': late({ kind: 'fail', failure: failureOf('terminal') }),
  release: late({ kind: 'release' }),
  suspend: late({ kind: 'suspend', runAt: 4_000_000_000_000 }),
  'cancel by the holder': late({ kind: 'cancel' }),
  commit: async (bench, held) => {
    let ran = 0
    const answer = await bench.store.commit(held, () => {
      ran++
      return '"late"'
    })
    refused(answer, StaleFence)
    assert.equal(ran, 0, 'the function of a late commit does not run')
  },
  'commit with an effect': async (bench, held) => {
    const known = await bench.store.listEffects({})
    const answer = await bench.store.commit(held, (tx) => {
      tx.effect('late', '1')
      return '"late"'
    })
    refused(answer, StaleFence)
    assert.deepEqual(await bench.store.listEffects({}), known)
  },
  heartbeat: async (bench, held) => {
    const beat = { ref: held.ref, fence: fenceOf(held) }
    const answer = await bench.store.heartbeat([beat], LEASE_MS)
    assert.deepEqual(answer, { lost: [held.ref], cancelling: [] })
  },
}

function late(report: Report) {
  return async (bench: Bench, held: Held) => {
    refused(await bench.settle(held, report, '"late"'), StaleFence)
  }
}

/** Every late verb after every loss. */
export const fenceCases: Cases = {
  ...Object.fromEntries(
    Object.entries(LOSSES).flatMap(([loss, lose]) =>
      Object.entries(VERBS).map(([verb, attempt]) => [
        `${verb} is refused after ${loss}`,
        async (bench: Bench) => {
          const held = await bench.hold({ policy: policyWith() })
          await lose(bench, held)
          const payloads = await bench.store.payloads(held.job.id)
          await bench.assertUntouched(held.job.id, () => attempt(bench, held))
          assert.deepEqual(await bench.store.payloads(held.job.id), payloads)
          assert.deepEqual(await bench.store.steps(held.ref), [])
        },
      ]),
    ),
  ),

  ...Object.fromEntries(
    Object.entries(VERBS).map(([verb, attempt]) => [
      `${verb} under the fence of another claim of the same attempt is refused`,
      async (bench: Bench) => {
        const held = await bench.hold()
        const execution = held.job.execution && {
          ...held.job.execution,
          claim: bench.environment.ids.next(),
        }
        const forged = { ...held, job: { ...held.job, execution } }
        await bench.assertUntouched(held.job.id, () => attempt(bench, forged))
      },
    ]),
  ),

  'a handle of another job of the same claim moves neither of them': async (bench) => {
    await bench.enqueue()
    await bench.enqueue()
    const [one, other] = await bench.claim({ limit: 2 })
    assert.ok(one !== undefined && other !== undefined)
    const mixed = { ...one, ref: other.ref }
    for (const { job } of [one, other]) {
      await bench.assertUntouched(job.id, async () => {
        refused(await bench.settle(mixed, { kind: 'commit' }, '1'), JobNotFound)
        refused(await bench.settle(mixed, { kind: 'release' }), JobNotFound)
        refused(await bench.store.commit(mixed, () => '1'), JobNotFound)
      })
    }
  },

  'whoever holds a job that was removed learns that it is gone': async (bench) => {
    const held = await bench.hold()
    done(await bench.applyCommand(held.job.id, { kind: 'cancel' }))
    assert.equal(await bench.store.prune({ endedBefore: bench.store.now() + 1, limit: 1 }), 1)
    await bench.enqueue()
    refused(await bench.settle(held, { kind: 'commit' }, '1'), JobNotFound)
    refused(await bench.store.commit(held, () => '1'), JobNotFound)
    const beat = { ref: held.ref, fence: fenceOf(held) }
    assert.deepEqual((await bench.store.heartbeat([beat], LEASE_MS)).lost, [held.ref])
  },

  'a holder whose lease was renewed is not late': async (bench) => {
    const held = await bench.hold()
    await bench.advance(LEASE_MS - 1)
    await bench.store.heartbeat([{ ref: held.ref, fence: fenceOf(held) }], LEASE_MS)
    await bench.advance(LEASE_MS - 1)
    done(await bench.settle(held, { kind: 'commit' }, '1'))
  },
}
