// Random flows of up to 50 nodes, on both databases and in virtual time, with random failures,
// redrives and processes that die at random writes. Each node runs only after what it waits for,
// each commits at most once, and in the end every job has ended or is parked with a named cause.
import fc from 'fast-check'
import { defineJob, type Job, settled, Terminal, typed } from 'pawl'
import { type CrashPoint, createTestPawl, type TestPawl } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { brokenPromises } from '../processes/inspect.ts'
import { thorough } from '../support/extent.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

interface Node {
  /** Earlier nodes, as fractions of their number. */
  readonly needs: readonly number[]
  readonly ends: readonly number[]
  readonly onFailure: 'park' | 'cancel' | 'fail'
  /** So many attempts fail for good. */
  readonly fails: number
}

const fraction = fc.double({ min: 0, max: 0.999, noNaN: true })
const node: fc.Arbitrary<Node> = fc.record({
  needs: fc.array(fraction, { maxLength: 4 }),
  ends: fc.array(fraction, { maxLength: 2 }),
  onFailure: fc.constantFrom('park', 'park', 'park', 'cancel', 'fail'),
  fails: fc.constantFrom(0, 0, 0, 0, 0, 1, 2, 99),
})
const CRASHES: readonly CrashPoint[] = [
  'settle.begun',
  'settle.written',
  'settle.committed',
  'commit.committed',
  'flows.wake.begun',
  'flows.wake.written',
  'flows.wake.committed',
  'claim.committed',
]
const history = fc.record({
  nodes: fc.array(node, { minLength: 1, maxLength: 50 }),
  crashes: fc.array(fc.constantFrom(...CRASHES), { maxLength: 6 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
})

const ROUNDS_MAX = 40
const BOB = { name: 'bob', reason: 'test' }
const key = defineJob({ name: 'node', input: typed<number>(), output: typed<number>() })

/** What happened to nodes, as their handlers saw it. */
class World {
  readonly early: string[] = []
  readonly #left: number[]
  constructor(nodes: readonly Node[]) {
    this.#left = nodes.map(({ fails }) => fails)
  }

  readonly job = defineJob({
    name: 'node',
    input: typed<number>(),
    crashesMax: 100,
    after: { needs: [key], ends: settled([key]) },
    run: async ({ input, after, commit }) => {
      // A value is missing if a dependency did not succeed; the engine refuses that, too.
      if (after.needs.some((value) => typeof value !== 'number')) this.early.push(`needs ${input}`)
      if (after.ends.some(({ kind }) => kind === undefined)) this.early.push(`ends ${input}`)
      if ((this.#left[input] as number) > 0) {
        this.#left[input] = (this.#left[input] as number) - 1
        throw new Terminal('as planned')
      }
      return commit(() => input)
    },
  })
}

async function play(test: TestPawl, world: World, plan: Plan): Promise<void> {
  const { nodes, crashes, concurrency } = plan
  const numbers = (of: readonly number[], n: number) =>
    n === 0 ? [] : [...new Set(of.map((part) => Math.floor(part * n)))].sort((a, b) => a - b)
  const flow = await test.pawl.flow((f) => {
    const made: ReturnType<typeof f.add<number, number, undefined>>[] = []
    for (const [n, { needs, ends, onFailure }] of nodes.entries()) {
      const pick = (of: readonly number[]) => numbers(of, n).map((i) => made[i] as (typeof made)[0])
      const after = { needs: pick(needs), ends: pick(ends) }
      made.push(f.add(world.job, n, { after, onFailure }))
    }
  })
  const left = [...crashes]
  let redriven = 0
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const point = left.pop()
    if (point !== undefined) test.crashAt(point)
    const { crashed } = await test.fastForward({ concurrency })
    if (crashed !== undefined) await test.advance('2m')
    else {
      if (redriven++ > 3 && point === undefined) break
      await test.pawl.flows.redrive(flow.id, BOB)
    }
  }
  await test.fastForward()
  await check(
    test,
    flow.jobs.map(({ id }) => id),
    plan,
    numbers,
  )
}

type Plan = typeof history extends fc.Arbitrary<infer P> ? P : never

/** Each job has ended or is parked with a cause, and started after what it waits for. */
async function check(
  test: TestPawl,
  ids: readonly string[],
  { nodes }: Plan,
  numbers: (of: readonly number[], n: number) => number[],
): Promise<void> {
  const jobs: Job[] = []
  const times: { started: number | undefined; ended: number | undefined }[] = []
  for (const id of ids) {
    const job = (await test.store.get(id)) as Job
    const facts = await test.store.facts(id)
    expect(facts.filter(({ trigger }) => trigger === 'commit').length).toBeLessThanOrEqual(1)
    const started = facts.find(({ trigger }) => trigger === 'claim')?.at
    times.push({ started, ended: job.endedAt ?? undefined })
    jobs.push(job)
  }
  for (const [n, job] of jobs.entries()) {
    const { needs, ends } = nodes[n] as Node
    const own = times[n]
    for (const i of numbers(needs, n)) {
      if (own?.started === undefined) continue
      expect(jobs[i], `node ${n} started, so ${i} has succeeded`).toMatchObject({
        outcome: 'succeeded',
      })
      expect(own.started).toBeGreaterThanOrEqual(times[i]?.ended as number)
    }
    for (const i of numbers(ends, n)) {
      if (own?.started !== undefined) expect(jobs[i]?.outcome).not.toBeNull()
    }
    if (job.outcome !== null) continue
    const explained = await test.pawl.explain(job.id)
    // A job that waits for a parked one is itself not parked, and the cause is the same.
    expect(['parked', 'waiting'], explained.says).toContain(explained.kind)
    expect(explained.waitsFor, `${explained.says} ${JSON.stringify(job)}`).toBeDefined()
    const cause = explained.waitsFor?.at(-1) as string
    expect(['failed', 'cancelled']).toContain((await test.store.get(cause))?.outcome)
  }
}

const STORES = [
  { name: 'SQLite', store: undefined, runs: thorough(12, 100) },
  { name: 'PostgreSQL', store: freshStoreDatabase, runs: thorough(3, 30) },
]

describe.each(STORES)('on $name', { timeout: 300_000 }, ({ store, runs }) => {
  it('random flows keep their order under failures, redrives and crashes', async () => {
    const property = fc.asyncProperty(history, async (plan) => {
      const world = new World(plan.nodes)
      const own = store === undefined ? {} : { store: await store() }
      const test = await createTestPawl({ jobs: [world.job], ...own })
      try {
        await play(test, world, plan)
        expect(world.early).toEqual([])
        expect(await brokenPromises(test.store)).toEqual([])
      } finally {
        await test.close()
      }
    })
    await fc.assert(property, { numRuns: runs, endOnFailure: true })
  })
})
