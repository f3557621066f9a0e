/** The queries and cursors of this store, for `../read-side.ts`. */
import { audit } from './audit.ts'
import * as query from './query.ts'

export const QUERIES = { ...query, audit }

/** Cursors and positions are row numbers. */
const ROW_NUMBER = /^\d{1,15}$/
export const CURSORS = { jobs: ROW_NUMBER, effects: ROW_NUMBER, ledger: ROW_NUMBER }
