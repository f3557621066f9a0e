/**
 * Exported by `pawl/sqlite` and `pawl/postgres`: the store, and the types of its public verbs.
 * Internal verbs are for the engine; the declarations of the package do not contain them.
 */
export * from '../stores/contract/outbox.ts'
export type {
  Answer,
  Beat,
  ClaimRequest,
  Closing,
  CommitAnswer,
  CommitTx,
  CommitWork,
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
  Requester,
  Settled,
  Settlement,
  Store,
  StoreTx,
  TailEntry,
  UnreadableFact,
  WorkerRow,
} from '../stores/contract/store.ts'
