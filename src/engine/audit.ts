/** The facts of all jobs, walked page by page, for those who look into what happened. */
import { LedgerBroken } from '../core/errors.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from '../stores/audit.ts'
import type { Store } from '../stores/store.ts'
import { pagesOf } from './pages.ts'

/** As many facts as a store gives at once. */
const AUDIT_PAGE = 1000

/** Every fact that a filter shows, in the order of the ledger unless said otherwise. */
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
    // An audit that leaves a fact out must not look complete.
    for (const { jobId, seq, unreadable: why } of unreadable ?? []) {
      throw new LedgerBroken(`job ${jobId}`, seq, why)
    }
  }
}
