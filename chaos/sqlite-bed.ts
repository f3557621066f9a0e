/** A SQLite file, and somebody else who keeps it busy. */
import { join } from 'node:path'
import { openSqliteStore } from 'pawl/sqlite'
import type { UserRow } from '../sim/checker.ts'
import type { Bed } from './bed.ts'
import { LEASE_MS, sleep, TABLE } from './settings.ts'
import { openHandle, rowsOf } from './sqlite-file.ts'

/** Makes the file, with a table of the user's own in it. */
export async function sqliteBed(folder: string): Promise<Bed> {
  const path = join(folder, 'jobs.db')
  await (await openSqliteStore({ path })).close()
  const users = openHandle(path)
  users.exec(`CREATE TABLE ${TABLE} (job TEXT NOT NULL, attempt INTEGER NOT NULL) STRICT`)
  users.close()
  return {
    name: `sqlite:${path}`,
    open: () => openSqliteStore({ path }),
    faults: (company, chance) => ({
      // Up to twice a lease, so that no heartbeat gets through and leases end.
      async busy() {
        const blocker = company.hire('blocker')
        await blocker.ready()
        await sleep(chance() * 2 * LEASE_MS)
        await blocker.kill()
      },
    }),
    heal: async () => {},
    rows: async () => rowsOf<UserRow>(path, `SELECT job, attempt FROM ${TABLE}`),
    damage: async () =>
      rowsOf<{ integrity_check: string }>(path, 'PRAGMA integrity_check')
        .map(({ integrity_check }) => integrity_check)
        .filter((text) => text !== 'ok'),
    close: async () => {},
  }
}
