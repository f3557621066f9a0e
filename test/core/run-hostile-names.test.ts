// Names come from users: those that are members of every object are names like any other.
import { downstreamOf, encode, foldRun, freshnessOf } from 'pawl/rules'
import type { RunScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { factsOf, fieldOf, hash, runIn, snapshotOf, start, throughText } from './run-support.ts'

const TRAPS = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'length']

/** An object literal would take `__proto__` for the prototype. */
const recordOf = <T>(key: string, value: T): Record<string, T> => Object.fromEntries([[key, value]])

const ownKeys = (record: object) => Object.keys(record).sort()

/** The replayed run is the same one, byte for byte. */
function expectReplay(script: RunScript) {
  expect(foldRun(throughText(script.events))).toEqual(script.run)
  expect(snapshotOf(throughText(script.events))).toBe(encode(script.run))
}

describe('the name of a member of every object', () => {
  it('is unknown until something was given it', () => {
    for (const trap of TRAPS) {
      const script = runIn('DRAFTING')
      expect(fieldOf(script.applyCommand({ kind: 'resolve-issue', issue: trap }))).toBe('issue')
      expect(fieldOf(script.applyCommand({ kind: 'finish-item', key: trap }))).toBe('key')
      expect(fieldOf(script.applyCommand({ kind: 'fail-item', key: trap, error: 'e' }))).toBe('key')
      for (const kind of ['invalidate-artifact', 'revalidate-artifact'] as const) {
        expect(script.applyCommand({ kind, name: trap }).kind).toBe('rejected')
      }
      expect(downstreamOf(script.run, trap)).toEqual([])
    }
  })

  it('names an artifact, which is found again', () => {
    for (const trap of TRAPS) {
      const script = runIn('DRAFTING')
      const artifact = { name: trap, path: 'p', sha256: hash(1), worker: 'w' }
      factsOf(script.applyCommand({ kind: 'write-artifact', ...artifact }))
      expect(ownKeys(script.run.artifacts_index)).toEqual([trap])
      expect(Object.getPrototypeOf(script.run.artifacts_index)).toBe(Object.prototype)
      expect(script.applyCommand({ kind: 'revalidate-artifact', name: trap })).toEqual({
        kind: 'same',
      })
      expectReplay(script)
    }
  })

  it('names a section, whose first state comes from nothing', () => {
    for (const trap of TRAPS) {
      const script = runIn('DRAFTING')
      const decision = script.applyCommand({ kind: 'change-section', section: trap, to: 'drafted' })
      expect(factsOf(decision)[0]?.data).toMatchObject({ section: trap, from_state: null })
      expect(Object.entries(script.run.section_states)).toEqual([[trap, 'drafted']])
      expectReplay(script)
    }
  })

  it('names an issue, which is opened once and resolved once', () => {
    for (const trap of TRAPS) {
      const script = runIn('DRAFTING')
      const open = { kind: 'open-issue', issue: trap, severity: 'error', message: 'm' } as const
      expect(script.applyCommand(open).kind).toBe('facts')
      expect(script.applyCommand(open)).toEqual({ kind: 'same' })
      expect(script.applyCommand({ kind: 'resolve-issue', issue: trap }).kind).toBe('facts')
      const issues = Object.entries(script.run.issues).map(([key, { status }]) => [key, status])
      expect(issues).toEqual([[trap, 'resolved']])
      expectReplay(script)
    }
  })
})

describe('a work item or an input with such a name', () => {
  it('is new at first and fresh when it has finished', () => {
    for (const trap of TRAPS) {
      const script = runIn('DRAFTING')
      expect(factsOf(start(script, trap))).toMatchObject([{ data: { because: 'new' } }])
      factsOf(script.applyCommand({ kind: 'finish-item', key: trap }))
      expect(start(script, trap)).toEqual({ kind: 'same' })
      expect(Object.entries(script.run.work_items)).toMatchObject([[trap, { attempts: 1 }]])
      expectReplay(script)
    }
  })

  it('is found when an input has changed', () => {
    for (const trap of TRAPS) {
      const script = runIn('DRAFTING')
      const source = { name: trap, path: 'p', sha256: hash(1), worker: 'w' }
      factsOf(script.applyCommand({ kind: 'write-artifact', ...source }))
      start(script, trap, recordOf(trap, hash(1)))
      const made = { name: 'out', path: 'q', sha256: hash(2), worker: 'w', workItem: trap }
      factsOf(script.applyCommand({ kind: 'write-artifact', ...made }))
      const more = recordOf('read-late', hash(3))
      factsOf(script.applyCommand({ kind: 'finish-item', key: trap, inputs: more }))
      const item = Object.entries(script.run.work_items)[0]?.[1]
      expect(ownKeys(item?.inputs ?? {})).toEqual([trap, 'read-late'].sort())
      expect(downstreamOf(script.run, trap)).toEqual(['out'])
      const inputs = Object.fromEntries([[trap, hash(9)], ...Object.entries(more)])
      const request = { key: trap, inputs, code: null, forced: false }
      expect(freshnessOf(script.run, request)).toMatchObject({ because: 'stale', artifact: trap })
      const changed = factsOf(
        script.applyCommand({ kind: 'write-artifact', ...source, sha256: hash(9) }),
      )
      expect(changed[1]).toEqual({ type: 'ARTIFACT_STALE', data: { name: 'out', because: trap } })
      expectReplay(script)
    }
  })

  it('does not depend on what it did not read', () => {
    for (const trap of TRAPS) {
      const script = runIn('DRAFTING')
      start(script, 'X', { a: hash(1) })
      const made = { name: 'out', path: 'q', sha256: hash(2), worker: 'w', workItem: 'X' }
      factsOf(script.applyCommand({ kind: 'write-artifact', ...made }))
      factsOf(script.applyCommand({ kind: 'finish-item', key: 'X' }))
      const source = { name: trap, path: 'p', sha256: hash(1), worker: 'w' }
      for (const sha256 of [hash(1), hash(2)]) {
        expect(
          factsOf(script.applyCommand({ kind: 'write-artifact', ...source, sha256 })),
        ).toHaveLength(1)
      }
    }
  })

  it('does not reach into the prototype of other objects', () => {
    const script = runIn('DRAFTING')
    for (const section of TRAPS)
      script.applyCommand({ kind: 'change-section', section, to: 'polluted' })
    const probe: Record<string, unknown> = {}
    expect(probe.polluted).toBeUndefined()
    expect(probe.toString).toBe(Object.prototype.toString)
    expect(Object.keys(script.run.section_states)).toHaveLength(TRAPS.length)
  })
})
