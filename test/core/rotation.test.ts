/** Groups that take turns, and strict groups: the rules, without a store. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  grant,
  LOOK_AGAIN_MS,
  maxOf,
  newGate,
  STRICT_LOOK_MS,
} from '../../src/core/limits/gates.ts'
import {
  compareGates,
  isRotating,
  isStrict,
  type LimitKey,
  limitKeys,
  parseGate,
  readKeys,
  strictGroupOf,
  writeKeys,
} from '../../src/core/limits/keys.ts'
import { afterTurns, type Group, inTurns, looksAt } from '../../src/core/limits/rotation.ts'
import { groupsLeft, holdsGroup } from '../../src/core/limits/strict.ts'

const group = (key: string, weight = 1, credit = weight): Group => ({
  key,
  turn: 0,
  credit,
  weight,
})

describe('keys of groups', () => {
  it('are the first of the keys of a job, and are read as they were written', () => {
    const rotating: LimitKey[] = [
      { gate: 'job/t/a/k', max: 5 },
      { gate: 'group/q/k', weight: 3 },
    ]
    expect(writeKeys(rotating)).toBe('group/q/k=3 job/t/a/k=5')
    expect(readKeys('group/q/k=3 job/t/a/k=5')).toEqual(rotating.toReversed())
    const strict: LimitKey[] = [{ gate: 'shared/a' }, { gate: 'strict/t/k', skip: true }]
    expect(writeKeys(strict)).toBe('strict/t/k=0 shared/a')
    expect(readKeys('strict/t/k=0 shared/a')).toEqual(strict.toReversed())
    expect(strictGroupOf('strict/t/k=0 shared/a')).toEqual({ gate: 'strict/t/k', skip: true })
    expect(strictGroupOf('strict/t/k')).toEqual({ gate: 'strict/t/k' })
    expect(strictGroupOf('shared/a')).toBeUndefined()
    expect(strictGroupOf(null)).toBeUndefined()
    expect(['queue/z', 'group/a', 'strict/a', 'job/a/b'].toSorted(compareGates)).toEqual([
      'queue/z',
      'group/a',
      'strict/a',
      'job/a/b',
    ])
    expect([isStrict('strict/a'), isStrict('group/a')]).toEqual([true, false])
    expect([isRotating('strict/a'), isRotating('group/a')]).toEqual([false, true])
    expect(parseGate('group/q')).toEqual({ kind: 'group', limit: 'group/q', names: ['q'] })
  })

  it('are refused if they are not those of one group', () => {
    const fine: LimitKey[][] = [
      [{ gate: 'strict/t/k' }],
      [{ gate: 'strict/t/k', skip: true }],
      [{ gate: 'group/q/k' }],
      [{ gate: 'group/q/k', weight: 1000 }],
    ]
    for (const keys of fine) expect(limitKeys(keys)).toBeUndefined()
    const refused: LimitKey[][] = [
      [{ gate: 'strict/t' }],
      [{ gate: 'group/q' }],
      [{ gate: 'strict/t/k', max: 1 }],
      [{ gate: 'strict/t/k', units: 1 }],
      [{ gate: 'strict/t/k', weight: 1 }],
      [{ gate: 'group/q/k', skip: true }],
      [{ gate: 'group/q/k', max: 1 }],
      [{ gate: 'group/q/k', weight: 0 }],
      [{ gate: 'group/q/k', weight: 1001 }],
      [{ gate: 'group/q/k', weight: 1.5 }],
      [{ gate: 'shared/a', weight: 1 }],
      [{ gate: 'shared/a', skip: true }],
      [{ gate: 'group/q/k' }, { gate: 'strict/t/k' }],
      [{ gate: 'strict/t/a' }, { gate: 'strict/t/b' }],
    ]
    for (const keys of refused) expect(limitKeys(keys), JSON.stringify(keys)).toBeDefined()
  })
})

describe('strict groups', () => {
  const gate = 'strict/t/k'
  const keys = [{ gate }]
  const locked = new Map([[gate, newGate(gate)]])

  it('start the first job only, and one at a time', () => {
    const first = { createdAt: 1, keys }
    const second = { createdAt: 2, keys, behind: true } as const
    const { grants, gates } = grant([second, first], locked, new Map(), 5)
    expect(grants).toEqual([
      { kind: 'blocked', by: gate },
      { kind: 'granted', slots: [gate] },
    ])
    expect(gates.get(gate)).toMatchObject({ used: 1, waiting: true, openAt: null })
    const again = grant([first], gates, new Map(), 6)
    expect(again.grants).toEqual([{ kind: 'blocked', by: gate }])
  })

  it('are looked at rarely while their first job is not blocked', () => {
    const { gates } = grant([{ createdAt: 2, keys, behind: true }], locked, new Map(), 5)
    expect(gates.get(gate)?.openAt).toBe(5 + STRICT_LOOK_MS)
    expect(STRICT_LOOK_MS).toBeGreaterThan(LOOK_AGAIN_MS)
  })

  it('can be paused by an operator, and never widened', () => {
    const of = (name: string, override: number | null) =>
      new Map([[name, { name, max: 1, periodMs: null, burst: null, override }]])
    const max = (settings: ReturnType<typeof of>) => maxOf({ key: gate, asked: null }, settings)
    expect(max(new Map())).toBe(1)
    expect(max(of('strict/t', null))).toBe(1)
    expect(max(of('strict/t', 0))).toBe(0)
    expect(max(of(gate, 0))).toBe(0)
    expect(max(of(gate, 7))).toBe(1)
  })

  it('other gates of a job that is behind count as ever', () => {
    const both = [{ gate: 'shared/a' }, { gate }]
    const { grants } = grant([{ createdAt: 1, keys: both, behind: true }], locked, new Map(), 5)
    expect(grants).toEqual([{ kind: 'blocked', by: gate }])
  })

  it('are held until a job has committed or ended, and by parked jobs unless skipped', () => {
    const lanes = ['idle', 'waiting', 'ready', 'held', 'blocked'] as const
    for (const lane of lanes) expect(holdsGroup(lane, true)).toBe(true)
    expect(holdsGroup('parked', false)).toBe(true)
    expect(holdsGroup('parked', true)).toBe(false)
    expect(holdsGroup('ended', false)).toBe(false)
    expect(holdsGroup('delivering', false)).toBe(false)
  })

  it('are left by a job that holds them no longer', () => {
    expect(groupsLeft(null, null, 'ended')).toEqual([])
    expect(groupsLeft('shared/a', 'shared/a', 'ended')).toEqual([])
    expect(groupsLeft(gate, gate, 'ready')).toEqual([])
    expect(groupsLeft(gate, gate, 'ended')).toEqual([gate])
    expect(groupsLeft(gate, gate, 'parked')).toEqual([])
    expect(groupsLeft(`${gate}=0`, `${gate}=0`, 'parked')).toEqual([gate])
    expect(groupsLeft(gate, 'strict/t/other', 'ready')).toEqual([gate])
    expect(groupsLeft(gate, null, 'ready')).toEqual([gate])
  })
})

describe('turns', () => {
  const jobs = (counts: Readonly<Record<string, number>>) =>
    new Map(
      Object.entries(counts).map(([key, n]) => [
        key,
        Array.from({ length: n }, (_, i) => `${key}${i}`),
      ]),
    )
  const orderOf = (groups: Group[], counts: Readonly<Record<string, number>>, wanted: number) =>
    inTurns(groups, jobs(counts), wanted)
      .map(({ job }) => job)
      .join(' ')

  it('go round by weight, and begin with what is left of the first turn', () => {
    const groups = [group('a', 3, 1), group('b', 2), group('c')]
    expect(orderOf(groups, { a: 9, b: 9, c: 9 }, 9)).toBe('a0 b0 b1 c0 a1 a2 a3 b2 b3')
    expect(orderOf(groups, { a: 2, b: 0 }, 9)).toBe('a0 a1')
    expect(orderOf([], {}, 9)).toBe('')
  })

  it('look at no more jobs than they may need', () => {
    const groups = [group('a', 3, 1), group('b', 2)]
    expect(looksAt(groups, 2).map(({ jobs }) => jobs)).toEqual([1, 2])
    expect(looksAt(groups, 4).map(({ jobs }) => jobs)).toEqual([4, 4])
    expect(looksAt([group('a')], 100).map(({ jobs }) => jobs)).toEqual([100])
    expect(looksAt([], 5)).toEqual([])
  })

  const found = (counts: Readonly<Record<string, readonly [number, boolean]>>) =>
    new Map(Object.entries(counts).map(([key, [jobs, all]]) => [key, { jobs, all }]))
  const started = (key: string) => ({ group: key, started: true })
  const blocked = (key: string) => ({ group: key, started: false })

  it('end when the weight is used up, or the jobs are', () => {
    const groups = [group('a', 2), group('b'), group('c', 3)]
    const seen = found({ a: [2, false], b: [0, true], c: [1, true] })
    const tried = [started('a'), started('a'), started('c')]
    expect(afterTurns(groups, tried, seen)).toEqual([
      { key: 'a', credit: 2, toEnd: true },
      { key: 'b', credit: 1, toEnd: true },
      { key: 'c', credit: 3, toEnd: true },
    ])
  })

  it('go on with the next claim if this one asked for less', () => {
    const seen = found({ a: [1, false], b: [1, false] })
    expect(afterTurns([group('a', 3), group('b')], [started('a')], seen)).toEqual([
      { key: 'a', credit: 2, toEnd: false },
    ])
  })

  it('are kept by a group whose jobs a limit blocks', () => {
    const seen = found({ a: [1, true] })
    expect(afterTurns([group('a', 2)], [blocked('a')], seen)).toEqual([])
  })

  it('put a group to the end once, however many turns it had', () => {
    const groups = [group('a'), group('b')]
    const tried = [started('a'), started('b'), started('a')]
    expect(afterTurns(groups, tried, found({ a: [9, false], b: [1, false] }))).toEqual([
      { key: 'b', credit: 1, toEnd: true },
      { key: 'a', credit: 1, toEnd: true },
    ])
    expect(afterTurns([group('x')], [], new Map())).toEqual([{ key: 'x', credit: 1, toEnd: true }])
  })
})

/** A queue with its groups, as the stores keep it, and what every group has had since its turn. */
class Queue {
  readonly weights: readonly number[]
  readonly waiting: number[]
  readonly line = new Map<number, { turn: number; credit: number }>()
  /** For each group: how many jobs of each group have started since its last turn ended. */
  readonly since: number[][]
  #turn = 0

  constructor(weights: readonly number[]) {
    this.weights = weights
    this.waiting = weights.map(() => 0)
    this.since = weights.map(() => weights.map(() => 0))
  }

  arrive(key: number, jobs: number): void {
    this.waiting[key] = (this.waiting[key] as number) + jobs
    if (this.line.has(key)) return
    this.line.set(key, { turn: ++this.#turn, credit: this.weights[key] as number })
    this.since[key] = this.weights.map(() => 0)
  }

  /** One pass, as `claim-groups.ts` does it; returns the groups of the jobs that started. */
  pass(wanted: number): number[] {
    const groups = [...this.line]
      .map(([key, { turn, credit }]) => {
        return { key: `${key}`, turn, credit, weight: this.weights[key] as number }
      })
      .toSorted((a, b) => a.turn - b.turn)
      .slice(0, wanted)
    const looks = looksAt(groups, wanted)
    const seen = new Map(
      looks.map(({ key, jobs }) => [key, Math.min(jobs, this.waiting[Number(key)] as number)]),
    )
    const jobs = new Map([...seen].map(([key, n]) => [key, Array.from({ length: n }, () => key)]))
    const order = inTurns(groups, jobs, wanted).map(({ job }) => Number(job))
    const tried = order.map((key) => ({ group: `${key}`, started: true }))
    const found = new Map(
      looks.map(({ key, jobs: looked }) => {
        const n = seen.get(key) as number
        return [key, { jobs: n, all: n < looked }]
      }),
    )
    for (const key of order) this.#count(key)
    for (const { key, credit, toEnd } of afterTurns(groups, tried, found)) {
      const state = this.line.get(Number(key)) as { turn: number; credit: number }
      const turn = toEnd ? ++this.#turn : state.turn
      this.line.set(Number(key), { turn, credit })
      if (this.waiting[Number(key)] === 0) this.line.delete(Number(key))
    }
    return order
  }

  #count(key: number): void {
    this.waiting[key] = (this.waiting[key] as number) - 1
    for (const counts of this.since) counts[key] = (counts[key] as number) + 1
    const own = this.since[key] as number[]
    if (own[key] === this.weights[key]) this.since[key] = this.weights.map(() => 0)
  }
}

describe('P13b', () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ key: fc.nat(5), jobs: fc.integer({ min: 1, max: 12 }) }),
      fc.record({ claim: fc.integer({ min: 1, max: 9 }) }),
    ),
    { maxLength: 80 },
  )
  const weights = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 6, maxLength: 6 })

  it('between two turns of a group that waits, every other has at most one', () => {
    const check = (queue: Queue) => {
      for (const key of queue.line.keys()) {
        for (const [other, jobs] of (queue.since[key] as number[]).entries()) {
          expect(jobs, `${other} while ${key} waits`).toBeLessThanOrEqual(
            queue.weights[other] as number,
          )
        }
      }
    }
    fc.assert(
      fc.property(weights, steps, (weights, steps) => {
        const queue = new Queue(weights)
        for (const step of steps) {
          if ('key' in step) queue.arrive(step.key, step.jobs)
          // A claim of one job shows every state between two starts.
          for (let n = 0; 'claim' in step && n < step.claim; n++) {
            queue.pass(1)
            check(queue)
          }
        }
      }),
      { numRuns: 500 },
    )
  })

  it('a claim of many jobs starts the same as claims of one, and leaves no job that waits', () => {
    fc.assert(
      fc.property(weights, steps, (weights, steps) => {
        const [many, single] = [new Queue(weights), new Queue(weights)]
        for (const step of steps) {
          if ('key' in step) {
            many.arrive(step.key, step.jobs)
            single.arrive(step.key, step.jobs)
            continue
          }
          const left = many.waiting.reduce((sum, n) => sum + n, 0)
          const wanted = Math.min(step.claim, left)
          const first: number[] = []
          for (let n = 0; n < 20 && first.length < wanted; n++) {
            first.push(...many.pass(step.claim - first.length))
          }
          expect(first).toHaveLength(wanted)
          const second: number[] = []
          for (let n = 0; n < 99 && second.length < wanted; n++) second.push(...single.pass(1))
          expect(second.toSorted()).toEqual(first.toSorted())
        }
      }),
      { numRuns: 500 },
    )
  })
})
