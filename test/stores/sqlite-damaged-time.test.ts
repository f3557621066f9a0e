// A damaged row of the time base does not move the time of the file. Any single field of any row:
// a process that opens the file afterwards agrees with wall time and with those that work already.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { standard } from '../../src/core/lifecycles/standard.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { TimeChange } from '../../src/stores/store-time.ts'

const environment = systemEnvironment()

async function openFile() {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-time-'))
  const path = join(folder, 'jobs.db')
  const changes: TimeChange[] = []
  const opened: Store[] = []
  const open = async () => {
    const store = await openSqliteStore({ path, onTimeChange: (change) => changes.push(change) })
    opened.push(store)
    return store
  }
  await open()
  const { DatabaseSync } = loadDriver()
  const raw = new DatabaseSync(path, { timeout: 5000 })
  raw.exec('PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF')
  onTestFinished(async () => {
    raw.close()
    for (const store of opened) await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { raw, open, changes, first: opened[0] as Store }
}

function enqueue(store: Store) {
  const command = { jobId: environment.ids.next(), type: 'mail', queue: 'main' }
  return store.enqueue([{ lifecycle: standard, command, input: '{}' }])
}

const VALUES = [
  ...[-1, 0, 1, 2 ** 31, -(2 ** 31), 4_000_000_000_000, 9_007_199_254_740_000],
  ...['9223372036854775807', '-9223372036854775808', `'oops'`, `''`, 'NULL'],
]
const COLUMNS = 'number at boot offset_ms elapsed_ms suspended_ms behind_ms reason moved_ms'

it.each(COLUMNS.split(' '))(
  'a damaged %s of the newest base does not move the time of the file',
  async (column) => {
    for (const value of VALUES) {
      const { raw, open, first } = await openFile()
      await enqueue(first)
      try {
        raw.exec(`UPDATE pawl_time SET ${column} = ${value}`)
      } catch {
        continue // The type of the column refuses it.
      }
      const store = await open()
      await enqueue(store)
      await enqueue(first)
      for (const one of [first, store]) {
        expect(Math.abs(one.now() - Date.now()), `${column} = ${value}`).toBeLessThan(5000)
      }
    }
  },
)

it('a base in the far future is replaced by the one before it, with a warning', async () => {
  const { raw, open, changes } = await openFile()
  raw.exec(`INSERT INTO pawl_time SELECT number + 1, at, boot, offset_ms + 1000000000000,
    elapsed_ms, suspended_ms, behind_ms, 'forward', moved_ms FROM pawl_time`)
  const store = await open()
  expect(changes).toMatchObject([{ reason: 'repaired' }])
  expect(Math.abs(store.now() - Date.now())).toBeLessThan(5000)
  const doctor = new Doctor({ store, lifecycles: [standard], environment })
  const { findings } = await doctor.check({ full: true })
  expect(findings).toMatchObject([{ check: 'times-agree', severity: 'notice' }])
  expect(findings[0]?.what).toMatch(/^its newest base was damaged and was replaced at/)
})

it('a fact with a time in the far future does not move the time after a restart', async () => {
  const { raw, open, first } = await openFile()
  await enqueue(first)
  await enqueue(first)
  raw.exec('DROP TRIGGER pawl_ledger_is_never_updated')
  raw.exec('UPDATE pawl_ledger SET at = 9000000000000000 WHERE pos = 2')
  raw.exec(`UPDATE pawl_time SET boot = 'another'`)
  const store = await open()
  expect(Math.abs(store.now() - Date.now())).toBeLessThan(5000)
})
