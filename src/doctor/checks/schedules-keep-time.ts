import type { Schedule, ScheduleRecord } from '../../stores/contract/schedules.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

const PAGE = 1000
/** A change between two reads looks like a fault, so a schedule with faults is read again. */
const LOOKS = 3

type Found = Omit<Finding, 'check'>

/** Compares each schedule with its records. */
export const schedulesKeepTime: StoreCheck = {
  name: 'schedules-keep-time',
  promise: 'P17',
  says: 'Every schedule is what its records say, and its next time is its next tick.',
  look: async ({ store, ticksOf }) => {
    if (ticksOf === undefined) return []
    const found: Found[] = []
    for (const name of await namesOf(store)) {
      const faults = await faultsOf(() => store.schedules.faults(name, ticksOf))
      for (const what of faults) {
        found.push({
          ...{ promise: 'P17', severity: 'error', subject: `schedule ${name}`, what },
          evidence: { schedule: name },
          remedy: 'restore the schedule',
        })
      }
    }
    return found
  },
}

async function faultsOf(look: () => Promise<readonly string[]>): Promise<readonly string[]> {
  let faults: readonly string[] = []
  for (let i = 0; i < LOOKS; i++) {
    faults = await look()
    if (faults.length === 0) return faults
  }
  return faults
}

/** Schedules that have a row, or should have one. */
async function namesOf(store: Store): Promise<string[]> {
  const names = new Set<string>()
  for await (const { name } of schedulesOf(store)) names.add(name)
  const seen = new Set<string>()
  for await (const { schedule, action } of recordsOf(store, { kind: 'change' })) {
    if (action !== 'put' && action !== 'remove') continue
    if (!seen.has(schedule) && action === 'put') names.add(schedule)
    seen.add(schedule)
  }
  return [...names]
}

/** Every schedule, page by page. */
export async function* schedulesOf(store: Store, max = Number.POSITIVE_INFINITY) {
  let after: string | undefined
  for (let read = 0; read < max; ) {
    const page = await store.schedules.list({ limit: PAGE, ...(after && { after }) })
    read += page.items.length
    yield* page.items as Schedule[]
    after = page.next
    if (after === undefined) return
  }
}

/** Records, newest first, page by page. */
async function* recordsOf(store: Store, filter: { readonly kind: 'change' }) {
  let after: string | undefined
  do {
    const page = await store.schedules.records(filter, { limit: PAGE, ...(after && { after }) })
    yield* page.items as ScheduleRecord[]
    after = page.next
  } while (after !== undefined)
}
