// Waiters: jobs that wait for others. What starts them, what a failed dependency means, and what a
// person may do meanwhile.
import type { Lifecycle } from 'pawl'
import {
  type Command,
  checkFacts,
  defineLifecycle,
  hopsOf,
  laneOf,
  leased,
  standard,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import type { CreateCommand } from '../../src/core/job/commands.ts'
import { findLinkFaults } from '../../src/core/job/link-promise.ts'
import { type After, LINKS, type Look, nodesOf } from '../../src/core/job/links.ts'
import { overdueFacts } from '../../src/core/job/overdue.ts'
import { checkP19 } from '../../src/core/promises.ts'
import { EVERY_LIFECYCLE, tiny } from './job-play.ts'

const FLOW = { id: '00000000-0000-7000-8000-00000000f10a', n: 2 }
const OTHER = '00000000-0000-7000-8000-0000000000aa'
const needs = (fields: Partial<After> = {}, need: 'success' | 'failure' = 'success'): After => ({
  groups: [{ name: 'all', of: [[0, 1]], need, list: true }],
  onFailure: 'park',
  ...fields,
})

/** A dependent that was just created. */
function dependent(
  lifecycle: Lifecycle = standard,
  own: After = needs(),
  more: Partial<CreateCommand> = {},
): JobScript {
  const script = new JobScript(lifecycle)
  script.create({ flow: FLOW, after: own, ...more })
  return script
}

const arrive = (script: JobScript, look: Look) => script.applyCommand({ kind: 'arrive', look })
const OPEN = { open: true }
const ALL = { open: false }

/** A parent that waits for its children. */
function parent(lifecycle: Lifecycle = standard): JobScript {
  const script = new JobScript(lifecycle)
  script.create()
  script.claim()
  const wait = { for: 'children', name: 'kids', n: 1, until: null, children: 2 } as const
  script.applyCommand({ kind: 'wait', fence: script.fence, wait })
  return script
}

const codeOf = (answer: ReturnType<JobScript['applyCommand']>) =>
  answer.kind === 'rejected' ? answer.error.code : answer.kind

describe.each(EVERY_LIFECYCLE)('a dependent in lifecycle $name', (lifecycle) => {
  it('waits in its initial state, without a due time', () => {
    const { job } = dependent(lifecycle)
    expect(job).toMatchObject({ state: lifecycle.machine.initial, runAt: null, node: 2 })
    expect(job.links).toBe(LINKS.waits)
    expect(laneOf(lifecycle, job, job.createdAt)).toBe('idle')
  })

  it('is released when all have arrived, and can then be claimed', () => {
    const script = dependent(lifecycle)
    expect(arrive(script, OPEN).kind).toBe('same')
    expect(script.claim().kind).toBe('rejected')
    expect(arrive(script, ALL).kind).toBe('fact')
    expect(script.job).toMatchObject({ state: lifecycle.ready, links: 0, reason: 'arrived' })
    expect(arrive(script, ALL).kind).toBe('same')
    expect(script.claim().kind).toBe('fact')
    expect(checkFacts(lifecycle, script.facts)).toEqual([])
  })

  it('is parked by a failed dependency, waits again, and is released', () => {
    const script = dependent(lifecycle)
    expect(arrive(script, { open: true, failed: OTHER }).kind).toBe('fact')
    expect(script.job).toMatchObject({
      ...{ state: lifecycle.machine.initial, blockedReason: 'dependency_failed' },
    })
    expect(script.facts.at(-1)).toMatchObject({ trigger: 'park', dependency: OTHER })
    expect(laneOf(lifecycle, script.job, 0)).toBe('parked')
    expect(arrive(script, { open: false, failed: OTHER }).kind).toBe('same')
    expect(arrive(script, OPEN).kind).toBe('fact')
    expect(script.job).toMatchObject({ blockedReason: null, reason: null })
    arrive(script, { open: false, failed: OTHER })
    expect(arrive(script, ALL).kind).toBe('fact')
    expect(script.job).toMatchObject({ state: lifecycle.ready, blockedReason: null, links: 0 })
    expect(checkFacts(lifecycle, script.facts)).toEqual([])
  })

  it('is failed by a failed dependency, as a job that was claimed and failed', () => {
    const script = dependent(lifecycle, needs({ onFailure: 'fail' }))
    expect(arrive(script, { open: true, failed: OTHER }).kind).toBe('fact')
    const last = script.facts.at(-1)
    expect(last?.execution).toMatchObject({ worker: 'engine', statuses: ['LEASED', 'ABORTED'] })
    expect(script.job).toMatchObject({ attempt: 1, execution: null })
    expect(script.job.error).toMatchObject({ kind: 'dependency_failed', type: 'TERMINAL' })
    expect(script.job.links & LINKS.waits).toBe(LINKS.waits)
    expect(checkFacts(lifecycle, script.facts)).toEqual([])
  })

  it('is cancelled by a failed dependency, or if the failure that it needs does not come', () => {
    const script = dependent(lifecycle, needs({ onFailure: 'cancel' }))
    arrive(script, { open: true, failed: OTHER })
    expect(script.facts.at(-1)).toMatchObject({ trigger: 'cancel', dependency: OTHER })
    const other = dependent(lifecycle, needs({}, 'failure'))
    arrive(other, ALL)
    expect(other.facts.at(-1)).toMatchObject({ trigger: 'cancel', reason: 'not_needed' })
    for (const { facts } of [script, other]) expect(checkFacts(lifecycle, facts)).toEqual([])
  })

  it('is failed where it waits when its deadline has passed', () => {
    const script = dependent(lifecycle, needs(), { deadlineAt: 5_000_000_000_000 })
    const context = { now: 5_000_000_000_000, random: 0, actor: 'engine' } as const
    const [fact, ...rest] = overdueFacts(lifecycle, script.job, context, OTHER)
    expect(rest).toEqual([])
    expect(fact).toMatchObject({ trigger: 'arrive', reason: 'deadline' })
    arrive(script, { open: true, failed: OTHER })
    expect(overdueFacts(lifecycle, script.job, context, OTHER)).toEqual([])
  })
})

describe('a dependent', () => {
  it('whose dependency must fail is released by the first that does', () => {
    const script = dependent(standard, needs({}, 'failure'))
    expect(arrive(script, { open: true, hit: OTHER }).kind).toBe('fact')
    expect(script.facts.at(-1)).toMatchObject({ trigger: 'arrive', dependency: OTHER })
    expect(script.job).toMatchObject({ state: 'queued', links: LINKS.failure })
  })

  it.each<Command>([
    { kind: 'submit' },
    { kind: 'schedule', runAt: 1 },
    { kind: 'reschedule', runAt: 1 },
    { kind: 'redrive' },
  ])('is not started by $kind', (command) => {
    const script = dependent()
    const answer =
      command.kind === 'redrive' ? script.operate(command) : script.applyCommand(command)
    expect(codeOf(answer)).toBe('E_DEPENDENCY_OPEN')
  })

  it('can be prioritised, replaced, parked, forced and cancelled', () => {
    const script = dependent()
    expect(script.applyCommand({ kind: 'prioritise', priority: 3 }).kind).toBe('fact')
    expect(script.applyCommand({ kind: 'replace' }).kind).toBe('fact')
    script.operate({ kind: 'park' })
    expect(script.job).toMatchObject({ state: 'quarantined', links: LINKS.waits })
    expect(arrive(script, ALL).kind).toBe('same')
    expect(codeOf(script.operate({ kind: 'redrive', arrived: false }))).toBe('E_DEPENDENCY_OPEN')
    script.operate({ kind: 'redrive', arrived: true })
    expect(script.job).toMatchObject({ state: 'queued', links: 0 })
    const forced = dependent()
    forced.operate({ kind: 'force', to: 'queued' })
    expect(forced.job).toMatchObject({ state: 'queued', links: 0 })
    expect(checkFacts(standard, forced.facts)).toEqual([])
    const cancelled = dependent()
    cancelled.applyCommand({ kind: 'cancel' })
    expect(cancelled.job).toMatchObject({ state: 'cancelled', links: LINKS.waits })
    expect(arrive(cancelled, ALL).kind).toBe('same')
  })

  it('that waits for a failure is not started by a redrive when none can happen', () => {
    const script = dependent(standard, needs({}, 'failure'))
    script.operate({ kind: 'park' })
    expect(codeOf(script.operate({ kind: 'redrive', missed: false }))).toBe('E_DEPENDENCY_OPEN')
    script.operate({ kind: 'redrive', missed: true })
    expect(script.job).toMatchObject({ state: 'cancelled', reason: 'not_needed' })
    expect(checkFacts(standard, script.facts)).toEqual([])
  })

  it('that a person parked without a state starts when it is redriven', () => {
    const script = dependent(leased)
    script.operate({ kind: 'park' })
    expect(arrive(script, ALL).kind).toBe('same')
    script.operate({ kind: 'redrive', arrived: true })
    expect(script.job).toMatchObject({ blockedReason: null, links: 0, reason: 'arrived' })
    expect(script.facts.at(-1)).toMatchObject({ trigger: 'arrive', operator: 'ann' })
    expect(script.claim().kind).toBe('fact')
    expect(checkFacts(leased, script.facts)).toEqual([])
  })
})

describe('a parent', () => {
  it('waits for its children, and is resumed when all have ended', () => {
    const script = parent()
    const { waits, children } = LINKS
    expect(script.job).toMatchObject({ state: 'waiting', runAt: null, reason: 'children:kids' })
    expect(script.job.links).toBe(waits | children)
    expect(arrive(script, OPEN).kind).toBe('same')
    expect(arrive(script, ALL).kind).toBe('fact')
    expect(script.job).toMatchObject({ state: 'queued', links: children, reason: 'resumed' })
    expect(checkFacts(standard, script.facts)).toEqual([])
  })

  it('that is parked waits for nothing, and is redriven like any other', () => {
    const script = parent()
    script.operate({ kind: 'park' })
    expect(script.job.links).toBe(LINKS.children)
    script.operate({ kind: 'redrive' })
    expect(script.job.state).toBe('queued')
  })

  it('whose children have all ended does not suspend', () => {
    const script = new JobScript(standard)
    script.create()
    script.claim()
    const wait = { for: 'children', name: 'kids', n: 1, until: null, children: 0 } as const
    script.applyCommand({ kind: 'wait', fence: script.fence, wait, ended: true })
    expect(script.facts.at(-1)).toMatchObject({ trigger: 'receive' })
    expect(script.job.links).toBe(0)
    expect(checkFacts(standard, script.facts)).toEqual([])
  })

  const states = {
    ready: { role: 'ready', meaning: 'm' },
    held: { role: 'held', meaning: 'm' },
    asleep: { role: 'waiting', meaning: 'm' },
    good: { role: 'succeeded', meaning: 'm' },
    bad: { role: 'failed', meaning: 'm' },
  } as const
  const edges = [
    { from: 'ready', to: 'held', on: ['claim', 'cancel'] },
    { from: 'held', to: 'good', on: ['succeed'] },
    { from: 'held', to: 'ready', on: ['expire', 'release'] },
    { from: 'held', to: 'bad', on: ['fail', 'give-up', 'reject', 'cancel'] },
    { from: 'held', to: 'asleep', on: ['wait'] },
  ] as const
  const withWay = (on: 'due' | 'run-now') =>
    defineLifecycle({
      name: `by-${on}`,
      version: 1,
      initial: 'ready',
      states,
      edges: [
        ...edges,
        { from: 'asleep', to: 'ready', on: [on] },
        { from: 'asleep', to: 'bad', on: ['cancel'] },
      ],
    })

  it('leaves its state by its time if the lifecycle has no signals', () => {
    const script = parent(withWay('due'))
    expect(arrive(script, ALL).kind).toBe('fact')
    expect(script.job.state).toBe('ready')
    expect(checkFacts(script.lifecycle, script.facts)).toEqual([])
    expect(codeOf(arrive(parent(withWay('run-now')), ALL))).toBe('E_UNSUPPORTED')
  })
})

describe('commands of flows', () => {
  const create = (fields: object) => {
    const script = new JobScript(standard)
    const command = { kind: 'create', jobId: OTHER, type: 't', queue: 'q', ...fields }
    return codeOf(script.applyCommand(command as Command))
  }
  const bad = (groups: unknown) => ({ flow: FLOW, after: { groups, onFailure: 'park' } })
  const group = { name: 'g', of: [1], need: 'end', list: false }

  it.each<[string, object]>([
    ['a flow without an id', { flow: { n: 1 } }],
    ['a flow with a negative number', { flow: { ...FLOW, n: -1 } }],
    ['a flow with an empty name', { flow: { ...FLOW, as: '' } }],
    ['no flow', { flow: 1 }],
    ['no flag', { flow: FLOW, awaited: 1 }],
    ['dependencies without a flow', { after: needs() }],
    ['an unknown policy', { flow: FLOW, after: { groups: [], onFailure: 'ignore' } }],
    ['no dependencies', { flow: FLOW, after: 1 }],
    ['no group', bad([1])],
    ['a group without a name', bad([{ ...group, name: '' }])],
    ['a group with an unknown need', bad([{ ...group, need: 'luck' }])],
    ['a group that is no list or one', bad([{ ...group, list: 1 }])],
    ['a group of nothing', bad([{ ...group, of: 1 }])],
    ['a group of a negative number', bad([{ ...group, of: [-1] }])],
    ['a range that is none', bad([{ ...group, of: [[1]] }])],
    ['a range with a fraction', bad([{ ...group, of: [[1, 1.5]] }])],
    ['a range that ends before it begins', bad([{ ...group, of: [[2, 1]] }])],
    ['two groups of one name', bad([group, group])],
    ['a dependent with `hold`', { ...bad([group]), hold: true }],
    ['a dependent with a due time', { ...bad([group]), runAt: 1 }],
  ])('refuse %s', (_, fields) => {
    expect(create(fields)).toBe('E_COMMAND_INVALID')
  })

  it('accept members, numbers and ranges', () => {
    const { job } = dependent(standard, {
      groups: [
        { name: 'a', of: 'members', need: 'failure', list: true },
        { name: 'b', of: [0, [1, 3]], need: 'end', list: false },
      ],
      onFailure: 'cancel',
    })
    const { waits, cancels, members, failure } = LINKS
    expect(job.links).toBe(waits | cancels | members | failure)
    expect(nodesOf([0, [2, 4]])).toEqual([0, 2, 3, 4])
    const awaited = new JobScript(standard)
    awaited.create({ flow: { ...FLOW, as: 'kids/1' }, awaited: true })
    expect(awaited.job).toMatchObject({ links: LINKS.awaited, flow: FLOW.id, state: 'queued' })
    expect(awaited.facts[0]).toMatchObject({ as: 'kids/1' })
  })

  it.each<[string, Partial<Command> & { readonly kind: string }]>([
    ['a look that is none', { kind: 'arrive', look: 1 as never }],
    ['a look without an answer', { kind: 'arrive', look: {} as never }],
    ['a look at no id', { kind: 'arrive', look: { open: true, hit: 'x' } }],
    ['an unknown reason', { kind: 'cancel', reason: 'boredom' as never }],
  ])('refuse %s', (_, command) => {
    expect(codeOf(dependent().applyCommand(command as Command))).toBe('E_COMMAND_INVALID')
  })

  it('refuse waits for children that are none', () => {
    const script = new JobScript(standard)
    script.create()
    script.claim()
    const wait = { for: 'children', name: 'k', n: 1, until: null, children: 1 } as const
    const all = [
      { ...wait, until: 1 },
      { ...wait, children: -1 },
      { ...wait, concurrency: 0 },
      { ...wait, abandons: 1 },
    ]
    for (const one of all) {
      const command = { kind: 'wait', fence: script.fence, wait: one } as Command
      expect(codeOf(script.applyCommand(command))).toBe('E_COMMAND_INVALID')
    }
    const bounded = { ...wait, concurrency: 2, abandons: true } as const
    const command = { kind: 'wait', fence: script.fence, wait: bounded } as const
    expect(script.applyCommand(command).kind).toBe('fact')
  })

  it('cancel a child in the name of its parent', () => {
    const script = new JobScript(tiny)
    script.create()
    script.applyCommand({ kind: 'cancel', reason: 'parent_ended' })
    expect(script.job.reason).toBe('parent_ended')
  })
})

describe('P19', () => {
  it('reports a job that was started while it waits, and a release of one that does not', () => {
    const script = dependent()
    arrive(script, ALL)
    script.claim()
    const [created, released, claimed] = script.facts
    if (!created || !released || !claimed) throw new Error('three facts')
    const early = { ...claimed, seq: 2, from: 'created' }
    expect(findLinkFaults([created, early])).toEqual([
      { seq: 2, what: 'was started while it waits for other jobs' },
    ])
    expect(checkP19(standard, [{ ...created, links: 0 }, released])).toEqual([
      { promise: 'P19', seq: 2, what: 'was released although it waits for no other job' },
    ])
    expect(hopsOf(released)).toEqual([{ from: 'created', to: 'queued' }])
    expect(findLinkFaults([claimed], LINKS.waits)).toHaveLength(1)
  })
})
