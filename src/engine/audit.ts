/** Reads the facts of all jobs page by page. */
import { LedgerBroken } from '../core/errors.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from '../stores/audit.ts'
import type { Store } from '../stores/contract/store.ts'
import { pagesOf } from './pages.ts'

/** The largest page that a store returns. */
const AUDIT_PAGE = 1000

/** All facts that match a filter, in the order of the ledger unless the options say otherwise. */
export async function* auditOf(
  store: Store,
  filter: AuditFilter,
  { limit, after, ...options }: AuditOptions,
): AsyncGenerator<AuditEntry> {
  const ask = (page: { limit: number; after?: string }) =>
    store.audit(filter, { ...options, ...page })
  const walk = { size: AUDIT_PAGE, after, ...(limit !== undefined && { limit }) }
  for await (const { items, unreadable } of pagesOf(ask, walk)) {
    yield* items
    // An audit that lacks facts must not look complete.
    for (const { jobId, seq, unreadable: why } of unreadable ?? []) {
      throw new LedgerBroken(`job ${jobId}`, seq, why)
    }
  }
}
