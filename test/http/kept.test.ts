// Numbers that are costly to compute: kept for a time that depends on their cost.
import { describe, expect, it } from 'vitest'
import { Kept } from '../../src/http/kept.ts'

/** Numbers that take `costMs` to compute, under a time of its own. */
function counting(keepMs: number) {
  const state = { at: 1000, costMs: 0, computed: 0 }
  const compute = async () => {
    state.at += state.costMs
    return ++state.computed
  }
  return { state, kept: new Kept(compute, { now: () => state.at }, keepMs) }
}

describe('a kept value', () => {
  it('is computed for each request if it is quick', async () => {
    const { state, kept } = counting(0)
    state.costMs = 19
    expect([await kept.get(), await kept.get()]).toEqual([1, 2])
  })

  it('is kept for twenty times as long as it took, and for ten seconds at most', async () => {
    const { state, kept } = counting(0)
    state.costMs = 20
    expect(await kept.get()).toBe(1)
    state.at += 399
    expect(await kept.get()).toBe(1)
    state.at += 1
    state.costMs = 5000
    expect(await kept.get()).toBe(2)
    state.at += 9999
    expect(await kept.get()).toBe(2)
    state.at += 1
    expect(await kept.get()).toBe(3)
  })

  it('is kept for its least time, however quick it was', async () => {
    const { state, kept } = counting(1000)
    expect(await kept.get()).toBe(1)
    state.at += 999
    expect(await kept.get()).toBe(1)
    state.at += 1
    expect(await kept.get()).toBe(2)
  })

  it('is shared by all who ask while it is computed', async () => {
    const { kept } = counting(0)
    expect(await Promise.all([kept.get(), kept.get(), kept.get()])).toEqual([1, 1, 1])
  })

  it('that is forgotten while it is computed is not kept, and is computed again', async () => {
    const { state, kept } = counting(1000)
    const before = kept.get()
    kept.forget()
    const after = kept.get()
    expect([await before, await after]).toEqual([1, 2])
    expect(await kept.get()).toBe(2)
    kept.forget()
    expect(await kept.get()).toBe(3)
    expect(state.computed).toBe(3)
  })
})
