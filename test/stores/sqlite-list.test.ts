// A list ends at its time budget, also where hardly anything matches, and goes on from there.
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { expect, it } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

/** How many rows the store looks at before it asks for the time. */
const CHUNK = 1000

it('a list out of time gives back what it has, and going on shows every job once', async () => {
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path: ':memory:', environment })
  const rare = [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK - 1, 3 * CHUNK]
  const items = Array.from({ length: 3 * CHUNK + 1 }, (_, i) => ({
    lifecycle: standard,
    command: {
      jobId: environment.ids.next(),
      queue: 'main',
      type: rare.includes(i) ? 'rare' : 'common',
    },
    input: '1',
  }))
  await store.enqueue(items)
  const ids = items.filter(({ command }) => command.type === 'rare').map((one) => one.command.jobId)
  expect((await store.list({ type: 'rare' })).items).toHaveLength(rare.length)

  const { clock } = environment
  const look = clock.now.bind(clock)
  clock.now = () => {
    clock.advance(1000)
    return look()
  }
  const first = await store.list({ type: 'rare' })
  expect(first).toMatchObject({ partial: true })
  const second = await store.list({ type: 'rare' }, { after: first.next ?? '' })
  expect(second).toEqual({ items: [], next: expect.any(String), partial: true })
  const third = await store.list({ type: 'rare' }, { after: second.next ?? '' })
  expect(third).toMatchObject({ partial: true })
  const last = await store.list({ type: 'rare' }, { after: third.next ?? '' })
  expect(last).toEqual({ items: [expect.anything()] })
  const pages = [first, second, third, last].map((page) => page.items.map(({ id }) => id))
  expect(pages.map(({ length }) => length)).toEqual([2, 0, 3, 1])
  expect(pages.flat()).toEqual(ids.toReversed())
})

it('an audit out of time gives back what it has, and going on shows every fact once', async () => {
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path: ':memory:', environment })
  const items = Array.from({ length: 3 * CHUNK + 1 }, () => ({
    lifecycle: standard,
    command: { jobId: environment.ids.next(), queue: 'main', type: 'common' },
    input: '1',
  }))
  await store.enqueue(items)
  const rare = [0, CHUNK, 3 * CHUNK].map((i) => items[i]?.command.jobId ?? '')
  const ann = { actor: 'operator', operator: 'ann', note: 'because' } as const
  await store.applyCommand(rare, { kind: 'park' }, ann)
  const { clock } = environment
  const look = clock.now.bind(clock)
  clock.now = () => {
    clock.advance(1000)
    return look()
  }
  const seen: string[][] = []
  let after: string | undefined
  do {
    const filter = { toState: 'quarantined' } as const
    const page = await store.audit(filter, { ...(after !== undefined && { after }) })
    expect(page.partial).toBe(page.next === undefined ? undefined : true)
    seen.push(page.items.map(({ fact }) => fact.jobId))
    after = page.next
  } while (after !== undefined)
  expect(seen).toEqual([[], [], [], rare])
})

it('a lane with few jobs is found among many others within the first page', async () => {
  const environment = testEnvironment()
  await using store = await openSqliteStore({ path: ':memory:', environment })
  const items = Array.from({ length: 3 * CHUNK }, () => ({
    lifecycle: standard,
    command: { jobId: environment.ids.next(), queue: 'main', type: 'common' },
    input: '1',
  }))
  await store.enqueue(items)
  const few = [0, 5, 2 * CHUNK].map((i) => items[i]?.command.jobId ?? '')
  const ann = { actor: 'operator', operator: 'ann', note: 'because' } as const
  await store.applyCommand(few, { kind: 'park' }, ann)
  const { clock } = environment
  const look = clock.now.bind(clock)
  clock.now = () => {
    clock.advance(1000)
    return look()
  }
  for (const filter of [{ lane: 'parked' }, { outcome: 'parked' }] as const) {
    const page = await store.list(filter)
    expect(page).toEqual({ items: expect.any(Array) })
    expect(page.items.map(({ id }) => id)).toEqual(few.toReversed())
    const first = await store.list(filter, { limit: 1 })
    const rest = await store.list(filter, { limit: 5, after: first.next ?? '' })
    expect([...first.items, ...rest.items].map(({ id }) => id)).toEqual(few.toReversed())
  }
})
