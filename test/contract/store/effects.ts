/** What dispatchers that know some types get of the outbox, and what operators see and do there. */
import assert from 'node:assert/strict'
import { CommandInvalid, PawlError } from '../../../src/core/errors.ts'
import { EFFECTS_MAX } from '../../../src/core/job/checks.ts'
import type {
  EffectFilter,
  EffectInfo,
  EffectReport,
  HeldEffect,
  Requester,
  Store,
} from '../../../src/stores/contract/store.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, one } from './bench.ts'

const EFFECT_LEASE_MS = 1000

const take = (bench: Bench, types?: readonly string[], limit = 100): Promise<HeldEffect[]> =>
  bench.store.claimEffects({ limit, leaseMs: EFFECT_LEASE_MS, ...(types && { types }) })

const delivered = (effect: HeldEffect): EffectReport => ({ kind: 'delivered', effect })

/** The id of a job of this type that has committed and declared effects of these names. */
async function committed(bench: Bench, type: string, names: readonly string[]): Promise<string> {
  const held = await bench.hold({ type })
  await bench.store.commit(held, (tx) => {
    for (const [i, name] of names.entries()) tx.effect(name, `{"i":${i}}`)
    return '1'
  })
  return held.job.id
}

/** Takes all effects of a type, and parks them. */
async function parkAll(bench: Bench, type: string): Promise<HeldEffect[]> {
  const effects = await take(bench, [type])
  const reports = effects.map((effect) => ({ kind: 'parked', effect, error: 'gone' }) as const)
  assert.ok((await bench.store.settleEffects(reports)).every(Boolean))
  return effects
}

async function listAll(store: Store, filter: EffectFilter, limit: number): Promise<EffectInfo[]> {
  const effects: EffectInfo[] = []
  let after: string | undefined
  do {
    const page = await store.listEffects(filter, { limit, ...(after !== undefined && { after }) })
    assert.ok(page.items.length <= limit)
    effects.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return effects
}

const keysOf = (effects: readonly { readonly key: string }[]) => effects.map(({ key }) => key)

/** Who delivers what. */
export const effectTypeCases: Cases = {
  'a dispatcher gets the effects of the types that it knows, and no others': async (bench) => {
    const [a, b] = [await committed(bench, 'a', ['x', 'y']), await committed(bench, 'b', ['x'])]
    await committed(bench, 'c', ['x'])
    assert.deepEqual(await take(bench, []), [])
    assert.deepEqual(await take(bench, ['unknown', 'nul\0', '\ud800', '']), [])
    assert.deepEqual(keysOf(await take(bench, ['b', 'b', 'a'])), [
      `${a}/x/1`,
      `${a}/y/1`,
      `${b}/x/1`,
    ])
    assert.equal(one(await take(bench)).jobType, 'c')
  },

  'of several types those that are longest due come first': async (bench) => {
    for (const type of ['c', 'a', 'b']) {
      await committed(bench, type, ['x', 'x'])
      await bench.advance(1)
    }
    const taken = await take(bench, ['a', 'b', 'c'], 3)
    assert.deepEqual(
      taken.map(({ jobType }) => jobType),
      ['c', 'c', 'a'],
    )
    const { runAt } = one(
      await listAll(bench.store, { jobId: (taken[2] as HeldEffect).jobId }, 1).then((effects) =>
        effects.filter(({ tries }) => tries === 1),
      ),
    )
    assert.equal(runAt, bench.store.now() + EFFECT_LEASE_MS)
  },

  'an effect that is given back untried costs no try, and waits for its time': async (bench) => {
    await committed(bench, 'a', ['x'])
    const effect = one(await take(bench))
    const runAt = bench.store.now() + 500
    const report: EffectReport = { kind: 'released', effect, runAt, error: 'unknown here' }
    assert.deepEqual(await bench.store.settleEffects([report, report]), [true, false])
    const { items } = await bench.store.listEffects({})
    assert.deepEqual(
      items.map(({ tries, error, state, runAt: at }) => [tries, error, state, at]),
      [[0, 'unknown here', 'pending', runAt]],
    )
    await bench.advance(499)
    assert.deepEqual(await take(bench), [])
    await bench.advance(1)
    assert.equal(one(await take(bench)).tries, 1)
  },

  'a commit declares no more effects than it may, and says so at once': async (bench) => {
    const held = await bench.hold()
    const failing = bench.store.commit(held, (tx) => {
      for (let i = 0; i < EFFECTS_MAX; i++) tx.effect('mail', '1')
      assert.throws(() => tx.effect('mail', '1'), CommandInvalid)
      throw new Error('enough')
    })
    await assert.rejects(failing, /enough/)
  },

  'a redrive leaves alone what is being delivered': async (bench) => {
    const id = await committed(bench, 'a', ['x'])
    const effect = one(await take(bench))
    done(await bench.applyCommand(id, { kind: 'redrive' }, OPERATOR))
    assert.deepEqual(await take(bench), [])
    assert.deepEqual(await bench.store.settleEffects([delivered(effect)]), [true])
    assert.equal((await bench.job(id)).outcome, 'succeeded')
  },
}

/** What operators see. */
export const effectListCases: Cases = {
  'a list tells all of an effect, in each of its states': async (bench) => {
    const id = await committed(bench, 'a', ['sent', 'bad', 'waits'])
    const [sent, bad] = await take(bench, ['a'], 2)
    assert.ok(sent && bad)
    await bench.advance(7)
    const now = bench.store.now()
    await bench.store.settleEffects([
      delivered(sent),
      { kind: 'parked', effect: bad, error: 'no such address' },
    ])
    const { items, ...rest } = await bench.store.listEffects({})
    assert.deepEqual(rest, {})
    const common = { jobId: id, jobType: 'a', n: 1 }
    const runAt = now - 7
    assert.deepEqual(items, [
      {
        ...common,
        ...{ key: `${id}/waits/1`, name: 'waits', state: 'pending', tries: 0, runAt },
        payload: '{"i":2}',
      },
      {
        ...common,
        ...{ key: `${id}/bad/1`, name: 'bad', state: 'parked', tries: 1, runAt: now },
        error: 'no such address',
        payload: '{"i":1}',
      },
      {
        ...common,
        ...{ key: `${id}/sent/1`, name: 'sent', state: 'delivered', tries: 1, runAt: now },
        payload: '{"i":0}',
      },
    ])
  },

  'a list is filtered by job, state and type, and its pages miss and repeat nothing': async (
    bench,
  ) => {
    const first = await committed(bench, 'a', ['x', 'x', 'x', 'x', 'x'])
    await parkAll(bench, 'a')
    const second = await committed(bench, 'b', ['y', 'y'])
    const third = await committed(bench, 'a', ['z'])
    const all = await listAll(bench.store, {}, 100)
    assert.deepEqual(keysOf(all), [
      `${third}/z/1`,
      ...[2, 1].map((n) => `${second}/y/${n}`),
      ...[5, 4, 3, 2, 1].map((n) => `${first}/x/${n}`),
    ])
    const filters: readonly EffectFilter[] = [
      {},
      { jobId: first },
      { state: 'parked' },
      { state: 'pending' },
      { state: 'delivered' },
      { type: 'a' },
      { type: 'a', state: 'pending' },
      { type: 'b', state: 'parked' },
      { jobId: second, state: 'pending', type: 'b' },
      { jobId: second, type: 'a' },
    ]
    for (const filter of filters) {
      const wanted = all.filter(
        ({ jobId, state, jobType }) =>
          jobId === (filter.jobId ?? jobId) &&
          state === (filter.state ?? state) &&
          jobType === (filter.type ?? jobType),
      )
      for (const limit of [1, 2, 3, 100]) {
        const listed = await listAll(bench.store, filter, limit)
        assert.deepEqual(listed, wanted, JSON.stringify({ filter, limit }))
      }
    }
  },

  'a list of what cannot be is empty, and a place that was never given out is refused': async (
    bench,
  ) => {
    await committed(bench, 'a', ['x'])
    for (const jobId of ['x', "' OR 1=1"]) {
      assert.deepEqual(await bench.store.listEffects({ jobId }), { items: [] })
      assert.deepEqual(await bench.store.listEffects({ type: jobId }), { items: [] })
    }
    for (const jobId of ['', '\0', '\ud800', 7 as never, ['x'] as never, null as never]) {
      await assert.rejects(bench.store.listEffects({ jobId }), { code: 'E_COMMAND_INVALID' })
      await assert.rejects(bench.store.listEffects({ type: jobId }), { code: 'E_COMMAND_INVALID' })
    }
    for (const state of ['lost', 'constructor', undefined as never]) {
      const filter = { state: state as 'parked' }
      await assert.rejects(bench.store.listEffects(filter), { code: 'E_COMMAND_INVALID' })
    }
    assert.deepEqual(await bench.store.listEffects({}, { limit: 0 }), { items: [] })
    await assert.rejects(bench.store.listEffects({}, { after: '1; DROP' }), PawlError)
    await assert.rejects(bench.store.listEffects({}, { limit: -1 }), PawlError)
  },
}

/** What operators do. */
export const effectRetryCases: Cases = {
  'a parked effect that is retried is due at once, with fresh tries, and a fact says who asked':
    async (bench) => {
      const id = await committed(bench, 'a', ['x', 'deep/er', 'x'])
      await parkAll(bench, 'a')
      const keys = [`${id}/x/2`, `${id}/deep/er/1`]
      assert.deepEqual(await bench.store.retryEffects(keys, OPERATOR), [true, true])
      const again = await take(bench)
      assert.deepEqual(
        again.map(({ key, tries }) => [key, tries]),
        [
          [`${id}/deep/er/1`, 1],
          [`${id}/x/2`, 1],
        ],
      )
      const facts = (await bench.store.facts(id)).slice(-2)
      assert.deepEqual(
        facts.map(({ trigger, actor, operator, note, metadata }) => [
          trigger,
          actor,
          operator,
          note,
          metadata,
        ]),
        ['x/2', 'deep/er/1'].map((effect) => [
          'redrive',
          'operator',
          OPERATOR.operator,
          OPERATOR.note,
          { effect },
        ]),
      )
      await bench.store.settleEffects(again.map(delivered))
      assert.equal((await bench.job(id)).outcome, null, 'the third is still parked')
      assert.deepEqual(await bench.store.retryEffects([`${id}/x/1`], OPERATOR), [true])
      await bench.store.settleEffects((await take(bench)).map(delivered))
      assert.equal((await bench.job(id)).outcome, 'succeeded')
    },

  'an effect that waits for its next try is retried at once': async (bench) => {
    await committed(bench, 'a', ['x'])
    const effect = one(await take(bench))
    const runAt = bench.store.now() + 60_000
    await bench.store.settleEffects([{ kind: 'retry', effect, runAt, error: 'no answer' }])
    assert.deepEqual(await bench.store.retryEffects([effect.key], OPERATOR), [true])
    assert.deepEqual((await take(bench))[0]?.tries, 1)
  },

  'what is delivered, under way, due already or not there is not retried, and leaves no fact':
    async (bench) => {
      const id = await committed(bench, 'a', ['sent', 'held'])
      const other = await committed(bench, 'b', ['due'])
      const [sent, held] = await take(bench, ['a'])
      assert.ok(sent && held)
      await bench.store.settleEffects([delivered(sent)])
      const missing = [`${id}/sent/2`, `${bench.environment.ids.next()}/sent/1`, `${id}/x\0/1`]
      const hostile = ['', '/', id, `${id}/sent`, `${id}/sent/-1`, `${id}/sent/99999999999`]
      const keys = [sent.key, held.key, `${other}/due/1`, ...missing, ...hostile]
      for (const job of [id, other]) {
        await bench.assertUntouched(job, async () => {
          const answers = await bench.store.retryEffects(keys, OPERATOR)
          assert.deepEqual(answers, Array(keys.length).fill(false))
        })
      }
      await bench.store.settleEffects([delivered(held)])
      assert.equal((await bench.job(id)).outcome, 'succeeded')
      assert.deepEqual(await bench.store.retryEffects([held.key], OPERATOR), [false])
    },

  'an effect whose dispatcher went silent is retried once its lease is over': async (bench) => {
    await committed(bench, 'a', ['x'])
    const late = one(await take(bench))
    await bench.advance(EFFECT_LEASE_MS)
    assert.deepEqual(await bench.store.retryEffects([late.key], OPERATOR), [true])
    assert.deepEqual(await bench.store.settleEffects([delivered(late)]), [false])
    assert.equal(one(await take(bench)).tries, 1)
  },

  'only a named operator with a note can retry, and each effect once': async (bench) => {
    const id = await committed(bench, 'a', ['x'])
    const [effect] = await parkAll(bench, 'a')
    assert.ok(effect)
    const requesters: Requester[] = [
      CLIENT,
      { actor: 'operator' },
      { actor: 'operator', operator: 'ann' },
      { actor: 'operator', note: 'why not' },
      { ...OPERATOR, operator: ' ' },
    ]
    await bench.assertUntouched(id, async () => {
      for (const requester of requesters) {
        await assert.rejects(bench.store.retryEffects([effect.key], requester), CommandInvalid)
      }
    })
    const twice = [effect.key, effect.key]
    assert.deepEqual(await bench.store.retryEffects(twice, OPERATOR), [true, false])
    assert.deepEqual(await bench.store.retryEffects([], OPERATOR), [])
  },
}
