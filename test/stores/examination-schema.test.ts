// Whether a store still has what its migrations made, and how what is missing comes back.
import { describe, expect, it } from 'vitest'
import { type Examined, enqueue, fill, loosen, STORES, succeeded } from './examined-stores.ts'

/** Restores everything that is found missing or different, in the order of the finding. */
async function restoreAll({ store: { examination } }: Examined): Promise<void> {
  for (const drift of await examination.drift()) await examination.restore(drift)
}

describe.each(STORES)('the objects of $name', ({ open, name: place }) => {
  it('are all there in a fresh store, also after work, and with more of the user’s', async () => {
    const examined = await open()
    expect(await examined.store.examination.drift()).toEqual([])
    await fill(examined)
    await examined.sql('CREATE TABLE @mine (id int)')
    await examined.sql('CREATE INDEX their_index ON @jobs (type)')
    await examined.sql('ALTER TABLE @jobs ADD COLUMN theirs text')
    await examined.sql('ALTER TABLE @queues ADD COLUMN theirs text')
    expect(await examined.store.examination.drift()).toEqual([])
  })

  it.each(['trigger', 'index', 'constraint'] as const)(
    'are missed and restored one by one: each %s',
    async (kind) => {
      const examined = await open()
      const { store, sql, names } = examined
      await fill(examined)
      const all = await names[kind]()
      // SQLite has constraints only as parts of its tables.
      const expected = { trigger: 9, index: 10, constraint: place === 'PostgreSQL' ? 30 : 0 }
      expect(all.length).toBeGreaterThanOrEqual(expected[kind])
      for (const { name, drop } of all) {
        await sql(drop)
        const found = await store.examination.drift()
        expect(found, drop).toMatchObject([{ kind, name, problem: 'missing' }])
        for (const drift of found) await store.examination.restore(drift)
        expect(await store.examination.drift(), drop).toEqual([])
      }
      await succeeded(examined, 'after')
    },
  )

  it('are restored together', async () => {
    const examined = await open()
    const { store, sql, names } = examined
    await fill(examined)
    const lost = [...(await names.trigger()), ...(await names.index())]
    const more = await names.constraint()
    for (const { drop } of [...lost, ...more]) await sql(drop)
    expect(await store.examination.drift()).toHaveLength(lost.length + more.length)
    await restoreAll(examined)
    expect(await store.examination.drift()).toEqual([])
    const { rejects } = expect(sql('DELETE FROM @ledger'))
    await rejects.toThrow('P8')
  })

  it('are not restored over rows that contradict them, which all stay', async () => {
    const examined = await open()
    const { store, sql, names } = examined
    await enqueue(examined, 'a')
    await enqueue(examined, 'b')
    const key = (await names.index()).find(({ name }) => name.endsWith('jobs_key'))
    await sql(key?.drop ?? '')
    // A trigger of the SQLite file refuses it as well; it is restored afterwards.
    const isGuard = ({ name }: { name: string }) => name.endsWith('jobs_never_replace_others')
    for (const { drop } of (await names.trigger()).filter(isGuard)) await sql(drop)
    await sql(`UPDATE @jobs SET key = 'taken'`)
    for (const drift of (await store.examination.drift()).filter(isGuard)) {
      await store.examination.restore(drift)
    }
    const found = await store.examination.drift()
    expect(found).toMatchObject([{ kind: 'index', name: key?.name, problem: 'missing' }])
    expect(await store.examination.duplicates(10)).toMatchObject([
      { type: 'mail', key: 'taken' },
      { type: 'mail', key: 'taken' },
    ])
    for (const drift of found) {
      const trying = store.examination.restore(drift)
      await expect(trying).rejects.toMatchObject({ code: 'E_STORE_FAILED' })
    }
    const rows = await sql('SELECT * FROM @jobs')
    expect(rows).toHaveLength(2)
  })

  it('are restored only where they belong to the store', async () => {
    const { store } = await open()
    const drift = {
      kind: 'trigger',
      name: 'nobody',
      problem: 'missing',
      expected: 'DROP TABLE pawl.jobs',
    } as const
    await expect(store.examination.restore(drift)).rejects.toThrow('nobody')
    expect(await store.examination.drift()).toEqual([])
  })
})

describe.each(STORES)('a look at every row of $name', ({ open }) => {
  it('finds nothing in a healthy store', async () => {
    const examined = await open()
    await fill(examined)
    const { examination } = examined.store
    const nothing = { duplicates: 0, unknownStates: [], negativeAttempts: 0 }
    expect(await examination.scan()).toEqual(nothing)
    expect(await examination.duplicates(10)).toEqual([])
    expect(await examination.storage()).toEqual([])
  })

  it('finds states that no lifecycle has', async () => {
    const examined = await open()
    const id = await enqueue(examined, 'a')
    await examined.sql(`UPDATE @jobs SET state = 'lost' WHERE id = '${id}'`)
    expect(await examined.store.examination.scan()).toMatchObject({ unknownStates: ['lost'] })
  })
})

describe('a table of a SQLite file', () => {
  const [file] = STORES

  it('that was rebuilt without its rules gets them back, and keeps all rows', async () => {
    const examined = await file.open()
    const { store, sql } = examined
    const jobs = await fill(examined)
    // The number of a job that is gone must not be given out again.
    await sql(`DELETE FROM @jobs WHERE id = '${jobs.succeeded}'`)
    const sequence = `SELECT seq FROM sqlite_sequence WHERE name = 'pawl_jobs'`
    const before = [await sql('SELECT * FROM @jobs ORDER BY rid'), await sql(sequence)]
    await loosen(examined, 'pawl_jobs')
    await sql(`UPDATE sqlite_sequence SET seq = 6 WHERE name = 'pawl_jobs'`)
    await sql('CREATE INDEX their_index ON @jobs (type)')
    const found = await store.examination.drift()
    expect(found).toContainEqual(
      expect.objectContaining({ kind: 'table', name: 'pawl_jobs', problem: 'different' }),
    )
    // Its indexes and triggers went with the table.
    expect(found.length).toBeGreaterThan(10)
    await restoreAll(examined)
    expect(await store.examination.drift()).toEqual([])
    expect(await store.examination.storage()).toEqual([])
    expect([await sql('SELECT * FROM @jobs ORDER BY rid'), await sql(sequence)]).toEqual(before)
    expect(await sql(`SELECT 1 FROM sqlite_master WHERE name = 'their_index'`)).toHaveLength(1)
    const refused = sql(`UPDATE @jobs SET attempt = -1 WHERE id = '${jobs.ready}'`)
    await expect(refused).rejects.toThrow('CHECK')
    await succeeded(examined, 'after')
  })

  it('that others refer to, or that is empty, gets its rules back as well', async () => {
    const examined = await file.open()
    const { store, sql } = examined
    await succeeded(examined, 'a')
    await store.prune({ endedBefore: store.now() + 1, limit: 10 })
    await loosen(examined, 'pawl_jobs')
    await sql(`INSERT INTO sqlite_sequence (name, seq) VALUES ('pawl_jobs', 1)`)
    await restoreAll(examined)
    const id = await enqueue(examined, 'a')
    expect(await sql(`SELECT rid FROM @jobs WHERE id = '${id}'`)).toEqual([{ rid: 2 }])
    for (const name of ['pawl_machines', 'pawl_ledger', 'pawl_outbox']) {
      const rows = await sql(`SELECT * FROM ${name}`)
      await loosen(examined, name)
      expect(await store.examination.drift(), name).not.toEqual([])
      await restoreAll(examined)
      expect(await store.examination.drift(), name).toEqual([])
      expect(await sql(`SELECT * FROM ${name}`)).toEqual(rows)
    }
    expect(await sql('PRAGMA foreign_key_check')).toEqual([])
    await succeeded(examined, 'after')
  })

  it('shows ids that several jobs have, and counts below zero, while it has no rules', async () => {
    const examined = await file.open()
    const { store, sql } = examined
    const id = await enqueue(examined, 'a')
    await enqueue(examined, 'b')
    await loosen(examined, 'pawl_jobs')
    await sql(`UPDATE @jobs SET id = '${id}', attempt = -1`)
    expect(await store.examination.scan()).toMatchObject({ duplicates: 1, negativeAttempts: 2 })
    expect(await store.examination.duplicates(10)).toEqual([{ id }])
    const storedJobs = await store.examination.storedJobs(undefined, 10)
    expect(storedJobs.map(({ row }) => row?.id)).toEqual([id, id])
  })
})

describe('a table of a SQLite file with columns of the user’s own', () => {
  it('is not rebuilt, because they would be lost', async () => {
    const examined = await (STORES[0] as (typeof STORES)[number]).open()
    const { store, sql } = examined
    await enqueue(examined, 'a')
    await loosen(examined, 'pawl_jobs')
    await sql('ALTER TABLE @jobs ADD COLUMN theirs text')
    const found = await store.examination.drift()
    const table = found.find(({ kind }) => kind === 'table')
    expect(table).toMatchObject({ name: 'pawl_jobs', problem: 'different' })
    const restoring = store.examination.restore(table as NonNullable<typeof table>)
    await expect(restoring).rejects.toMatchObject({ code: 'E_NOT_RESTORABLE' })
    expect(await sql('SELECT theirs FROM @jobs')).toEqual([{ theirs: null }])
  })
})
