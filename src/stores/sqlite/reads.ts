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

/** How this store writes cursors of lists and positions in the ledger: by the number of a row. */
const ROW_NUMBER = /^\d{1,15}$/
export const PLACES = { jobs: ROW_NUMBER, effects: ROW_NUMBER, ledger: ROW_NUMBER }
