// The look at a store when it is opened: what is damaged gives out no work, takes in and settles
// all the rest, and goes on by itself once somebody has mended it.
import { createPawl, defineJob, type PawlEvent } from 'pawl'
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { lookAtOpening } from '../../src/stores/soundness.ts'
import { wrapStore } from '../../src/stores/wrap-store.ts'
import { keptLog } from '../engine/logbook.ts'
import {
  claim,
  type Examined,
  enqueue,
  loosenJobs,
  STORES,
  until,
} from '../stores/examined-stores.ts'

const REQUEST = { worker: 'w2', limit: 5, leaseMs: 60_000, start: true }
const ANN = { actor: 'operator', operator: 'ann', note: 'meanwhile' } as const

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })
const commitOf = (held: Held) => ({
  held,
  command: { kind: 'commit', fence: fenceOf(held) } as const,
  payload: '1',
})

/** Takes away the first object of a kind, and tells its name; nothing where there is none. */
async function lose({ names, sql }: Examined, kind: keyof Examined['names']) {
  const [first] = await names[kind]()
  if (first !== undefined) await sql(first.drop)
  return first?.name
}

/** What a claim is refused with. */
async function refusalOf(store: Store): Promise<{ code: string; findings: string[] }> {
  const error = await store.claim(REQUEST).then(
    () => undefined,
    (thrown: { code: string; details: { findings: string[] } }) => thrown,
  )
  return { code: error?.code ?? 'nothing', findings: error?.details.findings ?? [] }
}

async function mend(examined: Examined): Promise<void> {
  const store = await examined.again({ onFindings: 'warn' })
  const { environment } = examined
  const doctor = new Doctor({ store, lifecycles: LIFECYCLES, environment })
  const report = await doctor.repair({ operator: 'ann', reason: 'it was damaged' })
  expect(report.repairCount).toBeGreaterThan(0)
}

describe.each(STORES)('opening $name', ({ open, name: place }) => {
  it('that is sound gives the store itself, with nothing in between', async () => {
    const { store } = await open()
    expect(await lookAtOpening(store, {})).toBe(store)
  })

  it.each(['trigger', 'index', 'constraint'] as const)(
    'without one %s blocks claims alone',
    async (kind) => {
      const examined = await open()
      const [one, two] = [await claim(examined, 'a'), await claim(examined, 'a')]
      const waiting = await enqueue(examined, 'a')
      const lost = await lose(examined, kind)
      // SQLite has constraints only as parts of its tables.
      expect(lost === undefined).toBe(kind === 'constraint' && place !== 'PostgreSQL')
      if (lost === undefined) await loosenJobs(examined)
      const { lines, logger } = keptLog()
      const store = await examined.again({ logger })
      const what =
        lost === undefined ? 'table pawl_jobs is different' : `${kind} ${lost} is missing`
      const { code, findings } = await refusalOf(store)
      expect(code).toBe('E_STORE_DAMAGED')
      expect(findings).toContain(what)
      const told = lines.filter(({ fields }) => fields.event === 'store.damaged')
      expect(told).toMatchObject([{ level: 'error', msg: expect.stringContaining(what) }])

      expect(await enqueue({ ...examined, store }, 'a')).toMatch(/-/)
      const beat = { ref: two.ref, fence: fenceOf(two) }
      expect(await store.heartbeat([beat], 60_000)).toMatchObject({ lost: [] })
      const { answers, claimed } = await store.settle([commitOf(one)], REQUEST)
      expect(answers).toMatchObject([{ kind: 'done' }])
      expect(claimed).toEqual([])
      expect(await store.commit(two, () => '2')).toMatchObject({ kind: 'done' })
      expect(await store.cancel([waiting], ANN)).toMatchObject([{ kind: 'done' }])
      expect((await store.counts()).lanes).toMatchObject({ ready: 1, held: 0, ended: 3 })
    },
  )

  it('reports ids, states and counts that cannot be, with what is missing', async () => {
    const examined = await open()
    const id = await enqueue(examined, 'a')
    for (const queue of ['a', 'b']) await enqueue(examined, queue)
    const { sql } = examined
    await loosenJobs(examined)
    await sql(`UPDATE @jobs SET id = '${id}', failures = -1 WHERE queue = 'a'`)
    await sql(`UPDATE @jobs SET state = 'lost' WHERE queue = 'b'`)
    const { findings } = await refusalOf(await examined.again())
    expect(findings).toEqual(
      expect.arrayContaining([
        '1 ids are not unique',
        'there are jobs in the unknown state "lost"',
        '2 jobs have negative counts',
      ]),
    )
  })

  it('with onFindings: warn only tells the log, and gives out work', async () => {
    const examined = await open()
    await enqueue(examined, 'a')
    const lost = await lose(examined, 'trigger')
    const { lines, logger } = keptLog()
    const store = await examined.again({ onFindings: 'warn', logger })
    expect(await store.claim(REQUEST)).toHaveLength(1)
    expect(lines).toMatchObject([{ level: 'error', msg: expect.stringContaining(`${lost}`) }])
  })

  it('looks at a damaged store again every five seconds, and then gives out work', async () => {
    const examined = await open()
    const { environment } = examined
    await enqueue(examined, 'a')
    await lose(examined, 'index')
    let looks = 0
    const { examination } = examined.store
    const drift = () => {
      looks++
      return examination.drift()
    }
    const watched = wrapStore(examined.store, {
      examination: new Proxy(examination, {
        get: (target, name) => {
          const value: unknown = name === 'drift' ? drift : Reflect.get(target, name, target)
          return typeof value === 'function' ? value.bind(target) : value
        },
      }),
    })
    const store = await lookAtOpening(watched, {})
    for (let i = 0; i < 10; i++) expect((await refusalOf(store)).code).toBe('E_STORE_DAMAGED')
    expect(looks).toBe(1)
    await mend(examined)
    environment.advance(4999)
    expect((await refusalOf(store)).code).toBe('E_STORE_DAMAGED')
    environment.advance(1)
    expect(await store.claim(REQUEST)).toHaveLength(1)
    // A store that was found sound is not looked at any more.
    environment.advance(60_000)
    await store.claim(REQUEST)
    expect(looks).toBe(2)
  })

  it('a worker that is blocked goes on by itself when another process has mended it', async () => {
    const examined = await open()
    const { environment } = examined
    await lose(examined, 'trigger')
    const job = defineJob({ name: 'echo', run: ({ input }) => input })
    const events: PawlEvent[] = []
    const pawl = await createPawl({
      store: await examined.again(),
      environment,
      jobs: [job],
      onEvent: (event) => void events.push(event),
    })
    const worker = await pawl.work({ checkup: false })
    const { id } = await pawl.enqueue(job, 'after all')
    const errors = () => events.flatMap((event) => (event.type === 'error' ? [event.error] : []))
    await until(examined, () => errors().length >= 2)
    expect(errors()).toMatchObject(errors().map(() => ({ code: 'E_STORE_DAMAGED' })))
    expect(await examined.store.get(id)).toMatchObject({ state: 'queued', attempt: 0 })
    await mend(examined)
    await until(examined, async () => (await examined.store.get(id))?.outcome === 'succeeded')
    let isStopped = false
    void worker.stop().then(() => {
      isStopped = true
    })
    await until(examined, () => isStopped)
  })
})
