/** `pawl/audit`: for programs that read the ledger, seal it, and verify seals and archives. */
export {
  auditLimit,
  type LimitAudit,
  type LimitAuditOptions,
  type LimitUse,
  type LimitViolation,
} from '../audit/limit-use.ts'
export { sealUp } from '../audit/seal-up.ts'
export {
  type SealCopy,
  type SealFinding,
  verifyArchives,
  verifyExport,
  verifySeals,
} from '../audit/verify-seals.ts'
export type { AuditEntry, AuditFilter, AuditOptions } from '../stores/audit.ts'
export type { Store } from '../stores/contract/store.ts'
export type { QueueRecord, QueueRecordFilter, QueueSettings } from '../stores/queue-records.ts'
export type { Pruning, Removal, Seal, SealTables } from '../stores/seals.ts'
