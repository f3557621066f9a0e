/** How the doctor compares gates and limits with the jobs and the records of a store. */
import { gateProblems, knownMax, mendGate } from '../../core/limits/faults.ts'
import { type Gate, LOOK_AGAIN_MS, maxOf, newGate } from '../../core/limits/gates.ts'
import { isRotating, isStrict, limitOf, parseGate } from '../../core/limits/keys.ts'
import type { RepairAuthor } from '../contract/examination.ts'
import type { GateDrift, GateFault, LimitInfo, LimitRecord } from '../contract/limits.ts'
import { countSlots, type LockedGates } from '../gate-rows.ts'
import { queueOf, toLimit, toLimitRecord, unsetLimit } from '../limit-records.ts'
import type { Tx, Verb } from './operations.ts'

/** The operations of these verbs. */
export interface LimitDoctorOperations {
  /** The slots of every job that is held and has some. */
  heldSlots(): readonly string[]
  /** The gates that block jobs. */
  blockingGates(): readonly string[]
  /** The queues whose claims go through a gate. */
  gatedQueues(): readonly string[]
  /** Those of these groups that have no place in the line of their queue. */
  groupsOutOfLine(keys: readonly string[]): readonly string[]
}

const PAGE = 1000
/** How many records of a limit are read for the time and the author of its numbers. */
const RECORDS = 1000

/** Compares every gate with the jobs, at one moment. */
export function* examineGates(tx: Tx, limit: number): Verb<GateFault[]> {
  const held = countSlots(yield* tx.heldSlots())
  const blocking = new Set(yield* tx.blockingGates())
  const found: GateFault[] = [...(yield* ungatedQueues(tx))]
  const unseen = new Set([...held.keys(), ...blocking].filter((key) => !isRotating(key)))
  for (const gate of yield* tx.groupsOutOfLine([...blocking].filter(isRotating))) {
    found.push({ kind: 'stranded', gate, used: 0, counted: 0 })
  }
  for (let after = ''; found.length < limit; ) {
    const { gates, settings } = yield* tx.gateRows({}, after, PAGE)
    for (const gate of gates.values()) {
      after = gate.key
      unseen.delete(gate.key)
      found.push(...(yield* faultsOf(tx, gate, settings, held, blocking)))
    }
    if (gates.size < PAGE) break
  }
  for (const key of unseen) {
    if (found.length >= limit) break
    const { settings } = yield* tx.readGate(key)
    found.push(...(yield* faultsOf(tx, newGate(key), settings, held, blocking)))
  }
  return found.slice(0, limit)
}

function* faultsOf(
  tx: Tx,
  gate: Gate,
  settings: LockedGates['settings'],
  held: ReadonlyMap<string, number>,
  blocking: ReadonlySet<string>,
): Verb<GateFault[]> {
  const counted = held.get(gate.key) ?? 0
  const seen = { held: counted, blocks: blocking.has(gate.key) }
  const kinds = gateProblems(gate, seen, settings, tx.now)
  const base = { gate: gate.key, used: gate.used, counted }
  const found: GateFault[] = kinds.map((kind) => ({ kind, ...base }))
  if (kinds.length === 0 && seen.blocks && (yield* isHeadStranded(tx, gate, settings))) {
    found.push({ kind: 'stranded', ...base })
  }
  const max = knownMax(gate, settings)
  if (max === undefined || counted <= max) return found
  const isExceeded = yield* hasNewHolder(tx, gate.key, counted)
  return isExceeded ? [...found, { kind: 'exceeded', ...base, max }] : found
}

/** Whether the first job of a strict group is blocked although it may start, for long. */
function* isHeadStranded(tx: Tx, gate: Gate, settings: LockedGates['settings']): Verb<boolean> {
  if (!isStrict(gate.key) || gate.used >= maxOf(gate, settings)) return false
  if (gate.openAt !== null && gate.openAt <= tx.now + LOOK_AGAIN_MS) return false
  return (yield* tx.heads([gate.key])).some(({ isBlocked }) => isBlocked)
}

/**
 * Whether a job started after the number was last changed. A lowered number stops no job, but from
 * then on none starts until fewer run: so no job can have started since and make them too many.
 */
function* hasNewHolder(tx: Tx, gate: string, held: number): Verb<boolean> {
  let changed = 0
  for (const name of new Set([gate, limitOf(gate)])) {
    const [row] = yield* tx.limitRecords(name, Number.MAX_SAFE_INTEGER, 1)
    changed = Math.max(changed, row?.at ?? 0)
  }
  const holders = yield* tx.gateHolders(gate, held)
  return holders.some(({ startedAt }) => startedAt > changed)
}

/** A queue with a limit whose claims do not look at its gate. */
function* ungatedQueues(tx: Tx): Verb<GateFault[]> {
  const gated = new Set(yield* tx.gatedQueues())
  const found: GateFault[] = []
  for (let after = 'queue/'; ; ) {
    const rows = yield* tx.limitRows(after, PAGE)
    for (const { name } of rows) {
      after = name
      const queue = queueOf(name)
      if (queue !== undefined && !gated.has(queue)) {
        found.push({ kind: 'ungated', gate: name, used: 0, counted: 0 })
      }
    }
    // Names are sorted, and those of queues stand together.
    if (rows.length < PAGE || !after.startsWith('queue/')) return found
  }
}

/**
 * Writes gates as the jobs say. Claims and settlements of these gates wait for their locks, so the
 * count is exact.
 */
export function* recountGates(tx: Tx, all: readonly string[]): Verb<GateDrift[]> {
  yield* enterLines(tx, all.filter(isRotating))
  const keys = all.filter((key) => !isRotating(key))
  const { gates, settings } = yield* tx.lockGates(keys)
  const held = countSlots(yield* tx.heldSlots())
  const blocking = new Set(yield* tx.blockingGates())
  const mended: Gate[] = []
  for (const gate of gates.values()) {
    const seen = { held: held.get(gate.key) ?? 0, blocks: blocking.has(gate.key) }
    const isWrong = gateProblems(gate, seen, settings, tx.now).length > 0
    if (isWrong || (seen.blocks && (yield* isHeadStranded(tx, gate, settings)))) {
      mended.push(mendGate(gate, seen, settings, tx.now))
    }
  }
  yield* tx.writeGates(mended)
  return mended.map(({ key, used }) => {
    return { gate: key, used: gates.get(key)?.used ?? 0, counted: used }
  })
}

/** Puts groups that block jobs into the line of their queue. */
function* enterLines(tx: Tx, groups: readonly string[]): Verb<void> {
  for (const key of yield* tx.groupsOutOfLine(groups)) {
    const queue = parseGate(key)?.names[0]
    if (queue === undefined) continue
    yield* tx.lockLines([queue])
    yield* tx.rotateQueue(queue)
    yield* tx.enterGroups(queue, [{ key, weight: 1, weightAt: 0 }])
  }
}

const RESTORED = 'its numbers were not those of its last record'

/** Sets a limit to what its records say, and keeps a note of the old row. */
export function* restoreLimit(tx: Tx, name: string, by: RepairAuthor): Verb<void> {
  yield* tx.lockLimits()
  const row = yield* tx.limitRow(name)
  const rows = yield* tx.limitRecords(name, Number.MAX_SAFE_INTEGER, RECORDS)
  const restored = limitFrom(name, rows.map(toLimitRecord))
  if (restored === undefined) return
  yield* tx.writeLimit(restored)
  yield* tx.noteRow('limits', JSON.stringify(row ? toLimit(row) : { name }), RESTORED, by)
  yield* tx.lookAtGates(name)
}

/** The limit after its records, newest first; `undefined` if there are none. */
function limitFrom(name: string, records: readonly LimitRecord[]): LimitInfo | undefined {
  const [last] = records
  if (last === undefined) return undefined
  const set = records.find(({ action }) => action !== 'declare')
  const isSet = last.after.override !== null
  return {
    ...unsetLimit(name),
    ...last.after,
    declaredAt: records.find(({ action }) => action === 'declare')?.at ?? null,
    overrideAt: isSet ? (set?.at ?? last.at) : null,
    overrideBy: isSet ? (set?.operator ?? null) : null,
    overrideNote: isSet ? (set?.note ?? null) : null,
  }
}
