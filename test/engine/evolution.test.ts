// Two releases of a program on one database, with different versions of a lifecycle: while the one
// is replaced by the other no job stands still, is run twice, or moves off its table.
import { join } from 'node:path'
import { createPawl, defineJob, type Lifecycle, type Pawl, type PawlEvent, typed } from 'pawl'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parcel1, parcel2 } from '../contract/store/parcels.ts'
import { freshFolder } from '../processes/folder.ts'
import { execute } from '../processes/inspect.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'

const STORES = [
  { name: 'a SQLite file', fresh: async () => `sqlite:${join(freshFolder(), 'jobs.db')}` },
  { name: 'PostgreSQL', fresh: () => freshDatabase(sharedPostgres()) },
] as const

interface Release {
  readonly pawl: Pawl
  readonly job: ReturnType<typeof carryWith>
  readonly events: PawlEvent[]
  readonly counted: string[]
}

const jobKey = { name: 'carry', output: typed<string>() } as const

function carryWith(lifecycle: Lifecycle, run: () => string | Promise<string>) {
  return defineJob({ ...jobKey, lifecycle, run })
}

async function releaseOf(
  store: string,
  lifecycle: Lifecycle,
  run: () => string | Promise<string> = () => `v${lifecycle.version}`,
): Promise<Release> {
  const job = carryWith(lifecycle, run)
  const events: PawlEvent[] = []
  const counted: string[] = []
  const metrics = {
    count: (name: string, labels: object) => {
      if (name === 'pawl_jobs_migrated_total') counted.push(Object.values(labels).join(' '))
    },
    observe() {},
    gauge() {},
  }
  const onEvent = (event: PawlEvent) => void events.push(event)
  const pawl = await createPawl({ store, jobs: [job], onEvent, metrics })
  onTestFinished(() => pawl.close())
  return { pawl, job, events, counted }
}

describe.each(STORES)('a rolling deploy on $name', ({ fresh }) => {
  it('ends running jobs under the old version and all others under the new one', async () => {
    const store = await fresh()
    let finish = () => {}
    let started = () => {}
    const running = new Promise<void>((resolve) => {
      started = resolve
    })
    const gate = new Promise<void>((resolve) => {
      finish = resolve
    })
    const old = await releaseOf(store, parcel1, async () => {
      started()
      await gate
      return 'v1'
    })
    const slow = await old.pawl.enqueue(old.job, {})
    const worker = await old.pawl.work({ concurrency: 1, checkup: false })
    await running
    const handles = await old.pawl.enqueueMany(
      old.job,
      Array.from({ length: 20 }, () => ({ input: {} })),
    )
    const next = await releaseOf(store, parcel2)
    await next.pawl.work({ concurrency: 4, checkup: false, poll: '20ms' })
    for (const handle of handles) {
      expect(await handle.result({ timeout: '20s' })).toMatchObject({ output: 'v2' })
    }
    finish()
    expect(await slow.result({ timeout: '20s' })).toMatchObject({ output: 'v1' })
    await worker.stop()
    expect((await slow.get()).lifecycleVersion).toBe(1)
    expect(next.counted).toEqual(Array(20).fill('parcel 1 2'))
    const migrated = next.events.filter(({ type }) => type === 'migrated')
    expect(migrated[0]).toMatchObject({ from: 1, to: 2, path: ['underway', 'carried'] })
    expect(await next.pawl.doctor().check({ full: true })).toMatchObject({ ok: true, jobs: 21 })
  })

  it('tells that a job was migrated when it came due', async () => {
    const store = await fresh()
    const old = await releaseOf(store, parcel1, () => {
      throw new Error('nobody is at home')
    })
    const handle = await old.pawl.enqueue(old.job, {})
    const worker = await old.pawl.work({ checkup: false })
    const state = async () => (await handle.get()).state
    await expect.poll(state, { timeout: 10_000 }).toBe('missed')
    await worker.stop()
    const { id } = handle
    const next = await releaseOf(store, parcel2)
    const told = async () => {
      await next.pawl.store.promote(10)
      return next.events.find(({ type }) => type === 'migrated')
    }
    await expect.poll(told, { timeout: 10_000 }).toMatchObject({ from: 1, to: 2, job: { id } })
    expect(next.counted).toEqual(['parcel 1 2'])
  })

  it('explains, foresees and migrates what the old release has left', async () => {
    const store = await fresh()
    const old = await releaseOf(store, parcel1)
    const ann = { name: 'ann', reason: 'release 12' }
    const parked = await old.pawl.enqueue(old.job, {})
    await old.pawl.operator(ann).quarantine(parked.id)
    const ready = await old.pawl.enqueue(old.job, {})
    await old.pawl.close()
    const next = await releaseOf(store, parcel2)
    const operator = next.pawl.operator(ann)
    expect((await next.pawl.explain(ready.id)).says).toContain(
      'It is migrated from version 1 of its lifecycle to 2 when it is next touched.',
    )
    expect(await operator.redrive(parked.id, { dryRun: true })).toMatchObject({ done: 1 })
    const selection = { lifecycle: 'parcel', to: 2 }
    const foreseen = await operator.migrate(selection, { dryRun: true })
    const report = await operator.migrate(selection)
    expect({ ...report, dryRun: true }).toEqual(foreseen)
    expect(report).toMatchObject({ matched: 2, done: 2, running: 0, refused: 0, more: false })
    expect(report.moves).toContainEqual({
      from: { version: 1, state: 'packed' },
      to: { version: 2, state: 'ready' },
      jobs: 1,
    })
    expect(await operator.redrive(parked.id)).toMatchObject({ done: 1 })
    expect(await next.pawl.doctor().check({ full: true })).toMatchObject({ ok: true })
  })
})

describe('the doctor', () => {
  it('reports jobs of a version that is neither known here nor mapped', async () => {
    const path = join(freshFolder(), 'jobs.db')
    const next = await releaseOf(`sqlite:${path}`, parcel2)
    await next.pawl.enqueue(next.job, {})
    await next.pawl.close()
    const old = await releaseOf(`sqlite:${path}`, parcel1)
    const { findings, ok } = await old.pawl.doctor().check({ full: true })
    expect(ok).toBe(false)
    expect(findings[0]).toMatchObject({
      check: 'states-are-known',
      severity: 'warning',
      what: 'parcel v2 is not known to this process',
    })
  })

  it('finds a row whose version is not the one that its facts say, and mends it', async () => {
    const path = join(freshFolder(), 'jobs.db')
    const old = await releaseOf(`sqlite:${path}`, parcel1)
    const { id } = await old.pawl.enqueue(old.job, {})
    await old.pawl.close()
    const next = await releaseOf(`sqlite:${path}`, parcel2)
    const ann = { name: 'ann', reason: 'release 12' }
    await next.pawl.operator(ann).migrate({ lifecycle: 'parcel', to: 2 })
    execute(
      path,
      "UPDATE pawl_jobs SET machine = (SELECT id FROM pawl_machines WHERE name = 'parcel' " +
        'AND version = 1)',
    )
    const doctor = next.pawl.doctor()
    const { findings } = await doctor.check({ full: true })
    expect(findings.map(({ what }) => what)).toContain('row and facts differ in machine')
    await doctor.repair({ operator: 'ann', reason: 'damaged' })
    expect(await doctor.check({ full: true })).toMatchObject({ ok: true })
    expect(await next.pawl.job(id).get()).toMatchObject({ lifecycleVersion: 2, state: 'ready' })
  })
})
