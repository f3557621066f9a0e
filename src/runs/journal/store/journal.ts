/**
 * The journal in a store, for runs that several machines work on. It stores the same lines and
 * snapshot as a folder, one line in each row. A lease with a fence ensures that there is one writer
 * (`src/stores/contract/runs.ts`).
 */
import { encode } from '../../../core/canonical-json.ts'
import { RunExists, RunNotFound } from '../../../core/errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../../../core/fields.ts'
import type { RunEvent, RunFact } from '../../../core/run/events.ts'
import type { Run } from '../../../core/run/run.ts'
import { type Environment, systemEnvironment } from '../../../environment/system.ts'
import { checkLease } from '../../../stores/contract/requests.ts'
import type { RunLease, RunTables } from '../../../stores/contract/runs.ts'
import { RunHeld, RunLost } from '../errors.ts'
import { emptyLog, extend, type OpenLog } from '../event-line.ts'
import { encodeFailure } from '../failure-record.ts'
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
import { artifactPath } from '../names.ts'
import { guarded, OpenJournal } from '../open-journal.ts'
import { describeFailure, examine, peekRun, replayFailed, SourceReader } from '../reading.ts'
import { encodeSnapshot } from '../snapshot.ts'
import { checkRestored, verifyRun } from '../verify.ts'
import { noteOf, StoreSource } from './source.ts'
import { StoreWriter } from './writer.ts'

/** The options of `openStoreJournal`. */
export interface StoreJournalOptions {
  /** An open store. It stays open when the journal is closed. */
  readonly store: { readonly runs: RunTables }
  /** How long a run stays held after its holder stopped renewing. Default: 30 seconds. */
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
  message: 'Its lease ends later than any lease can, and counts as ended',
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

class StoreJournal extends OpenJournal<StoreWriter> implements Journal {
  readonly #tables: RunTables
  readonly #environment: Environment
  readonly #leaseMs: number

  constructor(tables: RunTables, environment: Environment, leaseMs: number) {
    super()
    this.#tables = tables
    this.#environment = environment
    this.#leaseMs = leaseMs
  }

  create(runId: string, facts: readonly RunFact[], author: Author): Promise<RunWriter> {
    return this.onRun(runId, 'creation', async () => {
      const empty = emptyLog(runId)
      const { lines, lastHash } = extend(empty, facts, author, this.#environment)
      const lease = this.#newLease(runId)
      const end = { seq: lines.length, hash: lastHash }
      const snapshot = encodeSnapshot(empty.fold.run as Run, lastHash)
      const held = { ...lease, ...this.#holding() }
      const run = { runId, lines, end, snapshot, lease: held, contents: [] }
      if (!(await this.#tables.add(run))) throw new RunExists(runId)
      return this.#keep(lease, { ...empty, lastHash })
    })
  }

  open(runId: string, _author: unknown, onEvent?: (event: RunEvent) => void): Promise<RunWriter> {
    return this.onRun(runId, 'opening', async () => {
      const lease = await this.#hold(runId)
      try {
        const { log, isCurrent } = await examine(new StoreSource(this.#tables, runId), onEvent)
        const { run, lastHash } = log
        if (run === null) throw new RunNotFound()
        if (!isCurrent()) await this.#renewSnapshot(lease, run, lastHash)
        return this.#keep(lease, log.open())
      } catch (error) {
        await this.#tables.release(lease)
        throw error
      }
    })
  }

  read(runId: string): Promise<RunReader> {
    return this.onRun(runId, 'read', async () => {
      await this.#assertThere(runId)
      return new SourceReader(new StoreSource(this.#tables, runId))
    })
  }

  list(): Promise<string[]> {
    return guarded('*', 'list', async () => {
      this.assertOpen()
      const ids: string[] = []
      for (;;) {
        const page = await this.#tables.ids(ids[ids.length - 1] ?? '', LIST_PAGE)
        ids.push(...page)
        if (page.length < LIST_PAGE) return ids
      }
    })
  }

  peek(runId: string): Promise<Run | undefined> {
    return this.onRun(runId, 'read', async () => {
      const there = (await this.#tables.get(runId)) !== undefined
      return there ? peekRun(new StoreSource(this.#tables, runId)) : undefined
    })
  }

  verify(runId: string): Promise<RunFinding[]> {
    return this.onRun(runId, 'check', async () => {
      const row = await this.#tables.get(runId)
      if (row === undefined) throw new RunNotFound()
      const findings = await verifyRun(new StoreSource(this.#tables, runId))
      return row.endless ? [...findings, ENDLESS_LEASE] : findings
    })
  }

  requestCancel(runId: string, request: Omit<CancelRequest, 'ts'>): Promise<void> {
    return this.onRun(runId, 'request to cancel', async () => {
      const { reason, actor } = request
      const ts = new Date(this.#environment.clock.now()).toISOString()
      const asked = await this.#tables.askCancel(runId, encode({ actor, reason, ts }))
      if (!asked) throw new RunNotFound()
    })
  }

  failDamaged(runId: string, decide: DecideFailure, author: Author): Promise<Replayed> {
    return this.onRun(runId, 'record of the failure', async () => {
      const lease = await this.#hold(runId)
      try {
        const source = new StoreSource(this.#tables, runId)
        const environment = this.#environment
        const { record, isNew } = await describeFailure(source, decide, author, environment)
        const text = encodeFailure(record)
        if (isNew && !(await this.#tables.putFailure(lease, text))) throw new RunLost(runId)
        return await replayFailed(source, record)
      } finally {
        await this.#tables.release(lease)
      }
    })
  }

  restore(restored: RestoredRun): Promise<'restored' | 'same'> {
    const { runId, lines } = restored
    return this.onRun(runId, 'restoring', async () => {
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

  async #hold(runId: string): Promise<RunLease> {
    const lease = this.#newLease(runId)
    const hold = await this.#tables.hold(lease, this.#holding())
    if (hold.kind === 'missing') throw new RunNotFound()
    if (hold.kind === 'taken') {
      const holder = noteOf<Holder>(hold.holder)
      throw new RunHeld(runId, holder, holder !== undefined && !mayLive(holder))
    }
    return lease
  }

  async #renewSnapshot(lease: RunLease, run: Run, lastHash: string): Promise<void> {
    const kept = await this.#tables.putSnapshot(lease, encodeSnapshot(run, lastHash))
    if (!kept) throw new RunLost(lease.runId)
  }

  #newLease(runId: string): RunLease {
    return { runId, fence: this.#environment.ids.next() }
  }

  #holding(): { holder: string; leaseMs: number } {
    return { holder: encode(thisProcess(this.#environment.clock)), leaseMs: this.#leaseMs }
  }

  #keep(lease: RunLease, log: OpenLog): StoreWriter {
    return this.keep(
      new StoreWriter({
        tables: this.#tables,
        environment: this.#environment,
        lease,
        leaseMs: this.#leaseMs,
        log,
        snapshotSeq: log.fold.run?.last_seq ?? 0,
        onReleased: this.forget,
      }),
    )
  }

  async #assertThere(runId: string): Promise<void> {
    if ((await this.#tables.get(runId)) === undefined) throw new RunNotFound()
  }
}
