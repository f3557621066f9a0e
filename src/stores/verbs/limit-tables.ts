/** The tables of limits, behind the contract of `../contract/limits.ts`. */
import { type Gate, maxOf, newGate, rateOf } from '../../core/limits/gates.ts'
import { limitOf, parseGate } from '../../core/limits/keys.ts'
import { startAt } from '../../core/limits/throttle.ts'
import type { RepairAuthor } from '../contract/examination.ts'
import { checkPage } from '../contract/filters.ts'
import {
  BLOCKED_MAX,
  type Blockage,
  type DeclaredLimit,
  type GateDrift,
  type GateFault,
  type GateFilter,
  type GateHolder,
  type GateInfo,
  type GroupPlace,
  type LimitDeclaration,
  type LimitInfo,
  type LimitRecord,
  type LimitRecordFilter,
  type LimitTables,
  type LimitTotal,
} from '../contract/limits.ts'
import { ENGINE } from '../contract/requester.ts'
import { checkCursor, checkLimit } from '../contract/requests.ts'
import type { Page, Ref, Requester, WorkerRow } from '../contract/store.ts'
import { WorkersTooOld } from '../errors.ts'
import type { LockedGates } from '../gate-rows.ts'
import {
  checkDeclarations,
  checkGate,
  checkGateFilter,
  checkLimitRecordFilter,
  checkOverride,
  declared,
  type LimitRecordRow,
  type LimitRow,
  limitRecordOf,
  overridden,
  queueOf,
  rotatingQueueOf,
  toLimit,
  toLimitRecord,
  unsetLimit,
} from '../limit-records.ts'
import { pageSizeOf } from '../queue-records.ts'
import { isLive, workerOf } from '../worker-info.ts'
import { openGates } from './gates.ts'
import { examineGates, recountGates, restoreLimit } from './limit-doctor.ts'
import { limitTotals, type TotalOperations } from './limit-totals.ts'
import type { Tx, Verb } from './operations.ts'
import type { TableAccess } from './run-tables.ts'

/** A blocked job, as far as its turn goes. */
export interface BlockedPlace {
  readonly ref: Ref
  readonly gate: string
  readonly priority: number
  readonly orderAt: number
}

/** The operations of these verbs. */
export interface LimitOperations extends TotalOperations {
  /** Waits until no claim that reads limits is open, and keeps new ones from starting. */
  lockLimits(): void
  limitRow(name: string): LimitRow | undefined
  writeLimit(limit: LimitInfo): void
  recordLimit(record: Omit<LimitRecord, 'number'>): number
  limitRows(after: string, limit: number): readonly LimitRow[]
  limitRecords(name: string | undefined, before: number, limit: number): readonly LimitRecordRow[]
  /**
   * Marks a queue as gated. Waits until no claim of it is open that does not count, and sets the
   * gate in every job that is held; returns how many. Returns `undefined` if it was gated already.
   */
  gateQueue(queue: string, gate: string): number | undefined
  /** Has workers look at the gates of a limit that block jobs. */
  lookAtGates(limit: string): void
  /** Gates by name, after one, of a limit or of all, that may block jobs or all. */
  gateRows(filter: GateFilter, after: string, limit: number): LockedGates
  /** One gate, without a lock. */
  readGate(key: string): LockedGates
  /** How many jobs a gate blocks, up to a bound, and when the first of them became due. */
  countBlocked(gate: string, bound: number): { readonly jobs: number; readonly since?: number }
  gateHolders(gate: string, limit: number): readonly GateHolder[]
  blockedPlace(jobId: string): BlockedPlace | undefined
  /** How many jobs come before one, up to a bound. */
  countAhead(place: BlockedPlace, bound: number): number
}

/** Names are ordered as texts, so any name can be a cursor. */
const NAME_CURSOR = /^[\s\S]{1,1000}$/
const NUMBER_CURSOR = /^\d{1,15}$/
/** How many gates are opened by one transaction. */
const OPEN_MAX = 100

type PageOptions = { readonly limit?: number; readonly after?: string }

export class StoredLimits implements LimitTables {
  readonly #access: TableAccess

  constructor(access: TableAccess) {
    this.#access = access
  }

  async declare(limits: readonly LimitDeclaration[]): Promise<DeclaredLimit[]> {
    checkDeclarations(limits)
    if (limits.length === 0) return []
    // Most processes declare what the store has already, which needs no lock.
    const isKnown = await this.#access.look((tx) => areKnown(tx, limits))
    if (isKnown) return limits.map(({ name }) => ({ name }))
    const answers = await this.#access.change('limits.declare', (tx) => declareAll(tx, limits))
    if (answers.some(({ record }) => record !== undefined)) await this.#openAll()
    return answers
  }

  async set(
    name: string,
    concurrency: number,
    requester: Requester,
  ): Promise<LimitRecord | undefined> {
    checkOverride(name, concurrency, requester)
    return this.#override(name, concurrency, requester)
  }

  async reset(name: string, requester: Requester): Promise<LimitRecord | undefined> {
    checkOverride(name, null, requester)
    return this.#override(name, null, requester)
  }

  async #override(name: string, value: number | null, requester: Requester) {
    const record = await this.#access.change('limits.set', (tx) =>
      override(tx, name, value, requester),
    )
    if (record !== undefined) await this.#openAll()
    return record
  }

  /** Makes jobs ready at once for which there is room now; workers do the rest. */
  async #openAll(): Promise<void> {
    for (let page = 0; page < OPEN_MAX; page++) if ((await this.open(OPEN_MAX)) === 0) return
  }

  async list(page: PageOptions = {}): Promise<Page<LimitInfo>> {
    checkPage(page)
    checkCursor('after', page.after, NAME_CURSOR)
    const size = pageSizeOf(page.limit)
    return this.#access.look(function* (tx) {
      const rows = yield* tx.limitRows(page.after ?? '', size + 1)
      return pageOf(rows.map(toLimit), size, ({ name }) => name)
    })
  }

  async get(name: string): Promise<LimitInfo | undefined> {
    checkGate(name)
    return this.#access.look(function* (tx) {
      const row = yield* tx.limitRow(name)
      return row && toLimit(row)
    })
  }

  async gates(filter: GateFilter, page: PageOptions = {}): Promise<Page<GateInfo>> {
    checkGateFilter(filter)
    checkPage(page)
    checkCursor('after', page.after, NAME_CURSOR)
    const size = pageSizeOf(page.limit)
    return this.#access.look((tx) => listGates(tx, filter, page.after ?? '', size))
  }

  async gate(name: string): Promise<GateInfo> {
    checkGate(name)
    return this.#access.look((tx) => gateInfo(tx, name))
  }

  async totals(limit: number): Promise<LimitTotal[]> {
    checkLimit(limit)
    return this.#access.look((tx) => limitTotals(tx, limit))
  }

  async holders(gate: string, limit: number): Promise<GateHolder[]> {
    checkGate(gate)
    checkLimit(limit)
    return this.#access.look(function* (tx) {
      return [...(yield* tx.gateHolders(gate, limit))]
    })
  }

  async blockage(jobId: string): Promise<Blockage | undefined> {
    return this.#access.look((tx) => findBlockage(tx, jobId))
  }

  async groupPlace(jobId: string): Promise<GroupPlace | undefined> {
    return this.#access.look(function* (tx) {
      return yield* tx.groupPlace(jobId, BLOCKED_MAX)
    })
  }

  async records(filter: LimitRecordFilter, page: PageOptions = {}): Promise<Page<LimitRecord>> {
    checkLimitRecordFilter(filter)
    checkPage(page)
    checkCursor('after', page.after, NUMBER_CURSOR)
    const size = pageSizeOf(page.limit)
    const before = page.after === undefined ? Number.MAX_SAFE_INTEGER : Number(page.after)
    return this.#access.look(function* (tx) {
      const rows = yield* tx.limitRecords(filter.name, before, size + 1)
      return pageOf(rows.map(toLimitRecord), size, ({ number }) => String(number))
    })
  }

  async open(limit: number): Promise<number> {
    checkLimit(limit)
    return this.#access.change('limits.open', (tx) => openGates(tx, Math.min(limit, OPEN_MAX)))
  }

  async drift(limit: number): Promise<GateDrift[]> {
    checkLimit(limit)
    const faults = await this.faults(limit)
    return faults.flatMap(({ kind, gate, used, counted }) =>
      kind === 'count' ? { gate, used, counted } : [],
    )
  }

  async faults(limit: number): Promise<GateFault[]> {
    checkLimit(limit)
    return this.#access.look((tx) => examineGates(tx, limit))
  }

  async recount(gates: readonly string[]): Promise<GateDrift[]> {
    for (const gate of gates) checkGate(gate)
    return this.#access.change('limits.recount', (tx) => recount(tx, gates))
  }

  async restore(name: string, by: RepairAuthor): Promise<void> {
    checkGate(name)
    await this.#access.change('limits.restore', (tx) => restoreLimit(tx, name, by))
  }
}

function pageOf<T>(items: readonly T[], size: number, cursor: (item: T) => string): Page<T> {
  const page = items.slice(0, size)
  const last = page.at(-1)
  return items.length > size && last !== undefined
    ? { items: page, next: cursor(last) }
    : { items: page }
}

/** Whether the store has all of this already. */
function* areKnown(tx: Tx, limits: readonly LimitDeclaration[]): Verb<boolean> {
  for (const limit of limits) {
    const row = yield* tx.limitRow(limit.name)
    if (row === undefined) return false
    const { after, warning } = declared(toLimit(row), limit, tx.now)
    if (after !== undefined || warning !== undefined) return false
  }
  return true
}

function* declareAll(tx: Tx, limits: readonly LimitDeclaration[]): Verb<DeclaredLimit[]> {
  yield* tx.lockLimits()
  const answers: DeclaredLimit[] = []
  for (const limit of limits) {
    const { name } = limit
    const row = yield* tx.limitRow(name)
    const before = row === undefined ? unsetLimit(name) : toLimit(row)
    const { after, warning } = declared(before, limit, tx.now)
    // A release that does not know limits would claim jobs without counting them.
    if (after !== undefined && row === undefined) yield* assertAllKnowLimits(tx)
    const record = after && (yield* change(tx, 'declare', ENGINE, before, after))
    answers.push({ name, ...(record && { record }), ...(warning && { warning }) })
  }
  return answers
}

function* assertAllKnowLimits(tx: Tx): Verb<void> {
  const isOld = (row: WorkerRow) =>
    isLive(row, tx.now) && workerOf(row, tx.now).version === undefined
  const old = (yield* tx.workers()).filter(isOld)
  if (old.length > 0) throw new WorkersTooOld(old.map(({ id }) => id))
}

function* override(
  tx: Tx,
  name: string,
  value: number | null,
  requester: Requester,
): Verb<LimitRecord | undefined> {
  yield* tx.lockLimits()
  const row = yield* tx.limitRow(name)
  const before = row === undefined ? unsetLimit(name) : toLimit(row)
  const after = overridden(before, value, requester, tx.now)
  if (after === undefined) return undefined
  return yield* change(tx, value === null ? 'reset' : 'set', requester, before, after)
}

/** Writes a limit and its record. Workers look at once at what it blocks. */
function* change(
  tx: Tx,
  action: LimitRecord['action'],
  requester: Requester,
  before: LimitInfo,
  after: LimitInfo,
): Verb<LimitRecord> {
  yield* tx.writeLimit(after)
  const record = limitRecordOf(action, requester, tx.now, before, after)
  const number = yield* tx.recordLimit(record)
  const queue = queueOf(after.name)
  if (queue !== undefined) yield* gateQueue(tx, queue, after.name)
  const rotating = rotatingQueueOf(after.name)
  if (rotating !== undefined) yield* tx.rotateQueue(rotating)
  yield* tx.lookAtGates(after.name)
  return { number, ...record }
}

/** Counts the jobs of a queue that gets a limit. */
function* gateQueue(tx: Tx, queue: string, key: string): Verb<void> {
  const held = yield* tx.gateQueue(queue, key)
  if (held === undefined) return
  const { gates } = yield* tx.lockGates([key])
  yield* tx.writeGates([{ ...(gates.get(key) ?? newGate(key)), used: held }])
}

function* listGates(tx: Tx, filter: GateFilter, after: string, size: number): Verb<Page<GateInfo>> {
  const { gates, settings } = yield* tx.gateRows(filter, after, size + 1)
  const items: GateInfo[] = []
  for (const gate of gates.values()) items.push(yield* describe(tx, gate, settings))
  return pageOf(items, size, ({ gate }) => gate)
}

function* gateInfo(tx: Tx, name: string): Verb<GateInfo> {
  const { gates, settings } = yield* tx.readGate(name)
  return yield* describe(tx, gates.get(name) ?? newGate(name), settings)
}

function* describe(tx: Tx, gate: Gate, settings: LockedGates['settings']): Verb<GateInfo> {
  const { key } = parseGate(gate.key) ?? {}
  const rate = rateOf(gate, settings)
  const max = rate?.limit ?? maxOf(gate, settings)
  const opens = Math.max(gate.closedUntil ?? 0, rate ? startAt(rate, gate.tat, 1) : 0)
  const { jobs, since } = yield* tx.countBlocked(gate.key, BLOCKED_MAX)
  return {
    gate: gate.key,
    limit: limitOf(gate.key),
    ...(key !== undefined && { key }),
    used: gate.used,
    max: Number.isFinite(max) ? max : null,
    ...(opens > tx.now && { opensAt: opens }),
    blocked: jobs,
    ...(since !== undefined && { blockedSince: since }),
  }
}

function* findBlockage(tx: Tx, jobId: string): Verb<Blockage | undefined> {
  const place = yield* tx.blockedPlace(jobId)
  if (place === undefined) return undefined
  const gate = yield* gateInfo(tx, place.gate)
  return { gate, ahead: yield* tx.countAhead(place, BLOCKED_MAX) }
}

/** A queue whose claims do not look at its gate is gated first. */
function* recount(tx: Tx, keys: readonly string[]): Verb<GateDrift[]> {
  for (const key of keys) {
    const queue = queueOf(key)
    if (queue === undefined || (yield* tx.limitRow(key)) === undefined) continue
    yield* tx.lockLimits()
    yield* gateQueue(tx, queue, key)
  }
  return yield* recountGates(tx, keys)
}
