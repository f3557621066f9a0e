import fc from 'fast-check'
import { decide, type FactTrigger, hardened, LIFECYCLES, leased, standard, task } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { COMMAND_KINDS, type History, histories } from './random-history.ts'

/** Some histories, the same ones each time: how often things happen must not be left to luck. */
function sample(lifecycles: typeof LIFECYCLES, runs = 300): History[] {
  return fc.sample(histories({ lifecycles }), { numRuns: runs, seed: 20_260_101 })
}

const triggersOf = (all: readonly History[]) =>
  new Set(all.flatMap(({ script }) => script.facts.map(({ trigger }) => trigger)))

describe('random histories', () => {
  it('consist of commands of which more than two in five are accepted', () => {
    for (const lifecycle of LIFECYCLES) {
      const told = sample([lifecycle]).flatMap((history) => history.told)
      const facts = told.filter(({ answer }) => answer.kind === 'fact')
      expect(facts.length / told.length, lifecycle.name).toBeGreaterThan(0.4)
      const noise = told.filter(({ answer }) => answer.kind === 'rejected')
      expect(noise.length / told.length, lifecycle.name).toBeGreaterThan(0.1)
    }
  })

  it('tell every command, and with every kind of fact that the lifecycles have', () => {
    const all = sample(LIFECYCLES, 600)
    const kinds = new Set(all.flatMap(({ told }) => told.map(({ command }) => command.kind)))
    expect([...kinds].sort()).toEqual([...COMMAND_KINDS].sort())
    const triggers = triggersOf(all)
    const missing = (
      [
        'create',
        'submit',
        'schedule',
        'due',
        'reschedule',
        'run-now',
        'prioritise',
        'replace',
        'claim',
        'start',
        'step',
        'commit',
        'done',
        'retry',
        'fail',
        'give-up',
        'reject',
        'expire',
        'release',
        'suspend',
        'exhaust',
        'stall',
        'cancel',
        'park',
        'redrive',
        'discard',
        'force',
        'repair',
      ] satisfies FactTrigger[]
    ).filter((trigger) => !triggers.has(trigger))
    expect(missing).toEqual([])
  })

  it('meet commits, crashes, give-ups, parks and redrives in each lifecycle', () => {
    for (const lifecycle of LIFECYCLES) {
      const triggers = triggersOf(sample([lifecycle]))
      const expected: FactTrigger[] = ['commit', 'done', 'expire', 'give-up', 'park', 'redrive']
      const missing = expected.filter((trigger) => !triggers.has(trigger))
      expect(missing, lifecycle.name).toEqual([])
    }
  })

  it('go beyond the first attempts, and also succeed', () => {
    for (const lifecycle of [standard, hardened, leased, task]) {
      const all = sample([lifecycle])
      const attempts = all.map(({ script }) => script.job.attempt)
      expect(attempts.filter((n) => n > 2).length, lifecycle.name).toBeGreaterThan(30)
      expect(all.some(({ script }) => script.facts.at(-1)?.outcome === 'succeeded')).toBe(true)
    }
  })

  it('contain late, repeated and foreign commands that are refused as stale', () => {
    const told = sample([hardened]).flatMap((history) => history.told)
    for (const mode of ['late', 'again', 'any'] as const) {
      const stale = told.filter(
        ({ mode: own, answer }) =>
          own === mode && answer.kind === 'rejected' && answer.error.code === 'E_STALE_FENCE',
      )
      expect(stale.length, mode).toBeGreaterThan(20)
    }
  })

  it('keep everything that is needed to decide each command again', () => {
    fc.assert(
      fc.property(histories(), ({ script, told }) => {
        for (const { command, context, before, answer } of told) {
          expect(decide(script.lifecycle, before, command, context)).toEqual(answer)
        }
      }),
    )
  })
})
