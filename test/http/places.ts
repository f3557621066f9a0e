// Stores of either kind, by name.
import { join } from 'node:path'
import { freshFolder } from '../processes/folder.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

/** Both kinds. */
export const STORES = [
  { name: 'SQLite', place: async () => `sqlite:${join(freshFolder(), 'jobs.db')}` },
  { name: 'PostgreSQL', place: () => freshStoreDatabase() },
] as const
