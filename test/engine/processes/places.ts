// The two stores on which processes meet, each with a table of the user's own beside Pawl's.
import { join } from 'node:path'
import { createPawl, type Pawl } from 'pawl'
import { onTestFinished } from 'vitest'
import { freshFolder } from '../../processes/folder.ts'
import { openRaw, rowsOf } from '../../processes/inspect.ts'
import { connected } from '../../support/postgres/clients.ts'
import { freshStoreDatabase } from '../../support/postgres/databases.ts'

const BOOKINGS = 'CREATE TABLE bookings (job TEXT NOT NULL, attempt INTEGER NOT NULL)'
const ALL_BOOKED = 'SELECT job, attempt FROM bookings ORDER BY job'
const BUSY_SESSIONS = `SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND backend_type = 'client backend'
  AND pid <> pg_backend_pid() AND state <> 'idle'`

/** A row of the user's own. */
interface Booking {
  readonly job: string
  readonly attempt: number
}

/** A store of the test's own, as the test sees it from its own process. */
export interface Place {
  /** What worker processes open. */
  readonly store: string
  /** The test's own Pawl; it only enqueues and looks. */
  readonly pawl: Pawl
  /** Every row of the user's own. */
  bookings(): Promise<Booking[]>
  /** Whether nobody is in the middle of a transaction. */
  isQuiet(): Promise<boolean>
}

/** A SQLite file. */
export async function sqlitePlace(): Promise<Place & { readonly path: string }> {
  const path = join(freshFolder(), 'jobs.db')
  const store = `sqlite:${path}`
  const pawl = await openPawl(store)
  rowsOf(path, BOOKINGS)
  return {
    store,
    path,
    pawl,
    bookings: async () => rowsOf<Booking>(path, ALL_BOOKED),
    isQuiet: async () => canWrite(path),
  }
}

/** A database on the server that all tests share. */
async function postgresPlace(): Promise<Place> {
  return postgresPlaceAt(await freshStoreDatabase())
}

/** A database that is there already. */
export async function postgresPlaceAt(store: string): Promise<Place> {
  const pawl = await openPawl(store)
  const client = await connected(store)
  await client.query(BOOKINGS)
  return {
    store,
    pawl,
    // On a connection of its own: the server may have been away.
    bookings: async () => (await (await connected(store)).query<Booking>(ALL_BOOKED)).rows,
    isQuiet: async () => (await client.query(BUSY_SESSIONS)).rows.length === 0,
  }
}

/** Both kinds, for tests of what holds on each. */
export const PLACES = [
  { name: 'a SQLite file', place: sqlitePlace },
  { name: 'PostgreSQL', place: postgresPlace },
] as const

async function openPawl(store: string): Promise<Pawl> {
  const pawl = await createPawl({ store })
  onTestFinished(() => pawl.close())
  return pawl
}

function canWrite(path: string): boolean {
  const database = openRaw(path)
  try {
    database.exec('PRAGMA busy_timeout = 100; BEGIN IMMEDIATE; ROLLBACK')
    return true
  } catch {
    return false
  } finally {
    database.close()
  }
}
