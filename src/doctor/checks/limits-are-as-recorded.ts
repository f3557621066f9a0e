import type { LimitInfo, LimitRecord } from '../../stores/contract/limits.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { StoreCheck } from './check.ts'

const PAGE = 1000

/**
 * Compares each limit with its last record. A limit that has lost the number of an operator would
 * let jobs run that this operator has stopped. Limits without records are not compared.
 */
export const limitsAreAsRecorded: StoreCheck = {
  name: 'limits-are-as-recorded',
  promise: 'P9',
  says: 'Every limit has the numbers of its last record.',
  look: async ({ store }) => {
    const suspects = await findStray(store, await lastRecords(store))
    // A change between the two reads looks like a difference, so differences are read again.
    const again = await Promise.all(
      suspects.map(({ name }) => store.limits.records({ name }, { limit: 1 })),
    )
    const found = await findStray(
      store,
      again.flatMap(({ items }) => items),
    )
    return found.map(({ name, number, after }) => ({
      promise: 'P9',
      severity: 'error',
      subject: `limit ${name}`,
      what: `its numbers differ from its last record, number ${number}`,
      evidence: { limit: name, record: after },
      remedy: 'restore the limit',
    }))
  },
}

async function lastRecords({ limits }: Store): Promise<LimitRecord[]> {
  const last = new Map<string, LimitRecord>()
  for (let after: string | undefined; ; ) {
    const page = await limits.records({}, { limit: PAGE, ...(after && { after }) })
    for (const record of page.items) if (!last.has(record.name)) last.set(record.name, record)
    if (page.next === undefined) return [...last.values()]
    after = page.next
  }
}

async function findStray(
  { limits }: Store,
  records: readonly LimitRecord[],
): Promise<LimitRecord[]> {
  const stray: LimitRecord[] = []
  for (const record of records) {
    if (!isSame(await limits.get(record.name), record.after)) stray.push(record)
  }
  return stray
}

function isSame(limit: LimitInfo | undefined, after: LimitRecord['after']): boolean {
  if (limit === undefined) return false
  const fields = ['max', 'periodMs', 'burst', 'version', 'override'] as const
  return fields.every((field) => limit[field] === after[field])
}
