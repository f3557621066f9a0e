/**
 * Limits in the simulation. One seed of three has them: limits of types, keys, a shared limit of
 * which two releases say different numbers, a queue, throttles, and handlers that close one. An
 * operator changes the numbers while jobs run. Chance comes from a stream of its own, so that the
 * histories of other seeds stay what they were.
 *
 * The judge reads facts and records past the store and counts by itself. It uses nothing of the
 * engine's own rules: which gates a job has follows from its type and number.
 */
import { defineLimit, type Operator } from 'pawl'
import { SeededRandom } from 'pawl/testing'
import type { Judged, Told } from './checker.ts'
import type { Ledger } from './ledger.ts'
import type { Release } from './parcels.ts'

const LIMITED_EVERY = 3
/** In one seed of so many a limit is 0 for long, so that deadlines pass while jobs are blocked. */
const HELD_EVERY = 4
const HELD_VISITS = 8
/** How long a job may be blocked by a limit that has room. */
const BLOCKED_MAX_MS = 15_000
/** How long a job may stay blocked when its deadline has passed. */
const OVERDUE_MAX_MS = 10_000
const THROTTLE = { limit: 3, periodMs: 4000 }

type Input = { readonly n: number }

const ALL_SHARE: readonly string[] = ['plain', 'flaky', 'slow', 'leased', 'sends', 'commits']
const KEYED: readonly string[] = ['commits', 'approved', 'hardened', 'sends']
const THROTTLED: readonly string[] = ['flaky', 'hopeless', 'document', 'task', 'parcel']

/** The limits of a seed. */
export class SimLimits {
  readonly #random: SeededRandom
  readonly #api: readonly [number, number]
  readonly #half: number
  readonly #queue: number | undefined
  readonly #burst: number
  /** The operator keeps the shared limit at 0, until all has been well for a while. */
  readonly #isHeld: boolean
  #visitsHeld = 0
  /** The limits that the operator has set, and has to reset. */
  readonly #set = new Map<string, { readonly name: string; readonly key?: string }>()
  /** Since when a job is blocked although there is room. */
  readonly #since = new Map<string, number>()
  /** Jobs that were seen blocked when their deadline had passed. */
  readonly overdue = new Set<string>()

  private constructor(seed: number) {
    this.#random = new SeededRandom(seed * 31 + 7)
    this.#api = [this.#between(1, 3), this.#between(1, 3)]
    this.#half = this.#between(1, 3)
    this.#queue = this.#random.next() < 0.5 ? this.#between(2, 4) : undefined
    this.#burst = this.#between(1, 4)
    this.#isHeld = seed % HELD_EVERY === 0
  }

  /** The limits of a seed; `undefined` if it has none. */
  static of(seed: number): SimLimits | undefined {
    return seed % LIMITED_EVERY === 0 ? new SimLimits(seed) : undefined
  }

  #between(min: number, max: number): number {
    return min + Math.floor(this.#random.next() * (max - min))
  }

  /** What `defineJob` is told about a type by a release. */
  optionsOf(type: string, release: Release): object {
    const api = defineLimit({
      name: 'api',
      concurrency: this.#api[release - 1] as number,
      version: release,
    })
    const half = { name: 'half', key: ({ n }: Input) => `${n % 2}`, limit: this.#half }
    const concurrency = [
      ...(ALL_SHARE.includes(type) ? [api] : []),
      ...(KEYED.includes(type) ? [half] : []),
      ...(type === 'plain' ? [2] : []),
    ]
    const { limit, periodMs: period } = THROTTLE
    const throttle = { name: 'starts', limit, period, burst: this.#burst }
    return {
      ...(concurrency.length > 0 && { concurrency }),
      ...(THROTTLED.includes(type) && { throttle }),
    }
  }

  /** What `createPawl` is told about queues. */
  get queues(): object {
    return this.#queue === undefined ? {} : { queues: { default: { concurrency: this.#queue } } }
  }

  /** Whether the handler is told to come back later, and closes its throttle. */
  closes(type: string, n: number, attempt: number): boolean {
    return type === 'flaky' && n % 2 === 1 && attempt === 1
  }

  /** The operator sets a number, or takes one back; in the end all of them. */
  async meddle(operator: Operator, isOver: boolean): Promise<void> {
    if (this.#isHeld) return this.#hold(operator, isOver)
    for (const [id, { name, key }] of [...this.#set]) {
      if (!isOver && this.#random.next() < 0.6) continue
      await operator.resetLimit(name, key === undefined ? {} : { key })
      this.#set.delete(id)
    }
    if (isOver || this.#random.next() < 0.4) return
    const choices = [
      { name: 'api' },
      { name: 'type/plain' },
      { name: 'queue/default' },
      { name: 'commits/half', key: `${this.#between(0, 2)}` },
      { name: 'sends/half' },
    ]
    const chosen = choices[this.#between(0, choices.length)] as { name: string; key?: string }
    // Asked for is as good as done, for the answer may be lost.
    this.#set.set(`${chosen.name} ${chosen.key ?? ''}`, chosen)
    const key = chosen.key === undefined ? {} : { key: chosen.key }
    await operator.setLimit(chosen.name, { concurrency: this.#between(0, 4), ...key })
  }

  async #hold(operator: Operator, isOver: boolean): Promise<void> {
    if (this.#visitsHeld === 0) await operator.setLimit('api', { concurrency: 0 })
    if (this.#visitsHeld === HELD_VISITS) await operator.resetLimit('api')
    if (this.#visitsHeld === 0 || isOver) this.#visitsHeld++
  }

  /** Notes the jobs that are blocked past their deadline, while things go wrong. */
  look(ledger: Ledger, now: number): void {
    for (const { id } of overdueIn(readRows(ledger), now)) this.overdue.add(id)
  }

  /** P15: no job stays blocked while there is room, nor for long when its deadline has passed. */
  checkBlocked(ledger: Ledger, now: number): Judged[] {
    const rows = readRows(ledger)
    if (rows === undefined) return []
    const late = overdueIn(rows, now - OVERDUE_MAX_MS)
    if (late.length > 0) {
      return late.map(({ id }) => judged('P15', id, 'is blocked long after its deadline'))
    }
    const inForce = new InForce(rows.records)
    const used = new Map<string, number>()
    for (const { limit_key, queue } of rows.held) {
      for (const gate of [...gatesIn(limit_key), `queue/${queue}`]) {
        used.set(gate, (used.get(gate) ?? 0) + 1)
      }
    }
    const blocked = new Set<string>()
    for (const { id, gate } of rows.blocked) {
      if (gate === null || gate.startsWith('rate/')) continue
      const max = inForce.maxAt(gate, Number.POSITIVE_INFINITY)
      if ((used.get(gate) ?? 0) < max) blocked.add(id)
    }
    for (const id of [...this.#since.keys()]) if (!blocked.has(id)) this.#since.delete(id)
    for (const id of blocked) if (!this.#since.has(id)) this.#since.set(id, now)
    return [...this.#since]
      .filter(([, since]) => now - since > BLOCKED_MAX_MS)
      .map(([id]) => judged('P15', id, 'is blocked by a limit that has room'))
  }

  /** P13: no claim made more jobs run, or start, than were allowed at that moment. */
  judge(told: readonly Told[], ledger: Ledger): Judged[] {
    const rows = readRows(ledger)
    return rows === undefined ? [] : [...this.#judgeKeys(told), ...judgeUse(told, rows)]
  }

  /** Each job has the keys that its type and number say. */
  #judgeKeys(told: readonly Told[]): Judged[] {
    return told.flatMap(({ job: { id, key, type }, facts }) => {
      if (key === null) return []
      const n = Number(key.slice('job '.length))
      const wanted = [
        ...(KEYED.includes(type) ? [`job/${type}/half/${n % 2}`] : []),
        ...(THROTTLED.includes(type) ? [`rate/${type}/starts`] : []),
        ...(ALL_SHARE.includes(type) ? ['shared/api'] : []),
        ...(type === 'plain' ? ['type/plain'] : []),
      ].sort()
      const found = gatesIn(facts[0]?.created?.limitKey ?? null).sort()
      if (found.join() === wanted.join()) return []
      return [judged('P13', id, `has the keys [${found}] instead of [${wanted}]`)]
    })
  }
}

interface RecordRow {
  readonly at: number
  readonly name: string
  readonly action: string
  readonly max: number | null
  readonly override: number | null
}

interface Rows {
  readonly records: readonly RecordRow[]
  readonly order: readonly { readonly id: string; readonly seq: number }[]
  readonly held: readonly { readonly limit_key: string | null; readonly queue: string }[]
  readonly blocked: readonly {
    readonly id: string
    readonly gate: string | null
    readonly deadline_at: number | null
  }[]
}

function overdueIn(rows: Rows | undefined, now: number): Rows['blocked'] {
  return (rows?.blocked ?? []).filter(
    ({ deadline_at }) => deadline_at !== null && deadline_at < now,
  )
}

/** Nothing where somebody writes just now. */
function readRows(ledger: Ledger): Rows | undefined {
  try {
    return {
      records: ledger.all(
        'SELECT at, name, action, max, override FROM pawl_limit_records ORDER BY number',
      ),
      order: ledger.all(
        'SELECT j.id, l.seq FROM pawl_ledger l JOIN pawl_jobs j ON j.rid = l.job ORDER BY l.pos',
      ),
      held: ledger.all('SELECT limit_key, queue FROM pawl_jobs WHERE lane = 3'),
      blocked: ledger.all(
        'SELECT id, blocked_on AS gate, deadline_at FROM pawl_jobs WHERE lane = 7',
      ),
    }
  } catch {
    return undefined
  }
}

function gatesIn(limitKey: string | null): string[] {
  return (limitKey ?? '').split(' ').flatMap((text) => {
    const gate = text.replace(/[=+].*$/, '')
    return gate === '' ? [] : gate
  })
}

/** Which number was in force when: the operator's until it is reset, otherwise the code's. */
class InForce {
  readonly #records: readonly RecordRow[]

  constructor(records: readonly RecordRow[]) {
    this.#records = records
  }

  maxAt(gate: string, time: number): number {
    // The limit of a gate with a key has the name without it.
    const limit = gate.startsWith('job/') ? gate.split('/').slice(0, 3).join('/') : gate
    let [max, whole, own]: (number | null)[] = [null, null, null]
    for (const { at, name, action, ...record } of this.#records) {
      if (at > time) continue
      if (name === limit && action === 'declare') max = record.max
      else if (name === limit) whole = action === 'set' ? record.override : null
      else if (name === gate) own = action === 'set' ? record.override : null
    }
    return own ?? whole ?? max ?? Number.POSITIVE_INFINITY
  }
}

/** Counts in the order of the ledger: a claim is one more, the fact that closes it one less. */
function judgeUse(told: readonly Told[], { records, order }: Rows): Judged[] {
  const inForce = new InForce(records)
  const factsOf = new Map(told.map(({ job, facts }) => [job.id, facts]))
  const queueOf = new Map(told.map(({ job }) => [job.id, job.queue]))
  const open = new Map<string, readonly string[]>()
  const used = new Map<string, number>()
  const starts = new Map<string, number[]>()
  const closed = new Map<string, number>()
  const found: Judged[] = []
  for (const { id, seq } of order) {
    const fact = factsOf.get(id)?.[seq - 1]
    if (fact === undefined) continue
    const { statuses = [] } = fact.execution ?? {}
    const last = statuses.at(-1)
    // The engine claims a job past its deadline only to end it, in the same transaction.
    if (fact.trigger === 'claim' && fact.actor === 'engine') continue
    if (statuses[0] === 'LEASED' && (last === 'LEASED' || last === 'IN_PROGRESS')) {
      const gates = [...gatesIn(factsOf.get(id)?.[0]?.created?.limitKey ?? null)]
      open.set(id, [...gates, `queue/${queueOf.get(id)}`])
      for (const gate of open.get(id) as string[]) {
        if (gate.startsWith('rate/')) {
          starts.set(gate, [...(starts.get(gate) ?? []), fact.at])
          const until = closed.get(gate) ?? 0
          if (fact.at < until) found.push(judged('P13', id, `${gate} is closed until ${until}`))
          continue
        }
        const now = (used.get(gate) ?? 0) + 1
        used.set(gate, now)
        // What was changed in this very millisecond may have been changed before or after.
        const max = Math.max(inForce.maxAt(gate, fact.at), inForce.maxAt(gate, fact.at - 1))
        if (now > max) found.push(judged('P13', id, `makes it ${now} of ${max} in ${gate}`))
      }
    } else if (last === 'COMMITTED' || last === 'DONE' || last === 'ABORTED') {
      for (const gate of open.get(id) ?? []) used.set(gate, (used.get(gate) ?? 0) - 1)
      open.delete(id)
    }
    if (fact.gate !== undefined) closed.set(fact.gate, fact.runAt ?? 0)
  }
  return [...found, ...[...starts].flatMap(([gate, times]) => judgeStarts(gate, times))]
}

/** In every half-open window of the period, at most so many start. */
function judgeStarts(gate: string, times: readonly number[]): Judged[] {
  const sorted = times.toSorted((a, b) => a - b)
  const { limit, periodMs } = THROTTLE
  const isOver = sorted.some((at, i) => (sorted[i + limit] ?? Number.MAX_VALUE) - at < periodMs)
  return isOver ? [judged('P13', '', `${gate} let too many start within ${periodMs} ms`)] : []
}

function judged(promise: string, job: string, what: string): Judged {
  return { promise, job, what, facts: [] }
}
