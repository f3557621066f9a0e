// The model of leases and commits, searched in full by spin; see model/lease.pml. Where spin or gcc
// is missing there is nothing to search with, and the tests say so.
import { describe, expect, it } from 'vitest'
import { findMissing, type Outcome, SEARCHES, search } from '../model/search.ts'

const missing = await findMissing()
if (missing !== undefined) console.warn(`The model is not searched: ${missing} is not installed.`)

const outcomeOf = (name: string): Promise<Outcome> => {
  const wanted = SEARCHES.find((one) => one.name === name)
  if (wanted === undefined) throw new Error(`There is no search "${name}"`)
  return search(wanted, 'model')
}

const names = SEARCHES.map(({ name }) => name)
const whole = names.filter((name) => name === 'fenced')
const formulas = names.filter((name) => /^p\d+$/.test(name))
const variants = SEARCHES.filter(({ breaks }) => breaks !== undefined)

describe.skipIf(missing !== undefined)('three workers at two jobs', () => {
  it.each(whole)(
    'keep every promise in whichever order they, time and a client meet (%s)',
    async (name) => {
      const { errors, found, states } = await outcomeOf(name)
      expect({ errors, found }).toEqual({ errors: 0, found: null })
      expect(states).toBeGreaterThan(1_000_000)
    },
    600_000,
  )

  it.each(formulas)(
    'keep %s as a formula, as long as whoever can go on does',
    async (name) => {
      const { errors, found, states } = await outcomeOf(name)
      expect({ errors, found }).toEqual({ errors: 0, found: null })
      expect(states).toBeGreaterThan(10_000)
    },
    120_000,
  )

  it.each(variants)(
    'are found out as $name, by an assertion of its own',
    async ({ name, breaks }) => {
      const { errors, found, story } = await outcomeOf(name)
      expect(errors).toBe(1)
      expect(found).toContain(breaks)
      expect(story).not.toEqual([])
    },
    120_000,
  )

  it('play FM_001 where a commit asks for no fence', async () => {
    expect((await outcomeOf('UNFENCED')).story).toEqual([
      'worker A leases job 0 as attempt 1',
      'the lease of job 0 expires',
      'worker B sees that the lease of job 0 has expired',
      'worker B takes job 0 back from attempt 1',
      'worker B leases job 0 as attempt 2',
      'worker B commits job 0 as attempt 2: effect number 1',
      'worker A commits job 0 as attempt 1: effect number 2',
    ])
  }, 120_000)
})
