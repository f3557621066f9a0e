/**
 * The part of the store interface that `pawl/sqlite` and `pawl/postgres` export: the verbs of the
 * README and of the guides, and what they take and return. The other verbs of `Store` belong to the
 * engine.
 */
export * from '../stores/outbox-types.ts'
export type {
  Asker,
  ClaimRequest,
  CommitAnswer,
  CommitTx,
  Counts,
  DamagedJob,
  Enqueued,
  EnqueueItem,
  EnqueueOptions as StoreEnqueueOptions,
  Held,
  JobFilter,
  OnConflict,
  Page,
  PruneRequest,
  QueueInfo,
  QueueLimits,
  Ref,
  Settled,
  Settlement,
  Store,
  StoreTx,
  TailEntry,
  UnreadableFact,
  WorkerRow,
} from '../stores/store.ts'
