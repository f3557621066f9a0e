/**
 * The journal in a store: runs that move between machines. The same lines as in a folder, one in
 * each row, and the same snapshot; one writer by a lease with a fence (`src/stores/runs.ts`).
 */
import { encode } from '../../../core/canonical-json.ts'
import { RunExists, RunNotFound } from '../../../core/errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../../../core/fields.ts'
import type { RunEvent, RunFact } from '../../../core/run/events.ts'
import type { Run } from '../../../core/run/run.ts'
import { type Environment, systemEnvironment } from '../../../environment/system.ts'
import { checkLease } from '../../../stores/requests.ts'
import type { Grip, RunTables } from '../../../stores/runs.ts'
import { JournalClosed, RunHeld, RunLost } from '../errors.ts'
import { emptyLog, extend, type OpenLog } from '../event-line.ts'
import { encodeFailure } from '../failure-record.ts'
import { guarded } from '../guarded.ts'
import { sha256Of } from '../hash.ts'
import { mayLive, thisProcess } from '../holder.ts'
import type {
  Author,
  CancelRequest,
  DecideFailure,
  Holder,
  Journal,
  Replayed,
  RestoredRun,
  RunFinding,
  RunReader,
  RunWriter,
} from '../journal.ts'
import { artifactPath, checkRunId } from '../names.ts'
import { describeFailure, examine, peekRun, replayFailed, SourceReader } from '../reading.ts'
import { checkRestored } from '../restored.ts'
import { encodeSnapshot } from '../snapshot.ts'
import { verifyRun } from '../verify.ts'
import { noteOf, StoreSource } from './source.ts'
import { StoreWriter } from './writer.ts'

/** How to open a journal in a store. */
export interface StoreJournalOptions {
  /** An open store; it stays open when the journal is closed. */
  readonly store: { readonly runs: RunTables }
  /** How long a run stays held when its holder falls silent: 30 s unless said otherwise. */
  readonly leaseMs?: number
  readonly environment?: Environment
}

const OPTIONS: FieldChecks<StoreJournalOptions> = {
  store: unchecked,
  leaseMs: unchecked,
  environment: unchecked,
}

const LEASE_MS = 30_000
const LIST_PAGE = 1000

const ENDLESS_LEASE: RunFinding = {
  kind: 'lease',
  severity: 'notice',
  message: 'Its lease lasts longer than any lease can, and counts as ended',
  details: {},
}

/** Opens a journal in a store. */
export function openStoreJournal(options: StoreJournalOptions): Journal {
  checkDefinition('openStoreJournal', options, OPTIONS)
  checkLease(options.leaseMs ?? LEASE_MS)
  return new StoreJournal(
    options.store.runs,
    options.environment ?? systemEnvironment(),
    options.leaseMs ?? LEASE_MS,
  )
}

class StoreJournal implements Journal {
  readonly #tables: RunTables
  readonly #environment: Environment
  readonly #leaseMs: number
  readonly #writers = new Set<StoreWriter>()
  #closed = false

  constructor(tables: RunTables, environment: Environment, leaseMs: number) {
    this.#tables = tables
    this.#environment = environment
    this.#leaseMs = leaseMs
  }

  create(runId: string, facts: readonly RunFact[], author: Author): Promise<RunWriter> {
    return this.#guarded(runId, 'creation', async () => {
      const empty = emptyLog(runId)
      const { lines, lastHash } = extend(empty, facts, author, this.#environment)
      const grip = this.#newGrip(runId)
      const end = { seq: lines.length, hash: lastHash }
      const snapshot = encodeSnapshot(empty.fold.run as Run, lastHash)
      const held = { ...grip, ...this.#holding() }
      const run = { runId, lines, end, snapshot, grip: held, contents: [] }
      if (!(await this.#tables.add(run))) throw new RunExists(runId)
      return this.#keep(grip, { ...empty, lastHash })
    })
  }

  open(runId: string, _author: Author, onEvent?: (event: RunEvent) => void): Promise<RunWriter> {
    return this.#guarded(runId, 'opening', async () => {
      const grip = await this.#hold(runId)
      try {
        const { log, isCurrent } = await examine(new StoreSource(this.#tables, runId), onEvent)
        const { run, lastHash } = log
        if (run === null) throw new RunNotFound()
        if (!isCurrent()) await this.#renewSnapshot(grip, run, lastHash)
        return this.#keep(grip, log.open())
      } catch (error) {
        await this.#tables.release(grip)
        throw error
      }
    })
  }

  read(runId: string): Promise<RunReader> {
    return this.#guarded(runId, 'read', async () => {
      await this.#assertThere(runId)
      return new SourceReader(new StoreSource(this.#tables, runId))
    })
  }

  list(): Promise<string[]> {
    return guarded('*', 'list', async () => {
      this.#assertOpen()
      const ids: string[] = []
      for (;;) {
        const page = await this.#tables.ids(ids[ids.length - 1] ?? '', LIST_PAGE)
        ids.push(...page)
        if (page.length < LIST_PAGE) return ids
      }
    })
  }

  peek(runId: string): Promise<Run | undefined> {
    return this.#guarded(runId, 'read', async () => {
      const there = (await this.#tables.get(runId)) !== undefined
      return there ? peekRun(new StoreSource(this.#tables, runId)) : undefined
    })
  }

  verify(runId: string): Promise<RunFinding[]> {
    return this.#guarded(runId, 'check', async () => {
      const row = await this.#tables.get(runId)
      if (row === undefined) throw new RunNotFound()
      const findings = await verifyRun(new StoreSource(this.#tables, runId))
      return row.endless ? [...findings, ENDLESS_LEASE] : findings
    })
  }

  requestCancel(runId: string, request: Omit<CancelRequest, 'ts'>): Promise<void> {
    return this.#guarded(runId, 'request to cancel', async () => {
      const { reason, actor } = request
      const ts = new Date(this.#environment.clock.now()).toISOString()
      const asked = await this.#tables.askCancel(runId, encode({ actor, reason, ts }))
      if (!asked) throw new RunNotFound()
    })
  }

  failDamaged(runId: string, decide: DecideFailure, author: Author): Promise<Replayed> {
    return this.#guarded(runId, 'record of the failure', async () => {
      const grip = await this.#hold(runId)
      try {
        const source = new StoreSource(this.#tables, runId)
        const environment = this.#environment
        const { record, isNew } = await describeFailure(source, decide, author, environment)
        const text = encodeFailure(record)
        if (isNew && !(await this.#tables.putFailure(grip, text))) throw new RunLost(runId)
        return await replayFailed(source, record)
      } finally {
        await this.#tables.release(grip)
      }
    })
  }

  restore(restored: RestoredRun): Promise<'restored' | 'same'> {
    const { runId, lines } = restored
    return this.#guarded(runId, 'restoring', async () => {
      const { run, lastHash } = checkRestored(restored)
      const end = { seq: run.last_seq, hash: lastHash }
      const snapshot = encodeSnapshot(run, lastHash)
      const contents = restored.artifacts.map(({ name, content }) => ({
        path: artifactPath(name, sha256Of(content)),
        bytes: content,
      }))
      if (await this.#tables.add({ runId, lines, end, snapshot, contents })) return 'restored'
      const there = await this.#tables.get(runId)
      if (there?.end.hash === lastHash) return 'same'
      throw new RunExists(runId)
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    const closings = await Promise.allSettled([...this.#writers].map((writer) => writer.close()))
    const failed = closings.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #hold(runId: string): Promise<Grip> {
    const grip = this.#newGrip(runId)
    const hold = await this.#tables.hold(grip, this.#holding())
    if (hold.kind === 'missing') throw new RunNotFound()
    if (hold.kind === 'taken') {
      const holder = noteOf<Holder>(hold.holder)
      throw new RunHeld(runId, holder, holder !== undefined && !mayLive(holder))
    }
    return grip
  }

  async #renewSnapshot(grip: Grip, run: Run, lastHash: string): Promise<void> {
    const kept = await this.#tables.putSnapshot(grip, encodeSnapshot(run, lastHash))
    if (!kept) throw new RunLost(grip.runId)
  }

  #newGrip(runId: string): Grip {
    return { runId, fence: this.#environment.ids.next() }
  }

  #holding(): { holder: string; leaseMs: number } {
    return { holder: encode(thisProcess(this.#environment.clock)), leaseMs: this.#leaseMs }
  }

  /** Writes to a run whose snapshot is up to date. */
  #keep(grip: Grip, log: OpenLog): StoreWriter {
    const writer = new StoreWriter({
      tables: this.#tables,
      environment: this.#environment,
      grip,
      leaseMs: this.#leaseMs,
      log,
      snapshotSeq: log.fold.run?.last_seq ?? 0,
      onReleased: (released) => void this.#writers.delete(released),
    })
    this.#writers.add(writer)
    return writer
  }

  async #assertThere(runId: string): Promise<void> {
    if ((await this.#tables.get(runId)) === undefined) throw new RunNotFound()
  }

  async #guarded<T>(runId: string, doing: string, action: () => Promise<T>): Promise<T> {
    this.#assertOpen()
    checkRunId(runId)
    return guarded(runId, doing, action)
  }

  #assertOpen(): void {
    if (this.#closed) throw new JournalClosed('The journal', 'is closed')
  }
}
