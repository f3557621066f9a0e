// What explain says of each item is what resuming then does with it the first time, over random
// runs whose fix loops overwrite what was made before, and which are stopped anywhere. What comes
// later, such as work that was never done before, may change an item's inputs once more.
import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { defineRun, type RunContext, type RunDefinition, type Runs } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { thorough } from '../support/extent.ts'
import { freshFolder, freshRuns, outcomeOf } from './bench.ts'

const NAMES = ['a', 'b', 'c', 'd'] as const
const FILES = ['f', 'g'] as const
const STATES = ['DRAFTING', 'LINKING', 'VALIDATING', 'FIXING', 'READY_FOR_PR'] as const
type State = (typeof STATES)[number]

/** An item: what it reads and writes, and whether it keeps all of what it read. */
const anyItem = fc.record({
  reads: fc.subarray([...FILES, ...NAMES]),
  writes: fc.subarray([...NAMES]),
  parameter: fc.option(fc.constantFrom(...NAMES), { nil: undefined, freq: 4 }),
  /** How many different contents it can make: with few of them, waves stop. */
  keeps: fc.constantFrom(1, 2, 1000),
})
type Item = typeof anyItem extends fc.Arbitrary<infer T> ? T : never

const anyPlan = fc.record({
  items: fc.record(
    Object.fromEntries(
      STATES.map((state) => [state, fc.array(anyItem, { maxLength: 2 })]),
    ) as Record<State, fc.Arbitrary<Item[]>>,
  ),
  /** What nodes write by themselves. */
  own: fc.record({
    DRAFTING: fc.option(fc.constantFrom(...NAMES), { nil: undefined }),
    LINKING: fc.option(fc.constantFrom(...NAMES), { nil: undefined }),
  }),
  fixes: fc.nat(2),
  stopIn: fc.constantFrom(...STATES),
  /** Whether it stops before or after the items of that state. */
  stopsEarly: fc.boolean(),
  visit: fc.integer({ min: 1, max: 2 }),
  edit: fc.option(fc.constantFrom(...FILES), { nil: undefined }),
  force: fc.boolean(),
  strict: fc.boolean(),
})
type Plan = typeof anyPlan extends fc.Arbitrary<infer T> ? T : never

/** A run that does as planned, each item by its inputs alone. */
class Planned {
  readonly #plan: Plan
  readonly #folder: string
  /** Whether each item was done, or skipped, when its node asked for it first. */
  readonly asked = new Map<string, boolean>()
  #edits = 0
  #visits = 0
  isStopped = true

  constructor(plan: Plan, folder: string) {
    this.#plan = plan
    this.#folder = folder
    for (const file of FILES) this.edit(file)
  }

  edit(file: string): void {
    const path = join(this.#folder, file)
    writeFileSync(path, `${file} ${++this.#edits}`)
    utimesSync(path, 1_000_000, 1_000_000 + this.#edits)
  }

  async #do(run: RunContext, state: State): Promise<void> {
    const { stopIn, stopsEarly, visit, items, own } = this.#plan
    const isHere = this.isStopped && stopIn === state && ++this.#visits >= visit
    if (isHere && stopsEarly) throw new Error('stop here')
    const written = (own as Partial<Record<State, string>>)[state]
    if (written !== undefined) await run.artifact(written).write(`by the node of ${state}`)
    for (const [i, item] of items[state].entries()) await this.#item(run, `${state} ${i}`, item)
    if (isHere) throw new Error('stop here')
  }

  async #item(run: RunContext, key: string, { reads, writes, parameter, keeps }: Item) {
    let isDone = false
    const there = (name: string) => run.artifact(name).sha256 !== undefined
    // What the items of a state write is not handed on as a parameter in the same state.
    const isOwn =
      parameter !== undefined && this.#isWrittenIn(key.split(' ')[0] as State, parameter)
    const given =
      parameter !== undefined && !isOwn && there(parameter) ? run.artifact(parameter).sha256 : ''
    const inputs = parameter === undefined ? {} : { given }
    await run.work(key, { inputs }, async () => {
      isDone = true
      let sum = [...key, ...(given ?? '')].reduce((s, sign) => s + sign.charCodeAt(0), 0)
      for (const name of reads.filter(there)) {
        for (const sign of await run.artifact(name).text())
          sum = (sum * 31 + sign.charCodeAt(0)) % 9973
      }
      for (const name of writes) await run.artifact(name).write(`${key} ${sum % keeps}`)
      return sum % keeps
    })
    if (!this.asked.has(key)) this.asked.set(key, isDone)
  }

  #isWrittenIn(state: State, name: string): boolean {
    const { items, own } = this.#plan
    const byNode = (own as Partial<Record<State, string>>)[state] === name
    return byNode || items[state].some(({ writes }) => (writes as readonly string[]).includes(name))
  }

  define(): RunDefinition {
    let fixed = 0
    return defineRun({
      name: 'planned',
      maxFixAttempts: 1000,
      nodes: {
        CREATED: async (run) => {
          for (const file of FILES) await run.inputFile(file, join(this.#folder, file))
          return 'CLONED_INPUTS'
        },
        CLONED_INPUTS: async () => 'INGESTED',
        INGESTED: async () => 'FACTS_READY',
        FACTS_READY: async () => 'PLAN_READY',
        PLAN_READY: async () => 'DRAFTING',
        DRAFTING: async (run) => {
          await this.#do(run, 'DRAFTING')
          return 'DRAFT_READY'
        },
        DRAFT_READY: async () => 'LINKING',
        LINKING: async (run) => {
          await this.#do(run, 'LINKING')
          fixed = 0
          return 'VALIDATING'
        },
        VALIDATING: async (run) => {
          await this.#do(run, 'VALIDATING')
          const ok = fixed++ >= this.#plan.fixes
          await run.validation(ok)
          return ok ? 'READY_FOR_PR' : 'FIXING'
        },
        FIXING: async (run) => {
          await this.#do(run, 'FIXING')
          return 'VALIDATING'
        },
        READY_FOR_PR: async (run) => {
          await this.#do(run, 'READY_FOR_PR')
          return 'PR_OPENED'
        },
        PR_OPENED: async () => 'DONE',
      },
    })
  }
}

/** Two nodes write the same artifact by themselves, and both are called again. */
const WRITTEN_BY_TWO_NODES: Plan = {
  items: {
    ...{ DRAFTING: [], LINKING: [], VALIDATING: [], READY_FOR_PR: [] },
    FIXING: [{ reads: ['c'], writes: [], parameter: undefined, keeps: 1 }],
  },
  own: { DRAFTING: 'c', LINKING: 'c' },
  ...{ fixes: 1, stopIn: 'VALIDATING', stopsEarly: false, visit: 2 },
  ...{ edit: 'f', force: false, strict: true },
}

/** A node overwrites what its own item has written, and hands it on as a parameter later. */
const OVERWRITTEN_BY_ITS_NODE: Plan = {
  items: {
    ...{ VALIDATING: [], FIXING: [], READY_FOR_PR: [] },
    DRAFTING: [{ reads: [], writes: ['c'], parameter: undefined, keeps: 1 }],
    LINKING: [{ reads: [], writes: [], parameter: 'c', keeps: 1 }],
  },
  own: { DRAFTING: 'c', LINKING: undefined },
  ...{ fixes: 0, stopIn: 'LINKING', stopsEarly: false, visit: 1 },
  ...{ edit: 'f', force: false, strict: false },
}

const EXAMPLES: [Plan][] = [[WRITTEN_BY_TWO_NODES], [OVERWRITTEN_BY_ITS_NODE]]

/** How often each verdict was met, so that the property is known to say something. */
const met = { run: 0, skip: 0, check: 0 }

async function check(plan: Plan, runs: Runs, definition: RunDefinition, planned: Planned) {
  if ((await outcomeOf(runs, definition)).kind !== 'stopped') return
  if (plan.edit !== undefined) planned.edit(plan.edit)
  const { run } = await runs.show('r1')
  const [first] = Object.keys(run.work_items).sort()
  const force = plan.force && first !== undefined ? [first] : []
  const options = { force, strict: plan.strict }
  const { items } = await runs.explain('r1', options)
  planned.isStopped = false
  planned.asked.clear()
  expect(await (await runs.resume('r1', options)).result()).toMatchObject({ kind: 'done' })
  for (const { key, verdict } of items) {
    const isDone = planned.asked.get(key)
    if (isDone === undefined) continue
    met[verdict]++
    if (verdict !== 'check') expect([key, isDone]).toEqual([key, verdict === 'run'])
  }
}

describe('what explain says of an item', () => {
  it('is what resuming does, also after a fix loop replaced outputs', async () => {
    await fc.assert(
      fc.asyncProperty(anyPlan, async (plan) => {
        const memory = existsSync('/dev/shm') ? '/dev/shm' : undefined
        const planned = new Planned(plan, freshFolder(memory))
        const definition = planned.define()
        const runs = await freshRuns({ folder: freshFolder(memory), runs: [definition] })
        await check(plan, runs, definition, planned)
        await runs.close()
      }),
      { numRuns: thorough(150, 300), examples: EXAMPLES },
    )
    expect(Math.min(met.run, met.skip, met.check)).toBeGreaterThan(10)
  }, 180_000)
})
