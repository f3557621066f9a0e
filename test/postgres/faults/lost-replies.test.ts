// The server did what it was asked, and its answer was lost with the connection. Every verb finds
// out what became of it, does nothing twice, and answers as if nothing had happened.

import type { CommitTx, Held, Store, StoreTx } from 'pawl/postgres'
import { leased, standard } from 'pawl/rules'
import type { Client } from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { checkStore } from '../../contract/store/check.ts'
import { connected } from '../../support/postgres/clients.ts'
import { freshSchema, sharedPostgres } from '../../support/postgres/databases.ts'
import type { TcpProxy } from '../../support/tcp-proxy.ts'
import {
  accepted,
  beatOf,
  failed,
  hold,
  item,
  makeUserRows,
  OPERATOR,
  open,
  proxyTo,
  request,
  success,
  triggersOf,
  userRows,
} from './bed.ts'

/** The end of an answer: the server waits for the next message, outside of any transaction. */
const READY = /Z\0{3}.I/s
const IN_TRANSACTION = /Z\0{3}.T/s
const COMMIT = /COMMIT\0/

interface Bed {
  /** Reaches the server through the proxy. */
  readonly store: Store
  /** Reaches it directly. */
  readonly other: Store
  readonly client: Client
  readonly proxy: TcpProxy
  readonly schema: string
}

let bed: Bed

beforeEach(async () => {
  const url = sharedPostgres()
  const schema = freshSchema(url)
  const proxy = await proxyTo(url)
  const other = await open(url, { schema })
  const client = await connected(url)
  await makeUserRows(client, schema)
  bed = { store: await open(proxy.through(url), { schema }), other, client, proxy, schema }
})

/** Does something while the answer to what matches is lost, and waits until it was. */
async function losing<T>(to: RegExp, act: () => Promise<T>, reply = READY): Promise<T> {
  const lost = bed.proxy.loseReply({ to, reply })
  const result = await act()
  await lost
  return result
}

/** The function of a commit, which counts its calls. */
function counting(held: Held) {
  const work = Object.assign(
    async (tx: CommitTx) => {
      work.calls++
      await tx.query(`INSERT INTO ${bed.schema}.user_rows VALUES ($1)`, [held.job.id])
      return '"user"'
    },
    { calls: 0 },
  )
  return work
}

async function heldNow(store: Store): Promise<number> {
  return (await store.counts()).lanes.held
}

describe('a statement of its own whose answer is lost', () => {
  it.each([{ key: undefined }, { key: 'order-1' }])(
    'enqueue answers "created" and leaves one job ($key)',
    async ({ key }) => {
      const one = item(key === undefined ? {} : { key })
      const answers = await losing(new RegExp(one.command.jobId), () => bed.store.enqueue([one]))
      expect(answers).toMatchObject([{ kind: 'created', job: { id: one.command.jobId } }])
      expect(await bed.other.list({})).toMatchObject({ items: [{ id: one.command.jobId }] })
      expect(await triggersOf(bed.other, one.command.jobId)).toEqual(['create'])
      await checkStore(bed.other)
    },
  )

  it('enqueue answers each of several callers who shared the statement', async () => {
    const items = Array.from({ length: 20 }, () => item())
    const answers = await losing(new RegExp(items[0]?.command.jobId ?? ''), () =>
      Promise.all(items.map((one) => bed.store.enqueue([one]))),
    )
    expect(answers.flat().map(({ kind }) => kind)).toEqual(items.map(() => 'created'))
    expect((await bed.other.counts()).lanes.ready).toBe(20)
  })

  it('enqueue still tells a key that was taken before from one that it took itself', async () => {
    await accepted(bed.other, [item({ key: 'old' })])
    const items = [item({ key: 'old' }), item({ key: 'new' })]
    const answers = await losing(new RegExp(items[1]?.command.jobId ?? ''), () =>
      bed.store.enqueue(items),
    )
    expect(answers.map(({ kind }) => kind)).toEqual(['existing', 'created'])
  })

  it('settle answers "done", with one commit', async () => {
    const held = await hold(bed.store)
    const { answers } = await losing(new RegExp(held.job.id), () =>
      bed.store.settle([success(held)]),
    )
    expect(answers).toMatchObject([{ kind: 'done', job: { state: 'succeeded' } }])
    expect(await triggersOf(bed.other, held.job.id)).toEqual(['create', 'claim', 'commit'])
    await checkStore(bed.other)
  })

  it('a step is remembered once, and said to be there', async () => {
    const held = await hold(bed.store)
    const command = { kind: 'step', fence: beatOf(held).fence, name: 'a', n: 1 } as const
    const report = { held, command, payload: '"first"' }
    const { answers } = await losing(/WITH done/, () => bed.store.settle([report]))
    expect(answers).toMatchObject([{ kind: 'same' }])
    expect(await bed.other.steps(held.ref)).toEqual([{ name: 'a', n: 1, payload: '"first"' }])
    expect(await triggersOf(bed.other, held.job.id)).toEqual(['create', 'claim', 'step'])
    await checkStore(bed.other)
  })

  it.each([{ queues: ['next'] }, { queues: ['next', 'main'] }, {}])(
    'settle and claim answers "done", and gives what it claimed ($queues)',
    async (queues) => {
      const held = await hold(bed.store)
      const ids = await accepted(bed.store, [item({ queue: 'next' }), item({ queue: 'next' })])
      const next = request({ worker: 'next-worker', limit: 2, ...queues })
      const { answers, claimed } = await losing(/next-worker/, () =>
        bed.store.settle([success(held)], next),
      )
      expect(answers).toMatchObject([{ kind: 'done' }])
      expect(claimed.map(({ job }) => job.id)).toEqual(ids)
      expect(await triggersOf(bed.other, held.job.id)).toEqual(['create', 'claim', 'commit'])
      for (const id of ids) expect(await triggersOf(bed.other, id)).toEqual(['create', 'claim'])
      await checkStore(bed.other)
    },
  )

  it('claim gives its jobs, which nobody has to wait for until they expire', async () => {
    const ids = await accepted(bed.store, [item(), item(), item()])
    const asked = request({ worker: 'lost-worker', limit: 2 })
    const held = await losing(/lost-worker/, () => bed.store.claim(asked))
    expect(held.map(({ job }) => job.id)).toEqual(ids.slice(0, 2))
    expect(await heldNow(bed.other)).toBe(2)
    expect(await bed.other.heartbeat(held.map(beatOf), 30_000)).toEqual({
      lost: [],
      cancelling: [],
    })
    expect(held.map(({ input }) => input)).toEqual(['{"n":1}', '{"n":1}'])
    const { answers } = await bed.store.settle(held.map(success))
    expect(answers.map(({ kind }) => kind)).toEqual(['done', 'done'])
    await checkStore(bed.other)
  })
})

describe('a transaction whose answer to COMMIT is lost', () => {
  it('redrive is done once, and answered "done"', async () => {
    const held = await hold(bed.store)
    await bed.store.settle([failed(held)])
    const answers = await losing(COMMIT, () =>
      bed.store.applyCommand([held.job.id], { kind: 'redrive' }, OPERATOR),
    )
    expect(answers).toMatchObject([{ kind: 'done', job: { state: 'queued' } }])
    const triggers = await triggersOf(bed.other, held.job.id)
    expect(triggers.filter((trigger) => trigger === 'redrive')).toHaveLength(1)
    await checkStore(bed.other)
  })

  it('a new due time, which could be set again and again, is set once', async () => {
    const [id] = (await accepted(bed.store, [item()])) as [string]
    const answers = await losing(COMMIT, () =>
      bed.store.applyCommand(
        [id],
        { kind: 'reschedule', runAt: bed.store.now() + 60_000 },
        OPERATOR,
      ),
    )
    expect(answers).toMatchObject([{ kind: 'done' }])
    expect(await triggersOf(bed.other, id)).toEqual(['create', 'reschedule'])
  })

  it('a replaced input is replaced once', async () => {
    const [id] = (await accepted(bed.store, [item({ key: 'order-1' })])) as [string]
    const again = { ...item({ key: 'order-1' }), input: '2', onConflict: 'replace' } as const
    const answers = await losing(COMMIT, () => bed.store.enqueue([again]))
    expect(answers).toMatchObject([{ kind: 'replaced', job: { id } }])
    expect(await triggersOf(bed.other, id)).toEqual(['create', 'replace'])
    expect(await bed.other.payloads(id)).toMatchObject({ input: '2' })
  })

  it('cancel is done once', async () => {
    const [id] = (await accepted(bed.store, [item()])) as [string]
    const answers = await losing(COMMIT, () => bed.store.cancel([id], OPERATOR))
    expect(answers).toMatchObject([{ kind: 'done', job: { state: 'cancelled' } }])
    expect(await triggersOf(bed.other, id)).toEqual(['create', 'cancel'])
  })

  it('recover takes a job back once, and says so', async () => {
    const held = await hold(bed.store, { leaseMs: 1 })
    await expect.poll(() => bed.other.now()).toBeGreaterThan(held.job.execution?.leaseUntil ?? 0)
    const answers = await losing(COMMIT, () => bed.store.recover(10))
    expect(answers).toMatchObject([{ kind: 'done', job: { id: held.job.id } }])
    expect(await triggersOf(bed.other, held.job.id)).toEqual(['create', 'claim', 'expire'])
  })

  it.each([standard, leased])('promote says how many became ready ($name)', async (lifecycle) => {
    const runAt = bed.store.now() + 200
    await accepted(bed.store, [{ ...item({ runAt }), lifecycle }])
    await expect.poll(() => bed.store.now()).toBeGreaterThan(runAt)
    expect(await losing(COMMIT, () => bed.store.promote(10))).toBe(1)
    expect((await bed.other.counts()).lanes.ready).toBe(1)
  })

  it('prune says how many it removed', async () => {
    const held = await hold(bed.store)
    await bed.store.settle([success(held)])
    const endedBefore = bed.store.now() + 60_000
    expect(await losing(COMMIT, () => bed.store.prune({ endedBefore, limit: 10 }))).toBe(1)
    const { rows } = await bed.client.query(`SELECT jobs FROM ${bed.schema}.pruned`)
    expect(rows).toEqual([{ jobs: 1 }])
  })

  it('a delivery is recorded, and is not called lost', async () => {
    const held = await hold(bed.store)
    await bed.store.commit(held, (tx) => {
      for (const name of ['first', 'second']) tx.effect(name, '1')
      return '1'
    })
    const [first, second] = await bed.store.claimEffects({ limit: 2, leaseMs: 30_000 })
    if (first === undefined || second === undefined) throw new Error('effects are missing')
    for (const effect of [first, second]) {
      const report = { kind: 'delivered', effect } as const
      expect(await losing(COMMIT, () => bed.store.settleEffects([report]))).toEqual([true])
    }
    expect(await bed.other.get(held.job.id)).toMatchObject({ state: 'succeeded' })
    await checkStore(bed.other)
  })

  it('effects that were taken are given, and not left until their lease is over', async () => {
    const held = await hold(bed.store)
    await bed.store.commit(held, (tx) => {
      for (const name of ['first', 'second', 'third']) tx.effect(name, '1')
      return '1'
    })
    const { type } = held.job
    for (const types of [[type], undefined]) {
      const request = { limit: 1, leaseMs: 30_000, ...(types && { types }) }
      const taken = await losing(/outbox SET claim/, () => bed.store.claimEffects(request))
      expect(taken).toMatchObject([{ tries: 1 }])
      expect((await bed.other.listEffects({ state: 'pending' })).items).toContainEqual(
        expect.objectContaining({ key: taken[0]?.key, tries: 1 }),
      )
      await bed.store.settleEffects(taken.map((effect) => ({ kind: 'delivered', effect })))
    }
    const { items } = await bed.other.listEffects({ jobId: held.job.id })
    expect(items.map(({ name, tries }) => [name, tries])).toEqual([
      ['third', 0],
      ['second', 1],
      ['first', 1],
    ])
  })

  it('a retry of an effect is one fact', async () => {
    const held = await hold(bed.store)
    await bed.store.commit(held, (tx) => {
      tx.effect('mail', '1')
      return '1'
    })
    const [effect] = await bed.store.claimEffects({ limit: 1, leaseMs: 30_000 })
    if (effect === undefined) throw new Error('the effect is missing')
    await bed.store.settleEffects([{ kind: 'parked', effect, error: 'gone' }])
    const retried = await losing(COMMIT, () => bed.store.retryEffects([effect.key], OPERATOR))
    expect(retried).toEqual([true])
    const triggers = await triggersOf(bed.other, held.job.id)
    expect(triggers).toEqual(['create', 'claim', 'commit', 'redrive'])
    await checkStore(bed.other)
  })

  it('a failure is recorded once, and what was claimed with it is given', async () => {
    const held = await hold(bed.store)
    const ids = await accepted(bed.store, [item({ queue: 'next' })])
    const { answers, claimed } = await losing(COMMIT, () =>
      bed.store.settle([failed(held)], request({ queues: ['next'] })),
    )
    expect(answers).toMatchObject([{ kind: 'done', job: { state: 'failed' } }])
    expect(claimed.map(({ job }) => job.id)).toEqual(ids)
    expect(await triggersOf(bed.other, held.job.id)).toEqual(['create', 'claim', 'fail'])
    await checkStore(bed.other)
  })

  it('what was claimed with a refused report is given, and not left to expire', async () => {
    const held = await hold(bed.store)
    await bed.other.settle([failed(held)])
    const ids = await accepted(
      bed.store,
      Array.from({ length: 4 }, () => item({ queue: 'next' })),
    )
    const { answers, claimed } = await losing(COMMIT, () =>
      bed.store.settle([failed(held, 'transient')], request({ queues: ['next'], limit: 2 })),
    )
    expect(answers).toMatchObject([{ kind: 'rejected' }])
    expect(claimed.map(({ job }) => job.id)).toEqual(ids.slice(0, 2))
    expect(await heldNow(bed.other)).toBe(2)
  })
})

describe('the commit of a user, whose connection breaks', () => {
  it('after COMMIT has reached the server: "done", and the function ran once', async () => {
    const held = await hold(bed.store)
    const work = counting(held)
    const answer = await losing(COMMIT, () => bed.store.commit(held, work))
    expect(answer).toMatchObject({ kind: 'done', result: '"user"', job: { state: 'succeeded' } })
    expect(work.calls).toBe(1)
    expect(await userRows(bed.client, bed.schema)).toEqual([held.job.id])
    expect(await triggersOf(bed.other, held.job.id)).toEqual(['create', 'claim', 'commit'])
    await checkStore(bed.other)
  })

  it('before the function: it is tried again, and the function runs once', async () => {
    const held = await hold(bed.store)
    const work = counting(held)
    const answer = await losing(/BEGIN/, () => bed.store.commit(held, work), IN_TRANSACTION)
    expect(answer).toMatchObject({ kind: 'done' })
    expect(work.calls).toBe(1)
    expect(await userRows(bed.client, bed.schema)).toEqual([held.job.id])
  })

  it('between the function and COMMIT: all is rolled back, and a later try commits', async () => {
    const held = await hold(bed.store)
    const work = counting(held)
    const cut = bed.store.commit(held, async (tx) => {
      const result = await work(tx)
      bed.proxy.cut()
      return result
    })
    await expect(cut).rejects.toMatchObject({ code: 'E_STORE_UNAVAILABLE' })
    await expectCommittable(held)
  })

  it('inside the function: all is rolled back, typed, and a later try commits', async () => {
    const held = await hold(bed.store)
    const cut = bed.store.commit(held, async (tx) => {
      await tx.query(`INSERT INTO ${bed.schema}.user_rows VALUES ($1)`, [held.job.id])
      bed.proxy.cut()
      await tx.query('SELECT 1')
      return '"never"'
    })
    await expect(cut).rejects.toMatchObject({ code: 'E_STORE_UNAVAILABLE' })
    await expectCommittable(held)
  })

  it('inside the function that hides it: nothing is committed all the same', async () => {
    const held = await hold(bed.store)
    const cut = bed.store.commit(held, async (tx) => {
      await tx.query(`INSERT INTO ${bed.schema}.user_rows VALUES ($1)`, [held.job.id])
      bed.proxy.cut()
      await tx.query('SELECT 1').catch(() => {})
      return '"hidden"'
    })
    await expect(cut).rejects.toMatchObject({ code: 'E_STORE_UNAVAILABLE' })
    await expectCommittable(held)
  })

  it('inside the function that throws an error of its own: it is still the store’s', async () => {
    const held = await hold(bed.store)
    const cut = bed.store.commit(held, async (tx) => {
      await tx.query(`INSERT INTO ${bed.schema}.user_rows VALUES ($1)`, [held.job.id])
      bed.proxy.cut()
      await tx.query('SELECT 1').catch(() => {
        throw new TypeError('the order could not be booked')
      })
      return '"never"'
    })
    const details = { outcome: 'none' }
    await expect(cut).rejects.toMatchObject({ code: 'E_STORE_UNAVAILABLE', details })
    await expectCommittable(held)
  })

  it('inside the function that uses the driver’s handle: it is still the store’s', async () => {
    const held = await hold(bed.store)
    const cut = bed.store.commit(held, async (tx) => {
      const client = tx.raw as { query(text: string): Promise<unknown> }
      bed.proxy.cut()
      await client.query('SELECT 1')
      return '"never"'
    })
    await expect(cut).rejects.toMatchObject({ code: 'E_STORE_UNAVAILABLE' })
    await expectCommittable(held)
  })

  /** Nothing was left of the broken commit, and the same holder commits now. */
  async function expectCommittable(held: Held): Promise<void> {
    expect(await userRows(bed.client, bed.schema)).toEqual([])
    expect(await triggersOf(bed.other, held.job.id)).toEqual(['create', 'claim'])
    const work = counting(held)
    expect(await bed.store.commit(held, work)).toMatchObject({ kind: 'done' })
    expect(work.calls).toBe(1)
    expect(await userRows(bed.client, bed.schema)).toEqual([held.job.id])
    await checkStore(bed.other)
  }
})

describe('a transaction of the user on a connection of the store, which breaks', () => {
  const ROW = '00000000-0000-7000-9000-000000000009'
  const one = () => item({ queue: 'joined' })

  /** Writes a row and a job, and counts its calls. */
  function joining() {
    const work = Object.assign(
      async (tx: StoreTx) => {
        work.calls++
        await tx.query(`INSERT INTO ${bed.schema}.user_rows VALUES ($1)`, [ROW])
        await bed.store.enqueue([one()], { tx })
        return 'value'
      },
      { calls: 0 },
    )
    return work
  }

  it('after COMMIT: the value is returned, and the function ran once', async () => {
    const work = joining()
    expect(await losing(COMMIT, () => bed.store.transaction(work))).toBe('value')
    expect(work.calls).toBe(1)
    expect(await userRows(bed.client, bed.schema)).toEqual([ROW])
    expect((await bed.other.counts()).lanes.ready).toBe(1)
    await checkStore(bed.other)
  })

  it('before COMMIT: everything is rolled back, with a typed error', async () => {
    const work = joining()
    const cut = bed.store.transaction(async (tx) => {
      await work(tx)
      bed.proxy.cut()
    })
    await expect(cut).rejects.toMatchObject({ code: 'E_STORE_UNAVAILABLE' })
    expect(await userRows(bed.client, bed.schema)).toEqual([])
    expect((await bed.other.counts()).lanes.ready).toBe(0)
    expect(await bed.store.transaction(work)).toBe('value')
    expect(await userRows(bed.client, bed.schema)).toEqual([ROW])
  })
})
