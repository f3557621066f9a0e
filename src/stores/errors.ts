/** The errors of stores. As in the core, each has its own class and a stable code. */
import type { RateRule } from '../core/admission.ts'
import { PawlError } from '../core/errors.ts'
import { brief, span } from '../core/format.ts'
import { withoutSecrets } from '../core/redact.ts'
import type { RemovedJob } from './contract/retention.ts'
import { codeOf, isSqlState, outageOf } from './outage.ts'

/** The package through which a store reaches its database is not installed. */
export class DriverMissing extends PawlError {
  readonly code = 'E_DRIVER_MISSING'
  constructor(name: string, why: string, hint: string, cause: unknown) {
    super(`${why}, and ${name} cannot be loaded`, hint, { name, cause: String(cause) })
  }
}

/** The store cannot be opened: it is missing, unreadable, or not what it should be. */
export class StoreUnusable extends PawlError {
  readonly code = 'E_STORE_UNUSABLE'
  constructor(where: string, why: string, hint: string) {
    super(`The store ${where} cannot be used: ${why}`, hint, { where, why })
  }
}

/** The store was made by a newer release, whose data this one might misread. */
export class SchemaTooNew extends PawlError {
  readonly code = 'E_SCHEMA_TOO_NEW'
  constructor(found: number, known: number) {
    super(
      `The store has schema ${found}, and this release knows up to ${known}`,
      'Update the package `pawl` in this program: a newer release has migrated the store.',
      { found, known },
    )
  }
}

/** A migration that was applied is not the one that this release has. */
export class SchemaDrift extends PawlError {
  readonly code = 'E_SCHEMA_DRIFT'
  constructor(migration: number) {
    super(
      `Migration ${migration} of the store differs from the one in this release`,
      'Check which release made the store; migrations are never edited.',
      { migration },
    )
  }
}

/** A table of the store is gone or has lost columns, and no statement brings its rows back. */
export class NotRestorable extends PawlError {
  readonly code = 'E_NOT_RESTORABLE'
  constructor(table: string, problem: 'missing' | 'different', expected: string) {
    const what = problem === 'missing' ? 'is missing' : 'has lost columns, or has others instead'
    super(
      `The table ${table} ${what}, which cannot be repaired automatically`,
      'Bring it back from a backup, or change its columns by hand to what is expected.',
      { table, problem, expected },
    )
  }
}

/** Other processes kept the store locked for longer than the time-out. */
export class StoreBusy extends PawlError {
  readonly code = 'E_STORE_BUSY'
  constructor(waitedMs: number) {
    super(
      `Other processes kept the store locked for ${span(waitedMs)}`,
      'Nothing was written. Try again, or raise `storeTimeout` in createPawl.',
      { waitedMs },
    )
  }
}

/** Retention deleted facts of a seal, several times in a row, while their sum was computed. */
export class SealUnsettled extends PawlError {
  readonly code = 'E_SEAL_UNSETTLED'
  constructor(seal: number, tries: number) {
    super(
      `Retention deleted facts of seal ${seal} while it was verified, ${tries} times in a row`,
      'Repeat the call when retention has ended.',
      { seal, tries },
    )
  }
}

/** The database cannot be reached, or did not answer in time. */
export class StoreUnavailable extends PawlError {
  readonly code = 'E_STORE_UNAVAILABLE'
  /** `outcome` is 'none' if it is certain that nothing of what was asked has been done. */
  constructor(waitedMs: number, cause: unknown, outcome: 'unknown' | 'none' = 'unknown') {
    const { reason, code, advice } = outageOf(cause)
    super(
      waitedMs > 0
        ? `The database could not be reached for ${span(waitedMs)}: ${reason}`
        : `The connection to the database was lost: ${reason}`,
      `${advice} ${outcome === 'none' ? 'Nothing was written; try again.' : REPEAT}`,
      { waitedMs, reason, outcome, ...(code !== '' && { cause: code }) },
    )
    // The error of the driver, not the same outage as one try of the call saw it.
    this.cause = cause instanceof StoreUnavailable ? cause.cause : cause
  }
}

/** The answer to a write was lost, and a later try to find out what it did has failed. */
export class OutcomeUnknown extends PawlError {
  readonly code = 'E_OUTCOME_UNKNOWN'
  constructor(cause: unknown) {
    const { reason, code } = outageOf(cause)
    super(
      `It is not known whether the write was done: its answer was lost, and then ${reason}`,
      REPEAT,
      { reason, outcome: 'unknown', ...(code !== '' && { cause: code }) },
    )
    this.cause = cause
  }
}

const REPEAT =
  'The call may have been executed. Repeat it with the same ids: nothing is done twice.'

/** Returns true if the store could not be reached or was locked; the call may be repeated. */
export function isOutage(error: unknown): boolean {
  return (
    error instanceof StoreUnavailable ||
    error instanceof OutcomeUnknown ||
    error instanceof StoreBusy
  )
}

/** The store was closed. */
export class StoreClosed extends PawlError {
  readonly code = 'E_STORE_CLOSED'
  constructor() {
    super('The store is closed', 'Do not use it after close(). Call createPawl again to go on.')
  }
}

/** The database has no room left: its disk is full, or a quota is used up. */
export class StoreFull extends PawlError {
  readonly code = 'E_STORE_FULL'
  constructor(why: string, cause: unknown) {
    super(
      `The store has no room left: ${why}`,
      'Nothing was written. Free space on its disk, or raise the quota. Workers then continue.',
      { why },
    )
    this.cause = cause
  }
}

/** The files of the database are damaged. */
export class StoreMalformed extends PawlError {
  readonly code = 'E_STORE_MALFORMED'
  constructor(why: string, cause: unknown) {
    super(
      `The files of the store are damaged: ${why}`,
      'Stop every process that uses it and copy its files first. Then restore a backup, or save ' +
        'what can be read (SQLite: sqlite3 FILE .recover).',
      { why },
    )
    this.cause = cause
  }
}

/** This process may not read or write the files or tables of the store. */
export class StoreDenied extends PawlError {
  readonly code = 'E_STORE_DENIED'
  constructor(why: string, cause: unknown) {
    super(
      `This process has no permission to use the store: ${why}`,
      'Nothing was written. Check who owns the file and its folder (or tables), their ' +
        'permissions, and whether the file system is mounted read-only.',
      { why },
    )
    this.cause = cause
  }
}

/** The operating system could not read or write the files of the store. */
export class StoreIoFailed extends PawlError {
  readonly code = 'E_STORE_IO'
  constructor(why: string, cause: unknown) {
    super(
      `The disk of the store failed: ${why}`,
      'The write was not acknowledged. Read the log of the operating system and check the disk ' +
        'before you continue.',
      { why },
    )
    this.cause = cause
  }
}

/** The database failed for a reason that has no code of its own, such as a constraint. */
export class StoreFailed extends PawlError {
  readonly code = 'E_STORE_FAILED'
  constructor(why: string, cause: unknown) {
    const code = codeOf(cause)
    const said = withoutSecrets(why)
    super(
      `The database rejected a statement: ${said}${isSqlState(code) ? ` (SQLSTATE ${code})` : ''}`,
      'This call wrote nothing. The cause of this error is the error of the driver.',
      { why: said, ...(code !== '' && { cause: code }) },
    )
    this.cause = cause
  }
}

/** The stored row of a job cannot be read or trusted. */
export class JobDamaged extends PawlError {
  readonly code = 'E_JOB_DAMAGED'
  readonly why: string
  /** The store's own handle of the row. */
  readonly ref: number | string
  constructor(jobId: string, why: string, ref: number | string = jobId) {
    super(
      `Job ${jobId} is damaged: ${why}`,
      'Nothing was changed. Run "pawl doctor --full --plan", then --apply; other jobs go on.',
      { jobId, why },
    )
    this.why = why
    this.ref = ref
  }
}

/** The stored row of a lifecycle cannot be used; its jobs wait until it is repaired. */
export class MachineDamaged extends PawlError {
  readonly code = 'E_MACHINE_DAMAGED'
  constructor(name: string, version: number, why: string) {
    super(
      `The stored row of lifecycle "${name}" version ${version} is damaged: ${why}`,
      'Nothing was written. Run "pawl doctor --full --plan", then --apply; other lifecycles go on.',
      { name, version, why },
    )
  }
}

/** Another job has the key of the new job, and `onConflict` is 'reject'. */
export class KeyTaken extends PawlError {
  readonly code = 'E_KEY_TAKEN'
  constructor(type: string, key: string, jobId: string) {
    super(
      `Job ${jobId} of type "${type}" already has the key "${key}"`,
      "Nothing was written. Use that job, another key, or onConflict: 'existing'.",
      { type, key, jobId },
    )
  }
}

/** The job type has a `rateLimit`, and its key has used it up. */
export class RateLimited extends PawlError {
  readonly code = 'E_RATE_LIMITED'
  /** After this time the same call may succeed. */
  readonly retryAfterMs: number
  constructor(
    { type, key, limit, periodMs }: { type: string; key: string } & RateRule,
    retryAfterMs: number,
  ) {
    super(
      `"${type}" accepts ${limit} jobs in ${span(periodMs)} for the key "${key}", and has them`,
      `Nothing was written. Try again in ${span(retryAfterMs)} (\`retryAfterMs\`).`,
      { type, key, limit, periodMs, retryAfterMs },
    )
    this.retryAfterMs = retryAfterMs
  }
}

/** The job has ended and retention removed it; only its key is kept. */
export class JobRemoved extends PawlError {
  readonly code = 'E_JOB_REMOVED'
  /** How it ended. */
  readonly outcome: RemovedJob['outcome']
  constructor({ id, type, key, outcome, endedAt, keepUntil }: RemovedJob) {
    super(
      `Job ${id} of type "${type}" with the key "${key}" has ended (${outcome}) and was removed`,
      'Its result is gone. Use another key for a new job, or keep jobs for longer (`retention`).',
      { jobId: id, type, key, outcome, endedAt, keepUntil },
    )
    this.outcome = outcome
  }
}

/** The queue of a new job already has `maxDepth` ready jobs. */
export class QueueFull extends PawlError {
  readonly code = 'E_QUEUE_FULL'
  constructor(queue: string, maxDepth: number) {
    super(
      `The queue "${queue}" already has ${maxDepth} ready jobs, its maxDepth`,
      `Nothing was written. Enqueue it later, add workers, or raise the limit: pawl queue limit.`,
      { queue, maxDepth },
    )
  }
}

/** No flow or batch has this id. */
export class FlowNotFound extends PawlError {
  readonly code = 'E_FLOW_NOT_FOUND'
  constructor(id: string) {
    super(
      `Flow ${id} was not found`,
      'Check the id and the store (pawl flow list). Retention deletes flows with their last job.',
      { id },
    )
  }
}

/** The batch takes no more members. */
export class BatchClosed extends PawlError {
  readonly code = 'E_BATCH_CLOSED'
  constructor(id: string) {
    super(
      `Batch ${id} is closed: no members can be added`,
      'Create another batch, or create this one with `open: true` and close it later.',
      { id },
    )
  }
}

/** No schedule with this name exists. */
export class ScheduleNotFound extends PawlError {
  readonly code = 'E_SCHEDULE_NOT_FOUND'
  constructor(schedule: string) {
    super(
      `There is no schedule "${brief(schedule)}"`,
      'Check the name and the store (pawl schedule list).',
      { schedule },
    )
  }
}

/** The stored definition of a schedule cannot be read or does not agree with its checksum. */
export class ScheduleDamaged extends PawlError {
  readonly code = 'E_SCHEDULE_DAMAGED'
  constructor(schedule: string) {
    super(
      `The stored definition of schedule "${brief(schedule)}" is damaged`,
      'No job is made for its ticks. Repair it: pawl doctor --apply --reason "…".',
      { schedule },
    )
  }
}

/** A verb was called inside a commit or a transaction of its own store, and would wait for it. */
export class UseTx extends PawlError {
  readonly code = 'E_USE_TX'
  constructor() {
    super(
      'Inside a commit or pawl.transaction(), the store can be used only through its tx',
      'Use the tx that the function gets: tx.enqueue(job, input) in a commit, pawl.enqueue(job, ' +
        'input, { tx }) in a transaction, or tx.query for your own tables. Do everything else ' +
        'before or after it.',
    )
  }
}

/** The function of a commit took too long; everything that it did was rolled back. */
export class CommitTooSlow extends PawlError {
  readonly code = 'E_COMMIT_TOO_SLOW'
  constructor(boundMs: number) {
    super(
      `The function of a commit took longer than ${span(boundMs)}`,
      'Do slow work before the commit; inside it, only write.',
      { boundMs },
    )
  }
}

/** The function of a transaction took too long; everything that it did was rolled back. */
export class TransactionTooSlow extends PawlError {
  readonly code = 'E_TRANSACTION_TOO_SLOW'
  constructor(boundMs: number) {
    super(
      `The function of a transaction took longer than ${span(boundMs)}`,
      'Nothing was written. Do slow work before the transaction; inside it, only write.',
      { boundMs },
    )
  }
}

/** The tx of a commit or transaction was used after it had ended. */
export class TxEnded extends PawlError {
  readonly code = 'E_TX_ENDED'
  constructor() {
    super(
      'The transaction has ended',
      'Await every statement and every enqueue before the transaction ends.',
    )
  }
}

/** The database rolled back the transaction while its function was still running. */
export class TxBroken extends PawlError {
  readonly code = 'E_TX_BROKEN'
  constructor() {
    super(
      'A statement failed, and the database rolled back the whole transaction',
      'Nothing was written. Do not catch the error of that statement inside the function.',
    )
  }
}

/** The function of a commit or transaction tried to begin or to end a transaction. */
export class TxOwned extends PawlError {
  readonly code = 'E_TX_OWNED'
  constructor() {
    super(
      'Only Pawl begins and ends the transaction of a commit or of pawl.transaction()',
      'Return from the function to commit, throw to roll back. Savepoints may be used.',
    )
  }
}

const TX_HINT =
  'Pass the tx of pawl.transaction() or of a commit, or the handle of the driver on which you ' +
  'opened a transaction on the same database.'

/** The value given as `tx` is not a transaction of the database of the store. */
export class TxInvalid extends PawlError {
  readonly code = 'E_TX_INVALID'
  constructor(why: string, hint = TX_HINT) {
    super(`The value given as tx cannot be used: ${why}`, hint, { why })
  }
}

/** A committed job cannot be done while effects of it are still to be delivered. */
export class EffectsOpen extends PawlError {
  readonly code = 'E_EFFECTS_OPEN'
  constructor(jobId: string) {
    super(
      `Job ${jobId} still has effects to deliver`,
      `It ends when the last one is delivered. Parked ones: pawl effect list --job ${jobId}.`,
      { jobId },
    )
  }
}

/** The store has findings that were made when it was opened. */
export class StoreDamaged extends PawlError {
  readonly code = 'E_STORE_DAMAGED'
  constructor(findings: readonly string[]) {
    super(
      `The store is damaged, so workers get no jobs: ${findings.join('; ')}`,
      'Run "pawl doctor --full --plan", then --apply; or open it with onFindings: "warn".',
      { findings },
    )
  }
}

/** The file is used in this process by something that breaks the locks of SQLite. */
export class StoreUnsafe extends PawlError {
  readonly code = 'E_STORE_UNSAFE'
  constructor(path: string, why: string) {
    super(
      `The store ${path} is not safe in this process: ${why}`,
      'Restart the process. Inside it, use the file only through pawl.transaction() or a handle ' +
        'of the same SQLite library; do not read or copy the file with node:fs.',
      { path, why },
    )
  }
}

/** The handle given as `tx` belongs to another SQLite library than the one that Pawl uses. */
export class TxForeign extends PawlError {
  readonly code = 'E_TX_FOREIGN'
  constructor(theirs: string, ours: string) {
    super(
      `The handle given as tx is ${theirs}, and Pawl uses ${ours}`,
      'Two SQLite libraries on one file in one process lose data. Use pawl.transaction(), or ' +
        'open your own handle with the library that Pawl uses.',
      { theirs, ours },
    )
  }
}

/** A live worker of an earlier release would claim jobs past a limit. Nothing was declared. */
export class WorkersTooOld extends PawlError {
  readonly code = 'E_WORKERS_TOO_OLD'
  constructor(workers: readonly string[]) {
    super(
      `Limits cannot be declared while workers of an earlier release run: ${workers.join(', ')}`,
      'Stop these workers or update them (pawl worker list); then start this process again.',
      { workers },
    )
  }
}

const LASTING = [StoreFull, StoreMalformed, StoreDenied, StoreIoFailed, StoreUnsafe]

/** Returns true if a retry cannot succeed until a person acts. */
export function isLasting(error: unknown): boolean {
  return LASTING.some((lasting) => error instanceof lasting)
}
