// How the doctor sees and mends a store: the same on both kinds. What it decides is not its affair
// here; the mendings of these tests are made by hand.
import type { Job } from 'pawl'
import { FACT_CODES } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import type { Mending, StoredJob } from '../../src/stores/contract/examination.ts'
import { toJob } from '../../src/stores/rows.ts'
import { FACTS_MAX } from '../../src/stores/stored-jobs.ts'
import {
  allStoredJobs,
  type Examined,
  enqueue,
  fill,
  mendingOf,
  refOf,
  STORES,
  storedJobOf,
  succeeded,
} from './examined-stores.ts'

const BY = { operator: 'ann', note: 'because' }
const UNTOUCHED = ['jobs', 'ledger', 'outbox', 'quarantined', 'ended_counts']

async function jobOf({ store }: Examined, id: string): Promise<Job> {
  const found = await store.get(id)
  if (found === undefined) throw new Error(`there is no job ${id}`)
  return found
}

async function countRows({ sql }: Examined, table: string): Promise<number> {
  const [row] = await sql(`SELECT count(*) AS n FROM @${table}`)
  return Number(row?.n)
}

/** Everything that is kept of jobs. */
async function everything({ sql }: Examined) {
  const tables: Record<string, unknown> = {}
  for (const name of UNTOUCHED) tables[name] = await sql(`SELECT * FROM @${name}`)
  return tables
}

/** What can be compared with what was seen before or by others: handles can change. */
const identityOf = ({ ref, row, twins, facts, effects }: StoredJob) => ({
  ref,
  id: row?.id,
  twins: twins.length,
  facts: facts.map(({ seq, kind }) => [seq, kind]),
  effects: effects.map(({ name, n }) => [name, n]),
})

describe.each(STORES)('the stored jobs of $name', ({ open }) => {
  it('show every row of every job, once, whatever the length of a page', async () => {
    const examined = await open()
    const jobs = await fill(examined)
    const whole = await allStoredJobs(examined, 100)
    expect(whole.map(({ row }) => row?.id).sort()).toEqual(Object.values(jobs).sort())
    expect(whole.flatMap(({ facts }) => facts)).toHaveLength(await countRows(examined, 'ledger'))
    expect(whole.flatMap(({ effects }) => effects)).toHaveLength(2)
    for (const { row, machine, facts, twins } of whole) {
      if (row === null || machine === null) throw new Error('a job or its lifecycle is missing')
      expect(toJob(row, machine)).toEqual(await examined.store.get(row.id))
      expect(twins).toEqual([])
      expect(facts.map(({ seq }) => seq)).toEqual(facts.map((_, i) => i + 1))
      expect(facts.map(({ creates }) => creates)).toEqual(
        facts.map(({ kind }) => (kind === FACT_CODES.create ? row.id : null)),
      )
      expect(facts[0]?.payload).toBe('{"to":"ann"}')
    }
    for (const limit of [1, 2, 5, 6, 7]) {
      const pages = await allStoredJobs(examined, limit)
      expect(pages.map(identityOf)).toEqual(whole.map(identityOf))
    }
  })

  it('show facts and effects whose job is gone, wherever they stand', async () => {
    const examined = await open()
    const first = await succeeded(examined, 'first')
    const middle = [await enqueue(examined, 'a'), await succeeded(examined, 'middle')]
    const gone = [first, middle[1] as string, await succeeded(examined, 'last')]
    const refs = await Promise.all(gone.map((id) => refOf(examined, id)))
    for (const [i, id] of gone.entries()) {
      await examined.sql(`DELETE FROM @jobs WHERE id = '${id}'`)
      await examined.sql(`INSERT INTO @outbox (job, type, name, n, payload, run_at)
        VALUES ('${refs[i]}', 'mail', 'mail', 1, '{}', 1)`)
    }
    for (const limit of [1, 2, 100]) {
      const seen = await allStoredJobs(examined, limit)
      expect(seen).toHaveLength(4)
      for (const ref of refs) {
        expect(seen.find((one) => one.ref === ref)).toMatchObject({
          row: null,
          machine: null,
          facts: [{ seq: 1 }, { seq: 2 }, { seq: 3 }],
          effects: [{ name: 'mail', n: 1, state: 'pending' }],
        })
      }
    }
  })

  it('show a job with more facts than a page may hold whole', async () => {
    const examined = await open()
    const [small, large] = [await enqueue(examined, 'a'), await enqueue(examined, 'b')]
    await enqueue(examined, 'c')
    const ref = await refOf(examined, large)
    const tx = examined.refColumn === 'id' ? ['tx, ', '1, '] : ['', '']
    await examined.sql(`INSERT INTO @ledger (${tx[0]}job, seq, kind, at, path, actor)
      WITH RECURSIVE numbers (n) AS (
        SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n <= ${FACTS_MAX}
      )
      SELECT ${tx[1]}CAST('${ref}' AS ${examined.refColumn === 'id' ? 'uuid' : 'INTEGER'}),
        n, ${FACT_CODES.prioritise}, 1, 'queued', 'client' FROM numbers`)
    const seen = await allStoredJobs(examined, 100)
    expect(seen.map(({ row, facts }) => [row?.id === small, facts.length])).toEqual([
      [true, 1],
      [false, FACTS_MAX + 1],
      [false, 1],
    ])
  })
})

describe.each(STORES)('a mending on $name', ({ open }) => {
  it('makes another job of one that succeeded, and its guard stands afterwards', async () => {
    const examined = await open()
    const { store, environment, sql } = examined
    const id = await succeeded(examined, 'a')
    const before = await jobOf(examined, id)
    const mending = mendingOf(before, { priority: 7, queue: 'b' }, environment.clock.now())
    const ref = await refOf(examined, id)
    expect(await store.examination.mend(ref, () => mending, BY)).toBe(mending)
    expect(await jobOf(examined, id)).toEqual(mending.after.job)
    expect((await store.facts(id)).at(-1)).toEqual(mending.after.fact)
    await expect(sql(`UPDATE @jobs SET priority = 0 WHERE id = '${id}'`)).rejects.toThrow('P6')
    expect(await store.examination.drift()).toEqual([])
  })

  it('shows the job as it is inside, with the time of the store, and answers by it', async () => {
    const examined = await open()
    const { store, environment } = examined
    const id = await enqueue(examined, 'a')
    const seen = await storedJobOf(examined, id)
    environment.advance(1000)
    const shown: unknown[] = []
    const decide = (stored: StoredJob, now: number) => {
      shown.push([identityOf(stored), now])
      return undefined
    }
    expect(await store.examination.mend(seen.ref, decide, BY)).toBeUndefined()
    expect(shown).toEqual([[identityOf(seen), environment.clock.now()]])
  })

  it('writes nothing where nothing was decided, or nothing is there', async () => {
    const examined = await open()
    const { store } = examined
    const jobs = await fill(examined)
    const before = await everything(examined)
    for (const id of Object.values(jobs)) {
      const ref = await refOf(examined, id)
      expect(await store.examination.mend(ref, () => undefined, BY)).toBeUndefined()
    }
    const nobody = [environmentId(examined), 'nonsense', 0, -1]
    const never = (): Mending => {
      throw new Error('there was nothing to show')
    }
    for (const ref of nobody) {
      expect(await store.examination.mend(ref, never, BY)).toBeUndefined()
    }
    expect(await everything(examined)).toEqual(before)
  })

  it('takes rows aside whole, and their guards stand afterwards', async () => {
    const examined = await open()
    const { store, sql } = examined
    const jobs = await fill(examined)
    const seen = await storedJobOf(examined, jobs.delivering)
    const { refColumn } = examined
    const rows = {
      jobs: await sql(`SELECT * FROM @jobs WHERE id = '${jobs.delivering}'`),
      ledger: await sql(`SELECT * FROM @ledger WHERE job = '${seen.ref}' ORDER BY seq`),
      outbox: await sql(`SELECT * FROM @outbox WHERE job = '${seen.ref}' ORDER BY name`),
    }
    const decide = ({ row, facts, effects }: StoredJob): Mending => ({
      why: 'nonsense',
      aside: [
        ...facts.map(({ handle }) => ({ origin: 'ledger', handle }) as const),
        ...effects.map(({ handle }) => ({ origin: 'outbox', handle }) as const),
        { origin: 'jobs', handle: row?.handle ?? '' },
      ],
    })
    await store.examination.mend(seen.ref, decide, BY)
    expect(await store.get(jobs.delivering)).toBeUndefined()
    expect((await allStoredJobs(examined, 100)).map(({ ref }) => ref)).not.toContain(seen.ref)
    const kept = await sql('SELECT * FROM @quarantined ORDER BY number')
    const contents = (table: string) =>
      kept
        .filter(({ origin }) => String(origin).endsWith(table))
        .map(({ content }) => numbered(JSON.parse(String(content)) as object))
    for (const [table, own] of Object.entries(rows)) {
      expect(own.length, table).toBeGreaterThan(0)
      expect(contents(table), table).toEqual(own.map(numbered))
    }
    for (const row of kept) {
      const expected = { job: jobs.delivering, why: 'nonsense', operator: 'ann', note: 'because' }
      expect(row).toMatchObject(expected)
    }
    const ready = await refOf(examined, jobs.ready)
    await expect(sql(`DELETE FROM @jobs WHERE ${refColumn} = '${ready}'`)).rejects.toThrow('P1')
    await expect(sql(`DELETE FROM @ledger WHERE job = '${ready}'`)).rejects.toThrow('P8')
    expect(await store.examination.drift()).toEqual([])
  })

  it('takes a fact aside while its job stays, and repairs the job', async () => {
    const examined = await open()
    const { store, environment, sql } = examined
    const id = await enqueue(examined, 'a')
    const ref = await refOf(examined, id)
    const before = await jobOf(examined, id)
    const decide = ({ facts }: StoredJob) => {
      const aside = facts.map(({ handle }) => ({ origin: 'ledger', handle }) as const)
      return mendingOf(before, { priority: 3 }, environment.clock.now(), aside)
    }
    await store.examination.mend(ref, decide, BY)
    expect(await jobOf(examined, id)).toMatchObject({ priority: 3, seq: 2 })
    const { facts } = await storedJobOf(examined, id)
    expect(facts.map(({ seq, kind }) => [seq, kind])).toEqual([[2, FACT_CODES.repair]])
    await expect(sql(`DELETE FROM @ledger WHERE job = '${ref}'`)).rejects.toThrow('P8')
  })

  it('makes a row again that was lost', async () => {
    const examined = await open()
    const { store, environment, sql } = examined
    const id = await succeeded(examined, 'a')
    const ref = await refOf(examined, id)
    const lost = await jobOf(examined, id)
    await sql(`DELETE FROM @jobs WHERE id = '${id}'`)
    const decide = () => mendingOf(lost, {}, environment.clock.now())
    await store.examination.mend(ref, decide, BY)
    expect(await refOf(examined, id)).toBe(ref)
    expect(await jobOf(examined, id)).toEqual({ ...lost, seq: 4, updatedAt: store.now() })
    expect((await store.facts(id)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
  })

  it('keeps the row that it exchanges for another, where that was asked for', async () => {
    const examined = await open()
    const { store, environment } = examined
    const id = await enqueue(examined, 'a')
    const ref = await refOf(examined, id)
    const before = await jobOf(examined, id)
    const decide = ({ row }: StoredJob) => {
      const aside = [{ origin: 'jobs', handle: row?.handle ?? '' } as const]
      return mendingOf(before, { queue: 'b' }, environment.clock.now(), aside)
    }
    const mending = await store.examination.mend(ref, decide, BY)
    expect(await jobOf(examined, id)).toEqual(mending?.after?.job)
    expect(await refOf(examined, id)).toBe(ref)
    expect(await countRows(examined, 'quarantined')).toBe(1)
  })

  it('goes on where a guard is missing, and leaves it to be restored', async () => {
    const examined = await open()
    const { store, environment, sql, names } = examined
    const id = await succeeded(examined, 'a')
    const ref = await refOf(examined, id)
    const final = (await names.trigger()).find(({ name }) => name.endsWith('succeeded_is_final'))
    await sql(final?.drop ?? '')
    const mending = mendingOf(await jobOf(examined, id), { priority: 1 }, environment.clock.now())
    await store.examination.mend(ref, () => mending, BY)
    expect(await jobOf(examined, id)).toMatchObject({ priority: 1 })
    expect(await store.examination.drift()).toMatchObject([
      { kind: 'trigger', name: final?.name, problem: 'missing' },
    ])
  })

  it('leaves everything as it was where it fails half-way', async () => {
    const examined = await open()
    const { store, environment } = examined
    const id = await succeeded(examined, 'a')
    const ref = await refOf(examined, id)
    const before = await everything(examined)
    const job = await jobOf(examined, id)
    // The number of the fact is taken, which only the last statement finds out.
    const taken = { ...mendingOf(job, { priority: 1 }, environment.clock.now()) }
    const fact = { ...taken.after.fact, seq: 1 }
    const decide = ({ facts }: StoredJob): Mending => ({
      ...taken,
      aside: [{ origin: 'ledger', handle: facts[1]?.handle ?? '' }],
      after: { ...taken.after, fact },
    })
    await expect(store.examination.mend(ref, decide, BY)).rejects.toMatchObject({
      code: 'E_STORE_FAILED',
    })
    expect(await everything(examined)).toEqual(before)
    expect(await store.examination.drift()).toEqual([])
  })
})

/** An id that nothing has. */
function environmentId({ environment }: Examined): string {
  return environment.ids.next()
}

/** Whole numbers come as texts from one of the drivers. */
function numbered(row: object): object {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value,
    ]),
  )
}

describe.each(STORES)('the roll-up of ended jobs on $name', ({ open }) => {
  it('is found to differ from the rows, and is made what they say', async () => {
    const examined = await open()
    const { store, sql } = examined
    await fill(examined)
    expect(await store.examination.counters()).toEqual([])
    await sql('DELETE FROM @ended_counts')
    await sql(`INSERT INTO @ended_counts (queue, state, jobs) VALUES ('succeeded', 'succeeded', 7),
      ('nobody', 'failed', 2)`)
    const found = await store.examination.counters()
    expect(found.sort((a, b) => (a.queue < b.queue ? -1 : 1))).toEqual([
      { queue: 'failed', state: 'failed', counted: 0, actual: 1 },
      { queue: 'nobody', state: 'failed', counted: 2, actual: 0 },
      { queue: 'succeeded', state: 'succeeded', counted: 7, actual: 1 },
    ])
    await store.examination.recount()
    expect(await store.examination.counters()).toEqual([])
  })

  it('is right after it was counted several times at once, while workers went on', async () => {
    const examined = await open()
    const { store, sql } = examined
    const other = await examined.again()
    await sql(`INSERT INTO @ended_counts (queue, state, jobs) VALUES ('a', 'succeeded', 100)`)
    const work = Array.from({ length: 20 }, () => succeeded(examined, 'a'))
    const counts = [store, other, store, other].map((one) => one.examination.recount())
    await Promise.all([...work, ...counts])
    await store.examination.recount()
    expect(await store.examination.counters()).toEqual([])
    const [row] = await sql('SELECT sum(jobs) AS n FROM @ended_counts')
    expect(Number(row?.n)).toBe(20)
  })
})

describe.each(STORES)('a duty on $name', ({ open }) => {
  it('has one holder at a time, and passes on when its lease ends', async () => {
    const { store, again, environment } = await open()
    const [one, two] = [store.examination, (await again()).examination]
    expect(await one.takeDuty('look', 'one', 1000)).toEqual({})
    expect(await two.takeDuty('look', 'two', 1000)).toBeUndefined()
    expect(await two.takeDuty('other', 'two', 1000)).toEqual({})
    expect(await two.leaveDuty('look', 'two', 'stolen')).toBe(false)
    environment.advance(999)
    expect(await two.takeDuty('look', 'two', 1000)).toBeUndefined()
    expect(await one.takeDuty('look', 'one', 1000)).toEqual({})
    environment.advance(999)
    expect(await two.takeDuty('look', 'two', 1000)).toBeUndefined()
    environment.advance(1)
    expect(await two.takeDuty('look', 'two', 1000)).toEqual({})
    expect(await one.takeDuty('look', 'one', 1000)).toBeUndefined()
    expect(await one.leaveDuty('look', 'one', 'late')).toBe(false)
  })

  it('is not kept from others by a damaged lease', async () => {
    const { store, sql } = await open()
    const { examination } = store
    await examination.takeDuty('look', 'one', 1000)
    await sql(`UPDATE @duties SET lease_until = ${Number.MAX_SAFE_INTEGER}`)
    expect(await examination.takeDuty('look', 'two', 1000)).toEqual({})
    expect(await examination.takeDuty('look', 'one', 1000)).toBeUndefined()
  })

  it('goes on where its last holder left off, and at once', async () => {
    const { store, again } = await open()
    const [one, two] = [store.examination, (await again()).examination]
    await one.takeDuty('look', 'one', 1000)
    expect(await one.leaveDuty('look', 'one', 'page 7')).toBe(true)
    expect(await two.takeDuty('look', 'two', 1000)).toEqual({ cursor: 'page 7' })
    expect(await two.leaveDuty('look', 'two', undefined)).toBe(true)
    expect(await one.takeDuty('look', 'one', 1000)).toEqual({})
  })

  it('is given to one of many who ask at the same moment', async () => {
    const { store, again } = await open()
    const both = [store.examination, (await again()).examination]
    const asking = Array.from({ length: 10 }, (_, i) =>
      both[i % 2]?.takeDuty('look', `holder ${i}`, 1000),
    )
    const taken = (await Promise.all(asking)).filter((duty) => duty !== undefined)
    expect(taken).toEqual([{}])
  })
})
