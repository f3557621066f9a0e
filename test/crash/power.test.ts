// Power failures at moments of the life of a SQLite file; see chaos/power/moments.ts. Whoever skips
// a sync is caught: the same is done to writers that do, and must find their losses.
import { describe, expect, it } from 'vitest'
import { missingFrom, moments, unsound } from '../../chaos/power/moments.ts'
import { canRecord } from '../../chaos/power/record.ts'
import { freshFolder } from '../processes/folder.ts'
import { testSeed as seed } from '../support/seed.ts'

const states = Number(process.env.PAWL_TEST_STATES ?? 100)
const fewer = { states: Math.ceil(states / 3), seed }
const SLOW = { timeout: 60_000 + states * 200 }

const recordable = canRecord()
if (!recordable) {
  process.stderr.write('Power failures are not tested: strace is missing, or may not trace here.\n')
}

describe.runIf(recordable)('when the power fails', () => {
  it('nothing that was acknowledged is missing, and every promise holds', SLOW, async () => {
    let seen = 0
    for await (const moment of moments(freshFolder(), { durability: 'full', states, seed })) {
      expect(missingFrom(moment), moment.what).toEqual([])
      expect(await unsound(moment), moment.what).toEqual([])
      seen++
    }
    expect(seen).toBeGreaterThanOrEqual(states)
  })

  it('a relaxed store may lose the last writes, but never a promise', SLOW, async () => {
    let lossy = 0
    for await (const moment of moments(freshFolder(), { ...fewer, durability: 'relaxed' })) {
      if (missingFrom(moment).length > 0) lossy++
      expect(await unsound(moment), moment.what).toEqual([])
    }
    expect(lossy).toBeGreaterThan(0)
  })

  it('a writer that never syncs is caught', SLOW, async () => {
    let lossy = 0
    for await (const moment of moments(freshFolder(), { ...fewer, durability: 'off' })) {
      if (missingFrom(moment).length > 0) lossy++
    }
    expect(lossy).toBeGreaterThan(0)
  })
})
