/** The queries and cursors of this store, for `../read-side.ts`. */
import { audit } from './audit.ts'
import * as query from './query.ts'

export const QUERIES = { ...query, audit }

export const CURSORS = {
  jobs: /^[0-9a-f-]{36}$/,
  effects: /^\d{1,15}$/,
  ledger: /^\d{1,15}\.[0-9a-f-]{36}\.\d{1,9}$/,
}
