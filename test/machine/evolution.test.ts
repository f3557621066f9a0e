// Versions of a lifecycle: which mappings are sound, how a job is migrated, and by which version
// each fact of it is judged.
import type { Job, Lifecycle } from 'pawl'
import {
  checkFacts,
  checkP2,
  checkP6,
  checkP9,
  defineLifecycle,
  type Fact,
  fold,
  hopsOf,
  LIFECYCLES,
  type LifecycleSpec,
  MachineUnsound,
  standard,
} from 'pawl/rules'
import { givenJob, JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { decideMigrate } from '../../src/core/job/decide-migrate.ts'
import {
  compareDefinitions,
  definitionOf,
  restoreLifecycle,
} from '../../src/core/lifecycles/definition.ts'
import { findMappingProblems } from '../../src/core/lifecycles/migration.ts'
import { parcel1, parcel2, parcel3 } from '../contract/store/parcels.ts'

const parcels = [parcel1, parcel2, parcel3]

function without(facts: readonly Fact[], seq: number, change: Partial<Fact>): Fact[] {
  return facts.map((fact) => (fact.seq === seq ? { ...fact, ...change } : fact))
}

function next(from: LifecycleSpec['from'], spec: Partial<LifecycleSpec> = {}): Lifecycle {
  const states = [...parcel2.roles].map(([state, role]) => [state, { role, meaning: 'As it was.' }])
  return defineLifecycle({
    name: 'parcel',
    version: 2,
    initial: 'ready',
    states: Object.fromEntries(states),
    edges: parcel2.machine.edges,
    ...(from !== undefined && { from }),
    ...spec,
  })
}

describe('a mapping', () => {
  it('names earlier versions and states of its own lifecycle only', () => {
    for (const from of [{ 2: {} }, { 3: {} }, { 0: {} }, { 1: { packed: 'nowhere' } }]) {
      expect(() => next(from as never)).toThrow(MachineUnsound)
    }
  })

  it('is checked by the compiler', () => {
    defineLifecycle({
      name: 'parcel',
      version: 4,
      initial: 'ready',
      states: {
        ready: { role: 'ready', meaning: 'Waits.' },
        held: { role: 'held', meaning: 'Runs.' },
        done: { role: 'succeeded', meaning: 'Is done.' },
        failed: { role: 'failed', meaning: 'Failed.' },
      },
      edges: [
        { from: 'ready', to: 'held', on: ['claim'] },
        { from: 'held', to: 'done', on: ['succeed'] },
        { from: 'held', to: 'ready', on: ['release', 'retry', 'expire'] },
        { from: 'held', to: 'failed', on: ['fail', 'give-up', 'reject', 'cancel'] },
      ],
      from: { 1: { packed: 'ready' } },
    })
    type Four = 'ready' | 'held'
    const mapping: NonNullable<LifecycleSpec<Four>['from']> = {
      // @ts-expect-error "nowhere" is no state of this version
      2: { ready: 'nowhere' },
    }
    expect(mapping).toBeDefined()
  })

  it('keeps the names of states that it does not list', () => {
    expect(findMappingProblems(parcel1, parcel2)).toEqual([])
    expect(findMappingProblems(parcel2, parcel3)).toEqual([])
  })

  it('must have a target for every state in which a live job can be', () => {
    expect(findMappingProblems(parcel1, next({ 1: { packed: 'ready' } }))).toEqual([
      'underway has no target',
      'missed has no target',
    ])
  })

  it('must mean the same to the scheduler, and keep outcomes', () => {
    const mapping = { packed: 'carried', underway: 'ready', missed: 'failed', lost: 'delivered' }
    const problems = findMappingProblems(parcel1, next({ 1: { ...mapping, never: 'ready' } }))
    expect(problems).toEqual([
      'version 1 has no state never',
      'packed (ready) cannot become carried (held)',
      'underway (held) cannot become ready (ready)',
      'missed (waiting) cannot become failed (failed)',
      'lost (failed) cannot become delivered (succeeded)',
    ])
  })

  it('does not lead into a waiting state that no due time ends', () => {
    const edges = parcel2.machine.edges.map((edge) =>
      edge.on.includes('due') ? { ...edge, on: ['run-now' as const] } : edge,
    )
    const mapping = { packed: 'again', underway: 'carried', missed: 'again' }
    expect(findMappingProblems(parcel1, next({ 1: mapping }, { edges }))).toEqual([
      'packed (ready) cannot become again (waiting)',
      'missed (waiting) cannot become again (waiting)',
    ])
  })
})

describe('a migration', () => {
  it('changes version and state, and nothing else', () => {
    const script = new JobScript(parcel1)
    script.create({ tags: ['a'], priority: 3 })
    script.claim()
    const before = script.job
    script.migrate(parcel2, script.fence)
    expect(script.job).toEqual({
      ...before,
      lifecycleVersion: 2,
      state: 'carried',
      seq: before.seq + 1,
    })
    expect(script.facts.at(-1)).toMatchObject({
      trigger: 'migrate',
      from: 'underway',
      to: 'carried',
      migrated: { from: 1, to: 2 },
    })
  })

  it('is judged by the version that was in force', () => {
    const script = new JobScript(parcel1)
    script.create()
    script.claim()
    const { fence } = script
    script.applyCommand({ kind: 'fail', fence, failure: failure('retryable') }, { actor: 'worker' })
    script.migrate(parcel2)
    script.clock.advance(1000)
    script.applyCommand({ kind: 'due' }, { actor: 'engine' })
    script.claim()
    script.applyCommand({ kind: 'commit', fence: script.fence }, { actor: 'worker' })
    expect(script.refusals).toEqual([])
    expect(checkFacts(parcel2, script.facts, parcels)).toEqual([])
    expect(checkP9(script.job, script.facts)).toEqual([])
    // What an unknown version did is not judged; everything after it is.
    expect(checkFacts(parcel2, script.facts)).toEqual([])
    const forged = without(script.facts, 5, { from: 'again', to: 'stuck' })
    expect(checkP2(parcel2, forged, parcels).map(({ what }) => what)).toContain(
      'due does not take again → stuck',
    )
  })

  it('that leads elsewhere, back, or does more breaks P2', () => {
    const script = new JobScript(parcel1)
    script.create()
    script.migrate(parcel2)
    const what = (change: Partial<Fact>) =>
      checkP2(parcel2, without(script.facts, 2, change), parcels).map((found) => found.what)
    expect(what({})).toEqual([])
    expect(what({ to: 'stuck' })).toEqual(['packed → stuck is not in the mapping'])
    expect(what({ outcome: 'failed' })).toEqual(['changed more than the version'])
    expect(what({ migrated: { from: 2, to: 2 } })).toContain('went back to version 2')
    expect(what({ from: null })).toEqual(['starts in null, not in packed'])
    expect(checkP2(parcel1, script.facts)).toEqual([])
    expect(script.facts.map(hopsOf)).toEqual([[], []])
  })

  it('after a repair of an unknown version is judged, and the repair is not', () => {
    const script = new JobScript(parcel1)
    script.create()
    const [created] = script.facts
    const repaired = { trigger: 'repair', rebased: script.job } as Partial<Fact>
    const facts = [{ ...created, ...repaired }] as Fact[]
    script.migrate(parcel2)
    expect(checkP2(parcel2, [...facts, ...script.facts.slice(1)])).toEqual([])
  })

  it('of a damaged job is refused, and a parked job without a reason stays parked', () => {
    const script = new JobScript(parcel1)
    script.create()
    const context = { now: 0, random: 0, actor: 'engine' } as const
    const nowhere = { ...script.job, state: 'nowhere' } as Job
    expect(decideMigrate(parcel1, parcel2, nowhere, context)).toMatchObject({
      kind: 'rejected',
      error: { code: 'E_MIGRATION_INVALID' },
    })
    const second = new JobScript(parcel2)
    second.create()
    second.operate({ kind: 'park' })
    const parked = { ...second.job, reason: null } as Job
    expect(decideMigrate(parcel2, parcel3, parked, context)).toMatchObject({
      kind: 'fact',
      fact: { blockedReason: 'parked' },
    })
  })

  it('is folded only from the version that it leaves', () => {
    const script = new JobScript(parcel1)
    script.create()
    script.migrate(parcel2)
    const broken = (change: Partial<Fact>) => () => fold(without(script.facts, 2, change))
    expect(broken({ migrated: { from: 2, to: 3 } })).toThrow('it migrates from 2, not from 1')
    expect(broken({ migrated: { from: 1, to: 1 } })).toThrow('it migrates from 1 to 1')
    expect(broken({ trigger: 'force' })).toThrow('it is not a migration')
    const execution = { attempt: 1, statuses: ['LEASED'] } as const
    expect(broken({ execution })).toThrow('a migration must not change an attempt')
  })

  it('keeps a parked job parked where the new version has no state for it', () => {
    const script = new JobScript(parcel2)
    script.create()
    script.operate({ kind: 'park' })
    script.migrate(parcel3)
    expect(script.job).toMatchObject({ state: 'ready', blockedReason: 'parked' })
    script.operate({ kind: 'redrive' })
    expect(script.job).toMatchObject({ state: 'ready', blockedReason: null })
    expect(checkFacts(parcel3, script.facts, parcels)).toEqual([])
  })

  it('does not touch a job whose lease runs, unless its holder asks', () => {
    const running = givenJob(parcel1, (job) => {
      job.create()
      job.claim()
    })
    running.when((job) => job.migrate(parcel2)).thenRefused('E_LEASE_LIVE')
    running.when((job) => job.migrate(parcel2, job.fence)).thenState('carried')
    const stale = { attempt: 1, claim: 'another' }
    running.when((job) => job.migrate(parcel2, stale)).thenRefused('E_STALE_FENCE')
    const late = running.when((job) => {
      job.clock.advance(30_000)
      return job.migrate(parcel2)
    })
    late.thenState('carried')
  })

  it('refuses succeeded jobs, other lifecycles and versions that are not mapped', () => {
    const ready = givenJob(parcel1, (job) => void job.create())
    ready.when((job) => job.migrate(parcel3)).thenRefused('E_MIGRATION_INVALID')
    ready.when((job) => job.migrate(standard)).thenRefused('E_LIFECYCLE_UNKNOWN')
    const done = givenJob(parcel1, (job) => {
      job.create()
      job.claim()
      job.applyCommand({ kind: 'commit', fence: job.fence }, { actor: 'worker' })
    })
    done.when((job) => job.migrate(parcel2)).thenRefused('E_JOB_ENDED')
  })

  it('of an ended job is the first part of an operator edge, or breaks P6', () => {
    const script = new JobScript(parcel1)
    script.create()
    script.applyCommand({ kind: 'cancel' })
    script.migrate(parcel2)
    expect(script.job).toMatchObject({ state: 'failed', outcome: 'failed' })
    expect(checkP6(parcel2, script.facts, parcels)).toHaveLength(1)
    script.operate({ kind: 'redrive' })
    expect(checkFacts(parcel2, script.facts, parcels)).toEqual([])
  })
})

describe('a stored definition', () => {
  it('gives back the same lifecycle but for its words', () => {
    for (const lifecycle of [...LIFECYCLES, ...parcels]) {
      const text = definitionOf(lifecycle)
      const restored = restoreLifecycle(lifecycle.name, lifecycle.version, text) as Lifecycle
      expect(definitionOf(restored)).toBe(text)
      expect([restored.ready, restored.held]).toEqual([lifecycle.ready, lifecycle.held])
      expect(compareDefinitions(text, lifecycle)).toEqual({ kind: 'same' })
    }
  })

  it('of an earlier release is completed', () => {
    const states = Object.fromEntries(parcel1.roles)
    const old = JSON.stringify({ states, edges: parcel1.machine.edges })
    const definition = definitionOf(parcel1)
    expect(compareDefinitions(old, parcel1)).toEqual({ kind: 'extended', definition })
    expect(restoreLifecycle('parcel', 1, old)?.machine.initial).toBe('packed')
  })

  it('says which parts were changed', () => {
    const parts = (other: Lifecycle) => {
      const compared = compareDefinitions(definitionOf(parcel2), other)
      return compared.kind === 'changed' ? compared.parts : compared.kind
    }
    const mapping = { 1: { packed: 'ready', underway: 'carried', missed: 'ready' } }
    const { policy } = parcel2
    expect(parts(next(mapping, { policy }))).toEqual(['from 1'])
    expect(parts(next(undefined, { policy }))).toBe('same')
    expect(parts(next(undefined, { retryFixed: true }))).toEqual(['policy', 'retryFixed'])
  })

  it('that is damaged is no lifecycle', () => {
    for (const text of ['', '{', 'null', '{}', '{"states":{},"edges":[]}', '{"states":1}']) {
      expect(restoreLifecycle('parcel', 1, text)).toBeUndefined()
    }
    const compared = compareDefinitions('{', parcel1)
    expect(compared).toEqual({ kind: 'damaged' })
  })
})

function failure(kind: 'retryable') {
  return { class: kind, kind: 'transient', message: 'boom' } as const
}
