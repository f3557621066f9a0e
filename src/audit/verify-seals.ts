/**
 * Verifies a ledger by its seals; see `../stores/seals.ts`. Three things can be verified:
 *
 * - a store, by its own seals or by a copy of them;
 * - an exported ledger, by a copy of the seals;
 * - what retention removed, by its archives.
 *
 * Each function yields findings. No finding means that everything is as it was sealed.
 */
import { createHash } from 'node:crypto'
import { encode } from '../core/canonical-json.ts'
import type { Fact } from '../core/job/facts.ts'
import { withoutOwnTrace } from '../core/trace.ts'
import { stamp } from '../environment/times.ts'
import { LINE_BOUNDS } from '../stores/archive.ts'
import type { AuditEntry } from '../stores/audit.ts'
import { SealUnsettled } from '../stores/errors.ts'
import {
  chainOf,
  LedgerSum,
  type Measured,
  type Pruning,
  type Removal,
  type Seal,
  type SealTables,
  sealAt,
} from '../stores/seals.ts'

/** What a verification found. */
export interface SealFinding {
  readonly kind:
    | 'missing'
    | 'added'
    | 'changed'
    | 'chain-broken'
    | 'seal-missing'
    | 'seal-changed'
    | 'removal-doubtful'
    | 'archive-missing'
    | 'archive-changed'
  readonly message: string
  /** The number of the seal. */
  readonly seal?: number
  /** The range of the seal in the order of the ledger, and the times of its facts. */
  readonly range?: readonly [first: number, last: number]
  readonly times?: readonly [first: number, last: number]
  /** The number of the retention record. */
  readonly pruned?: number
  /** How many facts are missing or surplus. */
  readonly facts?: number
}

/** A copy of a seal outside the store, with what retention had removed from it by then. */
export interface SealCopy extends Seal {
  readonly removed?: Pick<Removal, 'facts' | 'sum'>
}

const PAGE = 100
const TRIES_MAX = 20

/**
 * Verifies a store by its own seals, or by a copy if one is passed. A copy also shows seals that
 * were changed, replaced or deleted in the store.
 */
export async function* verifySeals(
  tables: SealTables,
  copies: readonly SealCopy[] = [],
): AsyncGenerator<SealFinding> {
  const copied = new Map(copies.map((copy) => [copy.number, copy]))
  yield* verifyChain(copies)
  const named = new Map<number, number>()
  let before: Seal | undefined
  for await (const seal of sealsOf(tables)) {
    yield* findBreak(before, seal)
    before = seal
    const copy = copied.get(seal.number)
    copied.delete(seal.number)
    if (copy !== undefined) yield* findChange(seal, copy)
    yield* verifyRange(tables, copy ?? seal, copy, named)
  }
  for (const copy of copied.values()) {
    yield {
      kind: 'seal-missing',
      ...of(copy),
      message: `Seal ${copy.number} is missing in the store`,
    }
    yield* verifyRange(tables, copy, copy, named)
  }
  yield* verifyRemovals(tables, named)
}

async function* sealsOf(tables: SealTables): AsyncGenerator<Seal> {
  let last = 0
  for (;;) {
    const seals = await tables.list(last, PAGE)
    yield* seals
    last = seals[seals.length - 1]?.number ?? last
    if (seals.length < PAGE) return
  }
}

/** Verifies that a list of seals is one chain, as far as it has no gaps. */
function* verifyChain(seals: readonly Seal[]): Generator<SealFinding> {
  let before: Seal | undefined
  for (const seal of seals.toSorted((a, b) => a.number - b.number)) {
    const isNext = seal.number === (before?.number ?? 0) + 1
    if (isNext) yield* findBreak(before, seal)
    before = seal
  }
}

function* findBreak(before: Seal | undefined, seal: Seal): Generator<SealFinding> {
  const follows = seal.number === (before?.number ?? 0) + 1
  const adjoins = seal.first === (before?.last ?? 0) + 1
  if (follows && adjoins && seal.chain === chainOf(before, seal)) return
  const why = follows
    ? adjoins
      ? 'or one before it was changed'
      : 'does not begin where the seal before it ends'
    : `was found instead of seal ${(before?.number ?? 0) + 1}`
  yield { kind: 'chain-broken', ...of(seal), message: `Seal ${seal.number} ${why}` }
}

const FIELDS = ['at', 'first', 'last', 'facts', 'firstAt', 'lastAt', 'sum', 'chain'] as const

function* findChange(seal: Seal, copy: Seal): Generator<SealFinding> {
  const fields = FIELDS.filter((field) => seal[field] !== copy[field])
  if (fields.length === 0) return
  const message = `Seal ${seal.number} differs from its copy in: ${fields.join(', ')}`
  yield { kind: 'seal-changed', ...of(copy), message }
}

/**
 * Compares a seal with the facts in its range and those that retention removed from it. Adds the
 * retention records of the removals to `named`.
 */
async function* verifyRange(
  tables: SealTables,
  seal: Seal,
  copy: SealCopy | undefined,
  named: Map<number, number>,
): AsyncGenerator<SealFinding> {
  const [measured, removals] = await measureSettled(tables, seal)
  const removed = new LedgerSum()
  for (const removal of removals) {
    removed.merge(removal)
    named.set(removal.pruned, seal.number)
  }
  if (copy?.removed !== undefined && copy.removed.facts > removed.facts) {
    const message = `Records of what retention removed from seal ${seal.number} are missing`
    yield { kind: 'removal-doubtful', ...of(seal), message }
  }
  const findings = [...compare(seal, measured, removed)]
  if (findings.length === 0) return
  // A fact that the doctor set aside may have been sealed, or may have been added after the seal.
  removed.merge(await tables.aside(seal.first, seal.last))
  if ([...compare(seal, measured, removed)].length > 0) yield* findings
}

/**
 * Reads facts and removals of the same moment: retention may remove facts while they are summed.
 */
async function measureSettled(
  tables: SealTables,
  { number, first, last }: Seal,
): Promise<readonly [Measured, readonly Removal[]]> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const before = await tables.removalsOf(number)
    const measured = await tables.measure(first, last)
    const after = await tables.removalsOf(number)
    // Removals are only added, never deleted.
    if (before.length === after.length) return [measured, after]
  }
  throw new SealUnsettled(number, TRIES_MAX)
}

function* compare(
  seal: Seal,
  measured: Pick<Measured, 'facts' | 'sum'>,
  removed: Pick<Measured, 'facts' | 'sum'>,
): Generator<SealFinding> {
  const total = new LedgerSum()
  total.merge(measured)
  total.merge(removed)
  const missing = seal.facts - total.facts
  const what = `of the ${seal.facts} facts of seal ${seal.number}`
  const when = `from ${stamp(seal.firstAt)} to ${stamp(seal.lastAt)}`
  if (missing > 0) {
    const message = `${missing} ${what} are missing, ${when}`
    yield { kind: 'missing', ...of(seal), facts: missing, message }
  } else if (missing < 0) {
    const message = `Seal ${seal.number} has ${-missing} facts more than the ${seal.facts} sealed`
    yield { kind: 'added', ...of(seal), facts: -missing, message: `${message}, ${when}` }
  } else if (total.sum !== seal.sum) {
    yield { kind: 'changed', ...of(seal), message: `At least one ${what} was changed, ${when}` }
  }
}

/** What was removed from seals must be what the retention records say. */
async function* verifyRemovals(
  tables: SealTables,
  named: Map<number, number>,
): AsyncGenerator<SealFinding> {
  for await (const { number: pruned, facts, removals } of pruningsOf(tables)) {
    named.delete(pruned)
    if (removals.length === 0) continue
    const noted = removals.reduce((sum, removal) => sum + removal.facts, 0)
    if (noted === facts) continue
    const message = `Retention record ${pruned} counts ${facts} facts; its removals count ${noted}`
    yield { kind: 'removal-doubtful', pruned, message }
  }
  for (const [pruned, seal] of named) {
    const message = `Retention record ${pruned} of facts removed from seal ${seal} is missing`
    yield { kind: 'removal-doubtful', seal, pruned, message }
  }
}

async function* pruningsOf(tables: SealTables): AsyncGenerator<Pruning> {
  let last = 0
  for (;;) {
    const prunings = await tables.prunings(last, PAGE)
    yield* prunings
    last = prunings[prunings.length - 1]?.number ?? last
    if (prunings.length < PAGE) return
  }
}

/**
 * Verifies an exported ledger by a copy of the seals. Both should be of the same moment: facts that
 * retention removed in between would be reported as missing. Facts after the last seal are not
 * verified.
 */
export async function* verifyExport(
  entries: AsyncIterable<AuditEntry>,
  copies: readonly SealCopy[],
): AsyncGenerator<SealFinding> {
  yield* verifyChain(copies)
  const seals = copies.toSorted((a, b) => a.number - b.number)
  const sums = new Map(seals.map(({ number }) => [number, new LedgerSum()]))
  for await (const { pos, fact, payload = null } of entries) {
    // On PostgreSQL the position also names job and fact; the range counts transactions.
    const sum = sums.get(sealAt(seals, Number.parseInt(pos, 10)))
    sum?.add(encode({ fact: withoutOwnTrace(fact), payload }, LINE_BOUNDS), fact.at)
  }
  for (const seal of seals) {
    const removed = seal.removed ?? new LedgerSum().measured
    yield* compare(seal, sums.get(seal.number) as LedgerSum, removed)
  }
}

/** A removal whose lines are being read from an archive. */
interface Candidate {
  readonly pruning: Pruning
  readonly leftOut: ReadonlySet<string>
  readonly hash: ReturnType<typeof createHash>
  readonly sum: LedgerSum
}

/**
 * Verifies archives of retention against its records. Every archived removal must be in the
 * archives, line for line, and equal what was removed from the seals.
 */
export async function* verifyArchives(
  tables: SealTables,
  lines: AsyncIterable<string>,
): AsyncGenerator<SealFinding> {
  const wanted = new Map<string, Pruning[]>()
  for await (const pruning of pruningsOf(tables)) {
    if (!pruning.archived || pruning.removals.length === 0) continue
    wanted.set(pruning.firstId, [...(wanted.get(pruning.firstId) ?? []), pruning])
  }
  const proved = new Set<Pruning>()
  const tampered = new Set<Pruning>()
  let open: Candidate[] = []
  for await (const line of lines) {
    const fact = factIn(line)
    if (fact?.seq === 1) {
      open.push(...(wanted.get(fact.jobId) ?? []).map(candidateOf))
    }
    for (const one of open) take(one, line, fact?.jobId)
    for (const one of open.filter(isThrough)) judge(one)
    open = open.filter((one) => !isThrough(one))
  }
  for (const pruning of [...wanted.values()].flat()) {
    const { number: pruned, facts, at } = pruning
    const what = `what retention removed by record ${pruned} (${facts} facts, ${stamp(at)})`
    if (tampered.has(pruning) && !proved.has(pruning)) {
      const message = `An archive contains ${what}, but with other facts than were sealed`
      yield { kind: 'archive-changed', pruned, message }
    } else if (!proved.has(pruning)) {
      const message = `No archive contains ${what}, line for line`
      yield { kind: 'archive-missing', pruned, message }
    }
  }

  function judge({ pruning, hash, sum }: Candidate): void {
    if (hash.digest('hex') !== pruning.sha256) return
    const removed = new LedgerSum()
    for (const removal of pruning.removals) removed.merge(removal)
    if (removed.sum === sum.sum && removed.facts === sum.facts) proved.add(pruning)
    else tampered.add(pruning)
  }
}

function candidateOf(pruning: Pruning): Candidate {
  const leftOut = new Set(pruning.removals[0]?.leftOut ?? [])
  return { pruning, leftOut, hash: createHash('sha256'), sum: new LedgerSum() }
}

function take({ leftOut, hash, sum }: Candidate, line: string, jobId: string | undefined): void {
  if (jobId !== undefined && leftOut.has(jobId)) return
  hash.update(`${line}\n`)
  sum.add(line)
}

function isThrough({ pruning, sum }: Candidate): boolean {
  return sum.facts >= pruning.facts
}

/** Returns the fact of a line; `undefined` if it has none. Such a line matches no removal. */
function factIn(line: string): Pick<Fact, 'jobId' | 'seq'> | undefined {
  try {
    const { fact } = JSON.parse(line) as { fact?: Fact }
    return typeof fact?.jobId === 'string' ? fact : undefined
  } catch {
    return undefined
  }
}

function of({ number: seal, first, last, firstAt, lastAt }: Seal) {
  return { seal, range: [first, last], times: [firstAt, lastAt] } as const
}
