// What `defineLifecycle` and `policyFor` refuse, and that a user's own lifecycle runs.
import {
  analyse,
  checkFacts,
  checkP9,
  DEFAULT_POLICY,
  DefinitionInvalid,
  defineLifecycle,
  document,
  findLifecycle,
  hardened,
  hopsOf,
  LIFECYCLES,
  type LifecycleSpec,
  LifecycleUnknown,
  leased,
  MachineUnsound,
  type PolicyOverrides,
  pathOf,
  policyFor,
  type Role,
  standard,
  task,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'

type Edges = LifecycleSpec['edges']
const state = (role: Role) => ({ role, meaning: `It is ${role}.` })

/** The smallest lifecycle there can be, with something changed. */
const spec = (change: Partial<LifecycleSpec> = {}): LifecycleSpec => ({
  name: 'small',
  version: 1,
  initial: 'todo',
  states: {
    todo: state('ready'),
    doing: state('held'),
    done: state('succeeded'),
    lost: state('failed'),
  },
  edges: [
    { from: 'todo', to: 'doing', on: ['claim'] },
    { from: 'doing', to: 'done', on: ['succeed'] },
    { from: 'doing', to: 'lost', on: ['fail', 'give-up', 'reject', 'cancel'] },
    { from: 'doing', to: 'todo', on: ['expire', 'release'] },
  ],
  ...change,
})
const { states, edges } = spec()

function problemsOf(change: Partial<LifecycleSpec>): unknown {
  try {
    defineLifecycle(spec(change))
  } catch (error) {
    if (error instanceof MachineUnsound) return error.details.problems
    throw error
  }
  return 'nothing'
}

/** The edges without a trigger; an edge that would be left with none gets a harmless other one. */
const without = (trigger: string): Edges =>
  edges.map((edge) => {
    const on = edge.on.filter((own) => own !== trigger)
    return { ...edge, on: on.length > 0 ? on : ['discard'] }
  })

describe('the roles of a lifecycle', () => {
  it('are sound in the smallest lifecycle there can be', () => {
    expect(problemsOf({})).toBe('nothing')
  })

  it.each<[role: string, states: LifecycleSpec['states'], problem: string]>([
    [
      'no ready state',
      { ...states, todo: state('waiting') },
      'it has 0 ready states instead of one',
    ],
    ['no held state', { ...states, doing: state('idle') }, 'it has 0 held states instead of one'],
    [
      'no succeeded state',
      { ...states, done: state('failed') },
      'it has 0 succeeded states instead of one',
    ],
    [
      'two succeeded states',
      { ...states, lost: state('succeeded') },
      'it has 2 succeeded states instead of one',
    ],
  ])('are refused with %s', (_what, own, problem) => {
    expect(problemsOf({ states: own })).toEqual([problem])
  })

  it.each<[role: Role, problem: string]>([
    ['ready', 'it has 2 ready states instead of one'],
    ['held', 'it has 2 held states instead of one'],
  ])('are refused with a second %s state', (role, problem) => {
    const more: Edges = [
      { from: 'todo', to: 'extra', on: ['reschedule'] },
      { from: 'extra', to: 'todo', on: ['run-now'] },
    ]
    const own = { ...states, extra: state(role) }
    expect(problemsOf({ states: own, edges: [...edges, ...more] })).toEqual([problem])
  })

  it('are refused with two parked states', () => {
    const more: Edges = [
      { from: 'todo', to: 'aside', on: ['park'] },
      { from: 'doing', to: 'apart', on: ['park'] },
      { from: 'aside', to: 'todo', on: ['redrive'] },
      { from: 'apart', to: 'todo', on: ['redrive'] },
    ]
    const own = { ...states, aside: state('parked'), apart: state('parked') }
    expect(problemsOf({ states: own, edges: [...edges, ...more] })).toEqual([
      'it has more than one parked state',
    ])
  })

  it('are refused with all their problems at once', () => {
    const own = { todo: state('idle'), doing: state('idle'), done: state('failed') }
    const lost = { lost: state('failed') }
    expect(problemsOf({ states: { ...own, ...lost } })).toEqual([
      'it has 0 ready states instead of one',
      'it has 0 held states instead of one',
      'it has 0 succeeded states instead of one',
    ])
  })

  it('are refused after the machine itself: an unsound one is named as such', () => {
    expect(problemsOf({ initial: 'nowhere' })).toEqual([
      'the initial state "nowhere" is not declared',
    ])
    expect(problemsOf({ edges: edges.slice(1) })).toContain('doing cannot be reached')
  })
})

describe('the triggers of a lifecycle', () => {
  it.each(['fail', 'give-up', 'reject', 'expire', 'release', 'cancel'])(
    'must say what %s means for a held job',
    (trigger) => {
      expect(problemsOf({ edges: without(trigger) })).toEqual([`doing has no edge for ${trigger}`])
    },
  )

  it('must say how a held job succeeds', () => {
    expect(problemsOf({ edges: without('succeed') })).toEqual([
      'doing has no edge for succeed',
      'succeed must lead from doing to done in one step',
    ])
  })

  it('must say how a ready job is claimed', () => {
    expect(problemsOf({ edges: without('claim') })).toEqual([
      'claim must lead from todo to doing in one step',
    ])
  })

  it('must claim in one step', () => {
    const own = { ...states, near: state('waiting') }
    const detour: Edges = [
      { from: 'todo', to: 'near', on: ['claim'] },
      { from: 'near', to: 'doing', on: ['claim'] },
    ]
    expect(problemsOf({ states: own, edges: [...detour, ...edges.slice(1)] })).toEqual([
      'claim must lead from todo to doing in one step',
    ])
  })

  it('must succeed in one step', () => {
    const own = { ...states, near: state('waiting') }
    const detour: Edges = [
      { from: 'doing', to: 'near', on: ['succeed'] },
      { from: 'near', to: 'done', on: ['succeed'] },
    ]
    const others = edges.filter(({ to }) => to !== 'done')
    expect(problemsOf({ states: own, edges: [...others, ...detour] })).toEqual([
      'succeed must lead from doing to done in one step',
    ])
  })

  it('must not lead in a circle', () => {
    const own = { ...states, here: state('waiting'), there: state('waiting') }
    const circle: Edges = [
      { from: 'todo', to: 'here', on: ['reschedule'] },
      { from: 'here', to: 'there', on: ['reschedule'] },
      { from: 'there', to: 'here', on: ['reschedule'] },
      { from: 'here', to: 'todo', on: ['due'] },
    ]
    expect(problemsOf({ states: own, edges: [...edges, ...circle] })).toEqual([
      'the path of reschedule from todo is a cycle',
    ])
  })

  it('must not lead back to where they began', () => {
    const own = { ...states, here: state('waiting') }
    const back: Edges = [
      { from: 'todo', to: 'here', on: ['reschedule'] },
      { from: 'here', to: 'todo', on: ['reschedule'] },
    ]
    expect(problemsOf({ states: own, edges: [...edges, ...back] })).toEqual([
      'the path of reschedule from todo is a cycle',
    ])
  })

  it('must end in one state, wherever they begin', () => {
    const own = { ...states, gone: state('cancelled') }
    const other: Edges = [{ from: 'todo', to: 'gone', on: ['cancel'] }]
    expect(problemsOf({ states: own, edges: [...edges, ...other] })).toEqual([
      'cancel from todo does not end in lost',
    ])
  })

  it.each(['submit', 'due', 'redrive', 'run-now'] as const)('must end %s in ready', (trigger) => {
    const own = { ...states, early: state('idle'), near: state('waiting') }
    const astray: Edges = [
      { from: 'early', to: 'near', on: [trigger] },
      { from: 'near', to: 'todo', on: ['schedule'] },
    ]
    expect(problemsOf({ initial: 'early', states: own, edges: [...edges, ...astray] })).toEqual([
      `${trigger} must end in todo, not in near`,
    ])
  })

  it('must end release in ready', () => {
    const own = { ...states, near: state('waiting') }
    const astray: Edges = [
      { from: 'doing', to: 'near', on: ['release'] },
      { from: 'near', to: 'todo', on: ['due'] },
    ]
    expect(problemsOf({ states: own, edges: [...without('release'), ...astray] })).toEqual([
      'release must end in todo, not in near',
    ])
  })

  it('must have park where there is a parked state', () => {
    const own = { ...states, aside: state('parked') }
    const more: Edges = [
      { from: 'todo', to: 'aside', on: ['reschedule'] },
      { from: 'aside', to: 'todo', on: ['redrive'] },
    ]
    expect(problemsOf({ states: own, edges: [...edges, ...more] })).toEqual([
      'small must have a parked state and a path to it by park, or neither',
    ])
  })

  it('are refused with all their problems at once', () => {
    const few: Edges = [
      { from: 'todo', to: 'doing', on: ['claim'] },
      { from: 'doing', to: 'done', on: ['succeed'] },
      { from: 'doing', to: 'lost', on: ['fail'] },
    ]
    expect(problemsOf({ edges: few })).toEqual([
      'doing has no edge for give-up',
      'doing has no edge for reject',
      'doing has no edge for expire',
      'doing has no edge for release',
      'doing has no edge for cancel',
    ])
  })
})

describe('a lifecycle of a user', () => {
  const courier = defineLifecycle({
    name: 'courier',
    version: 2,
    initial: 'draft',
    states: {
      draft: { role: 'idle', meaning: 'Not handed in yet.' },
      shelf: { role: 'ready', meaning: 'On the shelf.' },
      out: { role: 'held', meaning: 'Out for delivery.' },
      returned: { role: 'waiting', meaning: 'Nobody was at home.' },
      delivered: { role: 'succeeded', meaning: 'Delivered.' },
      customs: { role: 'parked', meaning: 'Held by customs.' },
      lost: { role: 'failed', meaning: 'Lost.' },
      recalled: { role: 'cancelled', meaning: 'Recalled by its sender.' },
    },
    edges: [
      { from: 'draft', to: 'shelf', on: ['submit'] },
      { from: 'shelf', to: 'out', on: ['claim', 'park'] },
      { from: 'out', to: 'delivered', on: ['succeed'] },
      { from: 'out', to: 'returned', on: ['retry', 'expire', 'give-up', 'reject', 'park'] },
      { from: 'returned', to: 'shelf', on: ['due'] },
      { from: 'returned', to: 'customs', on: ['give-up', 'reject', 'park'] },
      { from: 'out', to: 'shelf', on: ['release'] },
      { from: 'out', to: 'lost', on: ['fail'] },
      { from: 'out', to: 'recalled', on: ['cancel'] },
      { from: 'draft', to: 'recalled', on: ['cancel'] },
      { from: 'customs', to: 'shelf', on: ['redrive'], operator: true },
    ],
    policy: { retry: { max: 1, delayMs: 500, jitter: 0 } },
  })

  it('knows its roles, its paths and its policy', () => {
    const { ready, held, succeeded, parked } = courier
    expect({ ready, held, succeeded, parked }).toEqual({
      ready: 'shelf',
      held: 'out',
      succeeded: 'delivered',
      parked: 'customs',
    })
    expect(pathOf(courier, 'out', 'give-up')).toEqual(['returned', 'customs'])
    expect(pathOf(courier, 'shelf', 'park')).toEqual(['out', 'returned', 'customs'])
    // Outcomes of an attempt begin in the held state alone, though edges carry them elsewhere.
    expect(pathOf(courier, 'returned', 'give-up')).toBeUndefined()
    expect(pathOf(courier, 'nowhere', 'claim')).toBeUndefined()
    expect(courier.targets.get('cancel')).toBe('recalled')
    expect(courier.targets.has('suspend')).toBe(false)
    expect(courier.policy.retry).toMatchObject({ max: 1, delayMs: 500, backoff: 'fixed' })
    expect(courier.crash).toEqual({ spends: 'crash', delayMs: 'as-retry' })
    expect(analyse(courier.machine).terminal).toEqual(['delivered', 'lost', 'recalled'])
    expect(Object.isFrozen(courier)).toBe(true)
  })

  it('runs a job from end to end', () => {
    const script = new JobScript(courier)
    const failure = { class: 'retryable', kind: 'unavailable', message: 'not at home' } as const
    script.create({ hold: true })
    script.applyCommand({ kind: 'submit' })
    script.claim()
    script.applyCommand({ kind: 'fail', fence: script.fence, failure })
    script.clock.advance(500)
    script.applyCommand({ kind: 'due' })
    script.claim()
    script.applyCommand({ kind: 'release', fence: script.fence })
    script.claim()
    script.applyCommand({ kind: 'fail', fence: script.fence, failure })
    script.operate({ kind: 'redrive' })
    script.operate({ kind: 'park' })
    script.operate({ kind: 'redrive' })
    script.claim()
    script.applyCommand({ kind: 'commit', fence: script.fence })

    const steps = script.facts.map((fact) =>
      hopsOf(fact)
        .map(({ to }) => to)
        .join(' '),
    )
    expect(steps).toEqual([
      '',
      'shelf',
      'out',
      'returned',
      'shelf',
      'out',
      'shelf',
      'out',
      'returned customs',
      'shelf',
      'out returned customs',
      'shelf',
      'out',
      'delivered',
    ])
    expect(script.job).toMatchObject({ state: 'delivered', attempt: 5, outcome: 'succeeded' })
    expect(script.job).toMatchObject({ lifecycle: 'courier', lifecycleVersion: 2 })
    expect(checkFacts(courier, script.facts)).toEqual([])
    expect(checkP9(script.job, script.facts)).toEqual([])
  })

  it('is found by name and version, and never guessed', () => {
    const known = [...LIFECYCLES, courier]
    expect(findLifecycle('courier', 2, known)).toBe(courier)
    expect(() => findLifecycle('courier', 1, known)).toThrow(LifecycleUnknown)
    expect(() => findLifecycle('courier', 2)).toThrow(LifecycleUnknown)
    expect(() => findLifecycle('standard', 1)).toThrow(/"standard" version 1 is not known to/)
  })
})

describe('the policy of a job type', () => {
  it('has the documented numbers where nothing is said', () => {
    const numbers = LIFECYCLES.map((own) => {
      const { retry, crashesMax, releasesMax, recovery } = policyFor(own)
      return [own.name, retry.max, retry.delayMs, retry.jitter, crashesMax, releasesMax, recovery]
    })
    expect(numbers).toEqual([
      ['standard', 3, 1000, 1, 3, 100, 'automatic'],
      ['hardened', 3, 1000, 1, 3, 100, 'automatic'],
      ['leased', 3, 1000, 1, 3, 100, 'automatic'],
      ['document', 3, 1000, 0, 3, 100, 'automatic'],
      ['task', 0, 1000, 0, 2, 100, 'automatic'],
    ])
    expect(DEFAULT_POLICY.retry.backoff).toBe('fixed')
  })

  it.each([document, task])('cannot change how $name retries, not even to the same', (own) => {
    const refused: PolicyOverrides[] = [
      { retry: {} },
      { retry: { max: 5 } },
      { retry: 'fixed' },
      { retry: 'exponential' },
      { retry: own.policy.retry },
    ]
    for (const overrides of refused) {
      expect(() => policyFor(own, overrides)).toThrow(DefinitionInvalid)
      expect(() => policyFor(own, overrides)).toThrow(/fixes its retry policy/)
    }
    expect(policyFor(own, { crashesMax: 7 })).toEqual({ ...own.policy, crashesMax: 7 })
  })

  it.each([standard, hardened, leased])('may change how $name retries', (own) => {
    expect(policyFor(own, { retry: 'exponential' }).retry).toEqual({
      ...own.policy.retry,
      backoff: 'exponential',
    })
    expect(policyFor(own, { retry: { max: 9, jitter: 0 } }).retry).toMatchObject({
      max: 9,
      jitter: 0,
      delayMs: 1000,
    })
    expect(policyFor(own, { recovery: 'operator', releasesMax: 1 })).toMatchObject({
      recovery: 'operator',
      releasesMax: 1,
      crashesMax: 3,
    })
    // The lifecycle's own policy is not changed by what a job type overrides.
    expect(own.policy).toEqual(DEFAULT_POLICY)
  })
})

describe('every bound of a policy', () => {
  const year = 366 * 24 * 60 * 60 * 1000
  const whole = (max: number) => [-1, 0.5, max + 1, Number.NaN, Number.POSITIVE_INFINITY, '3']
  const wrong: [field: string, values: unknown[]][] = [
    ['retry.max', whole(10_000)],
    ['retry.delayMs', whole(year)],
    ['retry.delayMaxMs', whole(year)],
    ['retry.factor', [0.99, 100.01, Number.NaN]],
    ['retry.jitter', [-0.01, 1.01, Number.NaN]],
    ['retry.backoff', ['linear', '', null]],
    ['crashesMax', whole(10_000)],
    ['releasesMax', whole(10_000)],
    ['recovery', ['manual', '', true]],
  ]
  const right: [field: string, values: unknown[]][] = [
    ['retry.max', [0, 10_000]],
    ['retry.delayMs', [0, year]],
    ['retry.delayMaxMs', [0, year]],
    ['retry.factor', [1, 1.5, 100]],
    ['retry.jitter', [0, 0.5, 1]],
    ['retry.backoff', ['fixed', 'exponential']],
    ['crashesMax', [0, 10_000]],
    ['releasesMax', [0, 10_000]],
    ['recovery', ['automatic', 'operator']],
  ]
  const override = (field: string, value: unknown): PolicyOverrides => {
    const [name = '', inner] = field.split('.')
    return { [name]: inner === undefined ? value : { [inner]: value } }
  }

  it.each(wrong)('refuses what lies beyond it: %s', (field, values) => {
    for (const value of values) {
      try {
        policyFor(standard, override(field, value))
        expect.unreachable(`${field} was ${value}`)
      } catch (error) {
        expect(error).toBeInstanceOf(DefinitionInvalid)
        expect(error).toMatchObject({ code: 'E_DEFINITION_INVALID', details: { what: field } })
      }
    }
  })

  it.each(right)('accepts what lies on it: %s', (field, values) => {
    for (const value of values) {
      expect(policyFor(standard, override(field, value))).toMatchObject(override(field, value))
    }
  })

  it('holds for the policy of a lifecycle too', () => {
    expect(() => defineLifecycle(spec({ policy: { crashesMax: -1 } }))).toThrow(DefinitionInvalid)
    expect(() => defineLifecycle(spec({ policy: { retry: { jitter: 2 } } }))).toThrow(
      /retry.jitter/,
    )
  })
})
