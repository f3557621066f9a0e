// Commands by filter: an unknown condition is refused, and what is changed is what was listed.
import fc from 'fast-check'
import { testEnvironment } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Job } from '../../src/core/job/job.ts'
import { LANES, type Lane } from '../../src/core/job/lanes.ts'
import { hardened } from '../../src/core/lifecycles/hardened.ts'
import { leased } from '../../src/core/lifecycles/leased.ts'
import { standard } from '../../src/core/lifecycles/standard.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import type { Operator, OperatorOptions } from '../../src/engine/operators/operators.ts'
import type { OperatorReport } from '../../src/engine/operators/report.ts'
import type { Selection } from '../../src/engine/operators/selection.ts'
import type { JobFilter, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { TestEnvironment } from '../../src/testing/test-environment.ts'
import { type Bench, Bench as StoreBench } from '../contract/store/bench.ts'
import { checkStore, listAll } from '../contract/store/check.ts'
import { thorough } from '../support/extent.ts'
import { freshSchema, sharedPostgres } from '../support/postgres/databases.ts'

const stores: Record<string, (environment: TestEnvironment) => Promise<Store>> = {
  SQLite: (environment) => openSqliteStore({ path: ':memory:', environment }),
  PostgreSQL: (environment) => {
    const url = sharedPostgres()
    const schema = freshSchema(url)
    const options = { schema, clock: 'environment', connections: 2, environment } as const
    return openPostgresStore({ connectionString: url, ...options })
  },
}

type Act = (
  operator: Operator,
  selection: Selection,
  options: OperatorOptions,
) => Promise<OperatorReport>

const acts: Record<string, Act> = {
  cancel: (operator, ...args) => operator.cancel(...args),
  retry: (operator, ...args) => operator.retry(...args),
  redrive: (operator, ...args) => operator.redrive(...args),
  quarantine: (operator, ...args) => operator.quarantine(...args),
  discard: (operator, ...args) => operator.discard(...args),
  force: (operator, selection, options) => operator.force(selection, 'quarantined', options),
  prioritise: (operator, selection, options) => operator.prioritise(selection, 7, options),
  reschedule: (operator, selection, options) =>
    operator.reschedule(selection, new Date(0), options),
  approve: (operator, ...args) => operator.approve(...args),
  submit: (operator, ...args) => operator.submit(...args),
}

const filters = fc
  .record(
    {
      state: fc.constantFrom('queued', 'running', 'failed', 'quarantined', 'pending', 'retrying'),
      lane: fc.constantFrom(...(Object.keys(LANES) as Lane[])),
      queue: fc.constantFrom('main', 'other'),
      tag: fc.constantFrom('red', 'blue'),
      type: fc.constantFrom('example', 'rare'),
      error: fc.constantFrom('no', 'boom'),
    },
    { requiredKeys: [] },
  )
  .filter((filter) => Object.keys(filter).length > 0)

describe.each(Object.entries(stores))('a command by filter on %s', (name, openStore) => {
  async function open(): Promise<[Bench, Operator]> {
    const environment = testEnvironment()
    const store = await openStore(environment)
    onTestFinished(async () => {
      await checkStore(store)
      await store.close()
    })
    const advance = (ms: number) => environment.advance(ms)
    const ownTable = { add() {}, all: () => [] }
    const bench = new StoreBench(environment, { store, advance, ownTable })
    const pawl = await createPawl({ store, environment })
    return [bench, pawl.operator({ name: 'ada', reason: 'INC-7' })]
  }

  it('with an unknown condition or value is refused, and changes no job', async () => {
    const [bench, ada] = await open()
    await populate(bench)
    const before = await versions(bench.store)
    const bad: object[] = [
      { lane: 'retrying' },
      { lane: 'toString' },
      { lane: '' },
      { lane: 2 },
      { bogus: 1 },
      { queue: undefined },
      { createdFrom: '1' },
      { createdFrom: 5, createdBefore: 5 },
      { tag: ['red'] },
    ]
    for (const filter of bad as JobFilter[]) {
      for (const [verb, act] of Object.entries(acts)) {
        for (const dryRun of [true, false]) {
          const asked = act(ada, { filter }, { dryRun })
          await expect(asked, verb).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
        }
      }
      await expect(bench.store.list(filter)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    }
    await expect(bench.store.list({ lane: 'retrying' as Lane })).rejects.toThrow(
      '"lane" must be one of idle, waiting, ready',
    )
    await expect(bench.store.list({ stat: 'x' } as JobFilter)).rejects.toThrow(
      '"stat" is not known; known fields: state, lane',
    )
    expect(await versions(bench.store)).toEqual(before)
  })

  it('without any condition is refused unless it says that all jobs are meant', async () => {
    const [bench, ada] = await open()
    await populate(bench)
    await expect(ada.prioritise({ filter: {} }, 3)).rejects.toThrow('{ all: true }')
    const { matched } = await ada.prioritise({ all: true }, 3, { dryRun: true })
    expect(matched).toBe((await bench.ids()).length)
  })

  it('changes exactly the jobs that its dry run listed', { timeout: 120_000 }, async () => {
    const numRuns = name === 'SQLite' ? thorough(30, 150) : thorough(10, 60)
    const verbs = fc.constantFrom(...Object.keys(acts))
    await fc.assert(
      fc.asyncProperty(filters, verbs, async (filter, verb) => {
        const [bench, ada] = await open()
        await populate(bench)
        const act = acts[verb] as Act
        const shown = (await listAll(bench.store, filter)).map(({ id }) => id)
        const before = await versions(bench.store)
        const foreseen = await act(ada, { filter }, { dryRun: true })
        expect(await versions(bench.store)).toEqual(before)
        expect(foreseen.ids).toEqual(shown)
        const report = await act(ada, { filter, among: foreseen.ids ?? [] }, {})
        const { ids: _, ...told } = foreseen
        expect({ ...report, copies: [] }).toEqual({ ...told, dryRun: false })
        const after = await versions(bench.store)
        const copies = new Set(report.copies.map(({ id }) => id))
        const changed = [...after].filter(([id, seq]) => before.get(id) !== seq && !copies.has(id))
        const listed = new Set(shown)
        expect(changed.filter(([id]) => !listed.has(id))).toEqual([])
        expect(changed.length + report.copies.length).toBe(report.done)
      }),
      { numRuns },
    )
  })

  it('reports jobs that changed after they were listed, and takes no others for them', async () => {
    const [bench, ada] = await open()
    const jobs: Job[] = []
    for (let n = 0; n < 4; n++) jobs.push(await bench.enqueue({ runAt: bench.store.now() + 1000 }))
    const [first, , third] = jobs.map(({ id }) => id) as [string, string, string, string]
    const filter: JobFilter = { lane: 'waiting' }
    const { ids = [] } = await ada.cancel({ filter }, { dryRun: true })
    expect(ids).toHaveLength(4)
    await ada.reschedule({ ids: [first, third] }, new Date(0))
    const late = await bench.enqueue({ runAt: bench.store.now() + 1000 })
    const report = await ada.cancel({ filter, among: ids })
    expect(report).toMatchObject({ matched: 4, done: 2, refused: 2 })
    const refused = report.refusals.map(({ id, code }) => [id, code])
    expect(new Map(refused as [string, string][])).toEqual(
      new Map([first, third].map((id) => [id, 'E_JOB_CHANGED'])),
    )
    expect((await bench.job(late.id)).outcome).toBeNull()
    expect((await bench.job(first)).outcome).toBeNull()
  })
})

/** Jobs of three lifecycles in most of their states. */
async function populate(bench: Bench): Promise<void> {
  const later = bench.store.now() + 100_000
  for (const lifecycle of [standard, hardened, leased]) {
    const tags = lifecycle === standard ? ['red'] : ['blue']
    await bench.fail(await bench.hold({ lifecycle, tags }), 'transient')
    await bench.fail(await bench.hold({ lifecycle, queue: 'other' }), 'terminal')
    await bench.store.commit(await bench.hold({ lifecycle }), () => '1')
    await bench.hold({ lifecycle, tags })
    await bench.enqueue({ lifecycle, queue: 'other' })
    await bench.enqueue({ lifecycle, type: 'rare', runAt: later })
  }
  await bench.enqueue({ hold: true })
}

async function versions(store: Store): Promise<Map<string, number>> {
  return new Map((await listAll(store, {})).map(({ id, seq }) => [id, seq]))
}
