// What a changed artifact makes stale, and when a finished work item runs again (promise P14).
import { downstreamOf, freshnessOf, isUnchanged, staleOutputsOf } from 'pawl/rules'
import type { RunScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { factsOf, hash, hashesOf, runIn, staleIn, start, work, write } from './run-support.ts'

const SAME = { kind: 'same' }

/** a → X → b → Y → c → Z → d. */
function chain(): RunScript {
  const script = runIn('DRAFTING')
  write(script, 'a', 'a1')
  work(script, 'X', ['a'], { b: 'b1' })
  work(script, 'Y', ['b'], { c: 'c1' })
  work(script, 'Z', ['c'], { d: 'd1' })
  return script
}

/** a → X → b, a → Y → c, and b with c → Z → d; e stands beside it. */
function diamond(): RunScript {
  const script = runIn('DRAFTING')
  for (const source of ['a', 'e']) write(script, source, 1)
  work(script, 'X', ['a'], { b: 2 })
  work(script, 'Y', ['a'], { c: 3 })
  work(script, 'Z', ['b', 'c'], { d: 4 })
  work(script, 'W', ['e'], { f: 5 })
  return script
}

/** Asks for an item with the hashes that its inputs have now. */
const ask = (script: RunScript, key: string, ...reads: string[]) =>
  start(script, key, hashesOf(script.run, reads))

describe('what lies downstream of an artifact', () => {
  it('is everything that was made from it, directly or not, by name', () => {
    expect(downstreamOf(chain().run, 'a')).toEqual(['b', 'c', 'd'])
    expect(downstreamOf(chain().run, 'c')).toEqual(['d'])
    expect(downstreamOf(chain().run, 'd')).toEqual([])
    expect(downstreamOf(diamond().run, 'a')).toEqual(['b', 'c', 'd'])
    expect(downstreamOf(diamond().run, 'b')).toEqual(['d'])
    expect(downstreamOf(diamond().run, 'e')).toEqual(['f'])
  })

  it('holds what an item read while it ran, besides what it declared', () => {
    const script = runIn('DRAFTING')
    for (const source of ['a', 'b']) write(script, source, 1)
    start(script, 'X', { a: hash(1) })
    write(script, 'c', 1, 'X')
    script.applyCommand({ kind: 'finish-item', key: 'X', inputs: { b: hash(1) } })
    expect(downstreamOf(script.run, 'a')).toEqual(['c'])
    expect(downstreamOf(script.run, 'b')).toEqual(['c'])
  })

  it('does not hold the artifact itself, even if its item reads what it wrote', () => {
    const script = runIn('DRAFTING')
    write(script, 'a', 1)
    work(script, 'X', ['a'], { a: 1, b: 1 })
    expect(downstreamOf(script.run, 'a')).toEqual(['b'])
    expect(downstreamOf(script.run, 'b')).toEqual([])
  })

  it('is nothing for an artifact that nobody wrote, or whose item never started', () => {
    const script = runIn('DRAFTING')
    write(script, 'a', 1, 'never-started')
    expect(downstreamOf(script.run, 'a')).toEqual([])
    expect(downstreamOf(script.run, 'nothing')).toEqual([])
  })
})

describe('a change of an artifact', () => {
  it('marks everything downstream once, and says because of what', () => {
    const script = diamond()
    const facts = factsOf(write(script, 'a', 9))
    expect(facts.slice(1)).toEqual(
      ['b', 'c', 'd'].map((name) => ({ type: 'ARTIFACT_STALE', data: { name, because: 'a' } })),
    )
    expect(staleIn(script.run)).toEqual(['b', 'c', 'd'])
    expect(script.run.artifacts_index.d?.stale_because).toBe('a')
  })

  it('leaves the first cause in place when a second one comes', () => {
    const script = diamond()
    write(script, 'b', 9, 'X')
    expect(staleIn(script.run)).toEqual(['d'])
    const facts = factsOf(write(script, 'a', 9))
    expect(facts.slice(1).map(({ data }) => data)).toEqual([
      { name: 'b', because: 'a' },
      { name: 'c', because: 'a' },
    ])
    expect(script.run.artifacts_index.d?.stale_because).toBe('b')
  })

  it('is no change when the hash is the same, nor when the artifact is new', () => {
    const script = diamond()
    expect(factsOf(write(script, 'a', 1))).toHaveLength(1)
    expect(factsOf(write(script, 'g', 1))).toHaveLength(1)
    expect(staleIn(script.run)).toEqual([])
    // What was read under a hash may be put into the index later, under that same hash.
    start(script, 'V', { h: hash(1) })
    write(script, 'i', 1, 'V')
    expect(factsOf(write(script, 'h', 1))).toHaveLength(1)
    expect(staleIn(script.run)).toEqual([])
  })

  it('found on disk marks what depends on it, and not the artifact itself', () => {
    const script = diamond()
    const invalidate = { kind: 'invalidate-artifact', name: 'a' } as const
    expect(factsOf(script.applyCommand(invalidate)).map(({ data }) => data)).toEqual(
      ['b', 'c', 'd'].map((name) => ({ name, because: 'a' })),
    )
    expect(script.applyCommand(invalidate)).toEqual(SAME)
    expect(ask(script, 'X', 'a').kind).toBe('facts')
  })
})

describe('the wave after a change', () => {
  it('redoes a chain item by item, each because its input changed', () => {
    const script = chain()
    write(script, 'a', 'a2')
    work(script, 'X', ['a'], { b: 'b2' })
    expect(staleIn(script.run)).toEqual(['c', 'd'])
    work(script, 'Y', ['b'], { c: 'c2' })
    work(script, 'Z', ['c'], { d: 'd2' })
    expect(staleIn(script.run)).toEqual([])
    for (const [key, input] of [['X', 'a'] as const, ['Y', 'b'] as const, ['Z', 'c'] as const]) {
      expect(ask(script, key, input)).toEqual(SAME)
      expect(script.run.work_items[key]?.attempts).toBe(2)
    }
  })

  it('stops at an output that comes out as it was: what follows is only revalidated', () => {
    const script = chain()
    write(script, 'a', 'a2')
    work(script, 'X', ['a'], { b: 'b1' })
    for (const [key, input, output] of [['Y', 'b', 'c'] as const, ['Z', 'c', 'd'] as const]) {
      const stale = { kind: 'run', because: 'stale', artifact: output }
      const request = { key, inputs: hashesOf(script.run, [input]), code: null, forced: false }
      expect(freshnessOf(script.run, request)).toEqual(stale)
      factsOf(script.applyCommand({ kind: 'revalidate-artifact', name: output }))
      expect(ask(script, key, input)).toEqual(SAME)
    }
    expect(staleIn(script.run)).toEqual([])
  })

  it('is not hidden by revalidating an artifact whose input did change', () => {
    const script = chain()
    write(script, 'a', 'a2')
    factsOf(script.applyCommand({ kind: 'revalidate-artifact', name: 'b' }))
    const decision = ask(script, 'X', 'a')
    expect(factsOf(decision)).toMatchObject([{ data: { because: 'stale' } }])
  })

  it('marks what was revalidated too early again', () => {
    const script = chain()
    write(script, 'a', 'a2')
    factsOf(script.applyCommand({ kind: 'revalidate-artifact', name: 'd' }))
    work(script, 'X', ['a'], { b: 'b2' })
    expect(staleIn(script.run)).toEqual(['c', 'd'])
    expect(script.run.artifacts_index.d?.stale_because).toBe('b')
  })

  it('is over when a change was taken back before anything was redone', () => {
    const script = chain()
    write(script, 'a', 'a2')
    write(script, 'a', 'a1')
    expect(staleIn(script.run)).toEqual(['b', 'c', 'd'])
    for (const name of ['b', 'c', 'd'])
      factsOf(script.applyCommand({ kind: 'revalidate-artifact', name }))
    for (const [key, input] of [['X', 'a'] as const, ['Y', 'b'] as const, ['Z', 'c'] as const]) {
      expect(ask(script, key, input)).toEqual(SAME)
    }
  })

  it('does not run an item again and again because it no longer writes one of its outputs', () => {
    const script = runIn('DRAFTING')
    write(script, 'a', 1)
    work(script, 'X', ['a'], { b: 2, c: 3 })
    write(script, 'a', 9)
    work(script, 'X', ['a'], { b: 4 })
    expect(ask(script, 'X', 'a')).toEqual(SAME)
  })
})

/** Finished with a declared code version and a parameter besides an artifact. */
function finished(code?: string): RunScript {
  const script = runIn('DRAFTING')
  write(script, 'a', 1)
  start(script, 'X', { a: hash(1), model: 'small' }, code === undefined ? {} : { code })
  script.applyCommand({ kind: 'finish-item', key: 'X' })
  return script
}
const inputs = { a: hash(1), model: 'small' }
const why = (script: RunScript, more: object = {}) =>
  freshnessOf(script.run, { key: 'X', inputs, code: null, forced: false, ...more })

describe('a finished work item', () => {
  it('runs again when it is forced, even if nothing changed', () => {
    expect(why(finished())).toEqual({ kind: 'fresh' })
    expect(why(finished(), { forced: true })).toEqual({ kind: 'run', because: 'forced' })
  })

  it('runs again when its declared code version is another', () => {
    const changed = { kind: 'run', because: 'code_changed' }
    expect(why(finished('v1'), { code: 'v1' })).toEqual({ kind: 'fresh' })
    expect(why(finished('v1'), { code: 'v2' })).toEqual(changed)
    expect(why(finished(), { code: 'v1' })).toEqual(changed)
    const facts = factsOf(start(finished('v1'), 'X', inputs, { code: 'v2' }))
    expect(facts).toMatchObject([{ data: { code: 'v2', because: 'code_changed' } }])
  })

  it('does not run again because of code whose version is not declared', () => {
    expect(why(finished('v1'))).toEqual({ kind: 'fresh' })
    expect(why(finished())).toEqual({ kind: 'fresh' })
  })

  it('runs again when a parameter is another, is new or is gone', () => {
    const because = (artifact: string) => ({ kind: 'run', because: 'stale', artifact })
    expect(why(finished(), { inputs: { ...inputs, model: 'big' } })).toEqual(because('model'))
    expect(why(finished(), { inputs: { ...inputs, depth: '2' } })).toEqual(because('depth'))
    expect(why(finished(), { inputs: { a: hash(1) } })).toEqual(because('model'))
  })

  it('runs again when an artifact is another, by the request or by the index', () => {
    const because = { kind: 'run', because: 'stale', artifact: 'a' }
    expect(why(finished(), { inputs: { ...inputs, a: hash(2) } })).toEqual(because)
    const script = finished()
    expect(why(script, { inputs: { model: 'small' } })).toEqual({ kind: 'fresh' })
    write(script, 'a', 2)
    expect(why(script, { inputs: { model: 'small' } })).toEqual(because)
  })

  it('runs again when something that it only read while it ran has changed', () => {
    const script = finished()
    write(script, 'late', 1)
    start(script, 'Y', {})
    script.applyCommand({ kind: 'finish-item', key: 'Y', inputs: { late: hash(1) } })
    expect(start(script, 'Y', {})).toEqual(SAME)
    write(script, 'late', 2)
    expect(factsOf(start(script, 'Y', {}))).toMatchObject([{ data: { because: 'stale' } }])
  })

  it('names the first of several changes in the order of names', () => {
    const changed = { zeta: '1', model: 'big', beta: '1', a: hash(1) }
    expect(why(finished(), { inputs: changed })).toMatchObject({ artifact: 'beta' })
    const script = runIn('DRAFTING')
    write(script, 'src', 1)
    work(script, 'X', ['src'], { z: 1, b: 1 })
    script.applyCommand({ kind: 'invalidate-artifact', name: 'src' })
    expect(why(script, { inputs: { src: hash(1) } })).toMatchObject({ artifact: 'b' })
  })

  it('is not made stale by an artifact of another item', () => {
    const script = diamond()
    write(script, 'e', 9)
    expect(staleIn(script.run)).toEqual(['f'])
    expect(ask(script, 'X', 'a')).toEqual(SAME)
    expect(ask(script, 'Z', 'b', 'c')).toEqual(SAME)
  })
})

describe('an item that is stale in name only', () => {
  const askOf = (script: RunScript, key: string, ...inputs: string[]) => {
    const now = inputs.map((name) => [name, script.run.artifacts_index[name]?.sha256 ?? ''])
    return { key, inputs: Object.fromEntries(now), code: null, forced: false }
  }
  it('is unchanged once what was in doubt before it has come out the same', () => {
    const script = chain()
    write(script, 'a', 2)
    expect(staleOutputsOf(script.run, 'Y')).toEqual(['c'])
    // What it read is itself still in doubt.
    expect(isUnchanged(script.run, askOf(script, 'Y', 'b'))).toBe(false)
    work(script, 'X', ['a'], { b: 'b1' })
    expect(isUnchanged(script.run, askOf(script, 'Y', 'b'))).toBe(true)
  })

  it('is neither one that is new or fresh, nor one whose inputs have changed', () => {
    const script = chain()
    expect(isUnchanged(script.run, askOf(script, 'Z'))).toBe(false)
    expect(isUnchanged(script.run, askOf(script, 'Y', 'b'))).toBe(false)
    write(script, 'a', 2)
    expect(isUnchanged(script.run, askOf(script, 'X', 'a'))).toBe(false)
    expect(isUnchanged(script.run, { ...askOf(script, 'Y', 'b'), forced: true })).toBe(false)
  })

  it('is judged also by parameters, which are in no index', () => {
    const script = runIn('DRAFTING')
    write(script, 'a', 1)
    start(script, 'X', { a: hash(1), model: 'big' })
    write(script, 'b', 1, 'X')
    script.applyCommand({ kind: 'finish-item', key: 'X' })
    script.applyCommand({ kind: 'invalidate-artifact', name: 'a' })
    const request = { key: 'X', inputs: { a: hash(1), model: 'big' }, code: null, forced: false }
    expect(isUnchanged(script.run, request)).toBe(true)
  })
})
