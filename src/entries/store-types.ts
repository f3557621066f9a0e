/**
 * What `pawl/sqlite` and `pawl/postgres` both export: the store, and what its public verbs take and
 * return. Verbs that are marked as internal are the engine's own; declarations lack them.
 */
export * from '../stores/outbox-types.ts'
export type {
  Answer,
  Asker,
  Beat,
  ClaimRequest,
  CommitAnswer,
  CommitTx,
  Counts,
  DamagedJob,
  Enqueued,
  EnqueueItem,
  EnqueueOptions as StoreEnqueueOptions,
  Heartbeat,
  Held,
  JobFilter,
  OnConflict,
  OnMoved,
  Page,
  PruneRequest,
  QueueInfo,
  QueueLimits,
  Recovered,
  Ref,
  Settled,
  Settlement,
  Store,
  StoreTx,
  TailEntry,
  UnreadableFact,
  WorkerRow,
} from '../stores/store.ts'
