import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type GateKind, gateName } from '../../src/core/limits/keys.ts'
import { fullName, shortName } from '../../src/core/limits/short-names.ts'

describe('short names of limits', () => {
  it('leave out the kind of shared limits and of those of a job type', () => {
    expect(shortName('shared/openai')).toBe('openai')
    expect(shortName('job/sync/tenant')).toBe('sync/tenant')
    expect(shortName('type/sync')).toBe('type/sync')
    expect(shortName('queue/mail')).toBe('queue/mail')
    expect(shortName('rate/sync/calls')).toBe('rate/sync/calls')
    expect(shortName('not a gate')).toBe('not a gate')
    expect(shortName('shared/-x')).toBe('shared/-x')
    expect(shortName('job/type/sync')).toBe('job/type/sync')
  })

  it('become full names again, whatever characters they have', () => {
    const kinds = { queue: 1, type: 1, job: 2, shared: 1, rate: 2, strict: 1, group: 1 }
    const kind = fc.constantFrom(...(Object.keys(kinds) as GateKind[]))
    const part = fc.string({ minLength: 1, unit: fc.constantFrom(...'a-/%2F=+ ', 'type', 'é') })
    fc.assert(
      fc.property(kind, part, part, (kind, first, second) => {
        const limit = gateName(kind, ...[first, second].slice(0, kinds[kind]))
        expect(fullName(shortName(limit))).toBe(limit)
      }),
    )
  })

  it('are none of an empty name or of too many parts', () => {
    expect(fullName('')).toBeUndefined()
    expect(fullName('a/b/c')).toBeUndefined()
  })
})
