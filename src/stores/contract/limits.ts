/**
 * Limits in a store: what is in force, who changed it, and what runs and waits under each.
 *
 * A limit has a name such as `shared/openai` or `job/sync/tenant`; one key of it is a gate, such as
 * `job/sync/tenant/acme`. `core/limits/keys.ts` has the forms of both. Limits of types and queues
 * and shared limits without keys have one gate of the same name.
 */
import type { ActorKind } from '../../core/job/facts.ts'
import type { RepairAuthor } from './examination.ts'
import type { Page, Requester } from './store.ts'

/** What a limit says in the code of a process. */
export interface LimitDeclaration {
  readonly name: string
  /** How many jobs may run, or units of a throttle start; null if a function of the input says. */
  readonly max: number | null
  /** Throttles only: the period, and how many units may start at once. */
  readonly periodMs?: number
  readonly burst?: number
  /** A higher version wins; 1 if absent. */
  readonly version?: number
}

/** The values of a limit. */
export interface LimitValues {
  readonly max: number | null
  readonly periodMs: number | null
  readonly burst: number | null
  /** The version of the code that said so; 0 if no code has. */
  readonly version: number
  /** The operator's number, which counts until it is reset. */
  readonly override: number | null
}

/** A limit, or one key of it that an operator has overridden. */
export interface LimitInfo extends LimitValues {
  readonly name: string
  readonly declaredAt: number | null
  readonly overrideAt: number | null
  readonly overrideBy: string | null
  readonly overrideNote: string | null
}

/** One change of a limit. */
export interface LimitRecord {
  /** Grows with every record of the store; gaps are possible. */
  readonly number: number
  readonly at: number
  readonly name: string
  readonly action: 'declare' | 'set' | 'reset'
  readonly actor: ActorKind
  readonly operator?: string
  readonly note?: string
  readonly before: LimitValues
  readonly after: LimitValues
}

/** A declaration, and what became of it. */
export interface DeclaredLimit {
  readonly name: string
  /** Absent if the store has the same values already. */
  readonly record?: LimitRecord
  /**
   * `kept`: the store has a higher version, which stays. `conflict`: the same version had other
   * values, which are replaced; two releases with one version contradict each other.
   */
  readonly warning?: 'kept' | 'conflict'
}

/** A gate: what runs and what waits under it. */
export interface GateInfo {
  readonly gate: string
  readonly limit: string
  readonly key?: string
  /** How many jobs run. */
  readonly used: number
  /** How many may run, or units of a throttle start in a period; null: any number. */
  readonly max: number | null
  /** Throttles: no job starts before this time; absent if one may start now. */
  readonly opensAt?: number
  /** How many jobs are blocked by it, counted up to `BLOCKED_MAX`, and since when the first. */
  readonly blocked: number
  readonly blockedSince?: number
}

/** What runs and waits under a limit, over all of its keys. */
export interface LimitTotal {
  readonly limit: string
  readonly isThrottle: boolean
  /** The number in force, for each key if it has keys; null: a function of the input says. */
  readonly max: number | null
  readonly used: number
  readonly blocked: number
  /** Since when the first blocked job has been due. */
  readonly blockedSince?: number
}

/** Jobs blocked by one gate are counted up to this number. */
export const BLOCKED_MAX = 10_000

/** A job that counts in a gate. */
export interface GateHolder {
  readonly id: string
  readonly type: string
  readonly worker: string
  readonly startedAt: number
  readonly leaseUntil: number
}

/** Why a job is blocked. */
export interface Blockage {
  readonly gate: GateInfo
  /** How many jobs that are blocked by the same gate come before it. */
  readonly ahead: number
}

/** The place of a job in its strict group. */
export interface GroupPlace {
  readonly gate: string
  /** The job that comes first; it may be the job itself. */
  readonly head: string
  /** How many jobs come before it, counted up to `BLOCKED_MAX`. */
  readonly ahead: number
}

/** A gate whose count is not the number of jobs that count in it. */
export interface GateDrift {
  readonly gate: string
  readonly used: number
  readonly counted: number
}

/**
 * What is wrong with a gate. `count`: see `GateDrift`. `stranded`: it blocks jobs that no worker
 * will make ready. `values`: it has a time or a number that Pawl never writes. `exceeded`: more
 * jobs run than may, and one of them started after the number was last changed. `ungated`: claims
 * of its queue do not look at it.
 */
export interface GateFault extends GateDrift {
  readonly kind: 'count' | 'stranded' | 'values' | 'exceeded' | 'ungated'
  /** How many may run; only for `exceeded`. */
  readonly max?: number
}

/** Which gates are listed. */
export interface GateFilter {
  /** The name of a limit. */
  readonly limit?: string
  /** Only gates that may block jobs. */
  readonly waiting?: true
}

/** Which records are listed; those of every limit if it is empty. */
export interface LimitRecordFilter {
  readonly name?: string
}

interface PageOptions {
  readonly limit?: number
  readonly after?: string
}

/** The tables of limits. */
export interface LimitTables {
  /**
   * Declares what the code of this process says, in one transaction. In force when it resolves: a
   * job that was claimed before counts. Throws `WorkersTooOld` while a live worker of a release
   * without limits is registered.
   */
  declare(limits: readonly LimitDeclaration[]): Promise<DeclaredLimit[]>
  /**
   * Sets the operator's number of a limit, or of one key of it; 0 pauses it. By an operator only.
   * In force when it resolves. Returns `undefined` if it is the number already.
   */
  set(name: string, concurrency: number, requester: Requester): Promise<LimitRecord | undefined>
  /** Removes the operator's number: the code's counts again. By an operator only. */
  reset(name: string, requester: Requester): Promise<LimitRecord | undefined>
  /** Limits and overridden keys, by name. */
  list(options?: PageOptions): Promise<Page<LimitInfo>>
  get(name: string): Promise<LimitInfo | undefined>
  /** Gates in use, by name. A gate that nothing uses has no row. */
  gates(filter: GateFilter, options?: PageOptions): Promise<Page<GateInfo>>
  gate(name: string): Promise<GateInfo>
  /**
   * The first `limit` limits by name, with sums over their keys. Reads 100,000 gates and 100,000
   * blocked jobs at most.
   */
  totals(limit: number): Promise<LimitTotal[]>
  /** The jobs that count in a gate, those that started first first; at most `limit`. */
  holders(gate: string, limit: number): Promise<GateHolder[]>
  /** What blocks a job; `undefined` if it is not blocked. */
  blockage(jobId: string): Promise<Blockage | undefined>
  /** The place of a job in its strict group; `undefined` if it holds none. */
  groupPlace(jobId: string): Promise<GroupPlace | undefined>
  /** Records of changes, newest first. */
  records(filter: LimitRecordFilter, options?: PageOptions): Promise<Page<LimitRecord>>
  /** Moves jobs whose gate has room, and opens throttles whose time has come; returns how many. */
  open(limit: number): Promise<number>
  /** Counts the jobs of every gate; a gate without a row has used 0. */
  drift(limit: number): Promise<GateDrift[]>
  /** Compares every gate with the jobs, for the doctor. */
  faults(limit: number): Promise<GateFault[]>
  /** Writes these gates as the jobs say, under their locks; returns those that were wrong. */
  recount(gates: readonly string[]): Promise<GateDrift[]>
  /** Sets a limit to what its last records say, and keeps a note of the old row. */
  restore(name: string, by: RepairAuthor): Promise<void>
}
