/** What the read side of this store is made of. */
import { audit } from './audit.ts'
import { listEffects } from './effects.ts'
import { listMachines } from './machines.ts'
import * as query from './query.ts'
import { listQueueRecords } from './queue-records.ts'
import { listWorkers } from './workers.ts'

/** The queries behind the verbs that read. */
export const QUERIES = {
  ...query,
  audit,
  listEffects,
  listMachines,
  listQueueRecords,
  listWorkers,
}

/** How this store writes cursors of lists and positions in the ledger. */
export const PLACES = {
  jobs: /^[0-9a-f-]{36}$/,
  effects: /^\d{1,15}$/,
  ledger: /^\d{1,15}\.[0-9a-f-]{36}\.\d{1,9}$/,
}
