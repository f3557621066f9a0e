// Processes that are killed at each write of a flow, an invoke and a wake. The next process makes
// nothing twice, loses nothing, and the flow ends.
import { describe, expect, it } from 'vitest'
import { runChild } from '../../processes/children.ts'
import { brokenPromises } from '../../processes/inspect.ts'
import { half } from '../../support/extent.ts'
import { PLACES } from './places.ts'

const PROGRAM = new URL('flower.mjs', import.meta.url)
const VERBS = ['flows.create', 'flows.invoke', 'flows.wake']
const MOMENTS = ['begun', 'written', 'committed']
const POINTS = VERBS.flatMap((verb) => MOMENTS.map((moment) => `${verb}.${moment}`))
/** The n-th time that a point is reached: first the leaves end, then the parent. */
const DEATHS = POINTS.flatMap((dieAt) =>
  (dieAt.startsWith('flows.create') ? [1] : [1, 2]).map((times) => ({ dieAt, times })),
)

/** `npm test` has each case on one of the databases, `npm run prove` on both. */
const cases = PLACES.flatMap((place, i) => half(DEATHS, i).map((one) => ({ ...place, ...one })))

describe('a process that dies', () => {
  it.each(cases)(
    'on $name at $dieAt (time $times) leaves a flow that ends once',
    { timeout: 60_000 },
    async ({ place, dieAt, times }) => {
      const { store, pawl, bookings } = await place()
      expect(await runChild(PROGRAM, { store, dieAt, times })).toMatchObject({ signal: 'SIGKILL' })
      const next = await runChild(PROGRAM, { store })
      const said = [{ kind: 'succeeded', output: 10 }]
      expect(next).toMatchObject({ code: 0, stderr: '', said })
      expect(await pawl.jobs.count({})).toBe(6)
      expect(await pawl.jobs.count({ outcome: 'succeeded' })).toBe(6)
      const booked = (await bookings()).map(({ job }) => job)
      expect(new Set(booked).size).toBe(6)
      expect(booked).toHaveLength(6)
      expect((await pawl.flows.list()).items).toMatchObject([{ key: 'once', state: 'done' }])
      expect(await brokenPromises(pawl.store)).toEqual([])
    },
  )
})
