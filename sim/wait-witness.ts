/** What was planned for the jobs that wait, and what their workers and senders were told. */
import type { Fact } from 'pawl/rules'
import type { Answer, Store } from 'pawl/sqlite'
import type { Judged } from './checker.ts'

type Answered = Awaited<ReturnType<Store['waits']['wait']>>
type End = Extract<Answered, { kind: 'over' }>['end']
type Signals = Awaited<ReturnType<Store['waits']['history']>>['signals']

/** The n-th wait of its name; `ms` is its time-out, null if it has none. */
interface PlannedWait {
  readonly for: 'sleep' | 'signal'
  readonly name: string
  readonly n: number
  readonly ms: number | null
}

/** A job that waits. Each of its waits for a signal has a signal, so that none waits in vain. */
export interface Planned {
  readonly id: string
  readonly waits: readonly PlannedWait[]
  readonly signals: readonly {
    readonly name: string
    readonly key: string
    readonly payload: string
  }[]
  isEnqueued: boolean
}

const NAMES = ['approval', 'payment'] as const

/** Makes the plan of one job. */
export function planWaits(id: string, between: (from: number, to: number) => number): Planned {
  const counts = new Map<string, number>()
  const waits = Array.from({ length: between(1, 5) }, (): PlannedWait => {
    const isSleep = between(0, 4) === 0
    const name = isSleep ? 'pause' : (NAMES[between(0, NAMES.length)] as string)
    const n = (counts.get(name) ?? 0) + 1
    counts.set(name, n)
    if (isSleep) return { for: 'sleep', name, n, ms: between(0, 6000) }
    return { for: 'signal', name, n, ms: between(0, 2) === 0 ? null : between(0, 6000) }
  })
  const signals = waits
    .filter((wait) => wait.for === 'signal')
    .map(({ name }, i) => ({ name, key: `key ${i}`, payload: `"${name} ${i}"` }))
  return { id, waits, signals, isEnqueued: false }
}

/** Compares what was told with what the ledger says. */
export class WaitWitness {
  readonly #ends = new Map<string, string>()
  readonly #readers = new Map<string, string>()
  readonly #kept = new Set<string>()
  readonly #refused = new Set<string>()

  /** A worker was told how a wait has ended: always in the same way, and with its own signal. */
  sawEnd(id: string, wait: Pick<PlannedWait, 'for' | 'name' | 'n'>, end: End): Judged[] {
    const own = `${id} ${wait.for} ${wait.name} ${wait.n}`
    const words = JSON.stringify(end)
    const before = this.#ends.get(own)
    this.#ends.set(own, words)
    const judged = before === undefined || before === words ? [] : [blame(id, 'ended in two ways')]
    if (end.kind !== 'received') return judged
    const signal = `${id} ${end.payload}`
    const reader = this.#readers.get(signal) ?? own
    this.#readers.set(signal, reader)
    return reader === own ? judged : [...judged, blame(id, `${end.payload} was received twice`)]
  }

  /** A sender was told what became of its signal. */
  sawAnswer(id: string, key: string, answer: Answer | undefined): void {
    const set = answer?.kind === 'rejected' ? this.#refused : this.#kept
    set.add(`${id} ${key}`)
  }

  /** Whether the sender need not ask again. */
  isSettled(id: string, key: string): boolean {
    return this.#kept.has(`${id} ${key}`) || this.#refused.has(`${id} ${key}`)
  }

  /** What was acknowledged is there, and what a worker was told is what the ledger says. */
  judge(id: string, signals: Signals, facts: readonly Fact[]): Judged[] {
    const keys = new Set(signals.map(({ key }) => `${id} ${key}`))
    const lost = [...this.#kept].filter((own) => own.startsWith(`${id} `) && !keys.has(own))
    const differing = facts.flatMap(({ received }) => {
      if (received === undefined) return []
      const { for: what, name, n, signal } = received
      const sent = signals.find(({ seq }) => seq === signal)
      const end = sent === undefined ? { kind: 'passed' } : receivedOf(sent)
      const told = this.#ends.get(`${id} ${what} ${name} ${n}`)
      const isSame = told === undefined || told === JSON.stringify(end)
      return isSame ? [] : [blame(id, `${what} ${name} ${n} is not what its worker was told`)]
    })
    return [...lost.map((own) => blame(id, `${own} was acknowledged and is lost`)), ...differing]
  }
}

function receivedOf({ payload, by, note }: Signals[number]): End {
  return { kind: 'received', payload, by, ...(note !== undefined && { note }) }
}

function blame(job: string, what: string): Judged {
  return { promise: 'P18', job, what, facts: [] }
}
