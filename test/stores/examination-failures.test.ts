// A look for the doctor that fails half-way leaves the store as fit for reading as it was.
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import { testEnvironment } from 'pawl/testing'
import { expect, it } from 'vitest'
import { type Database, loadDriver, type SqliteDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { freshFolder } from '../processes/folder.ts'

/** The real driver, whose statements on the ledger and whose commits fail while they are to. */
function failingDriver(): { driver: SqliteDriver; failing: { isOn: boolean } } {
  const failing = { isOn: false }
  const { DatabaseSync } = loadDriver()
  const fail = () => {
    throw new Error('disk I/O error')
  }
  class Failing extends DatabaseSync {
    override exec(sql: string) {
      if (failing.isOn && sql === 'COMMIT') fail()
      super.exec(sql)
    }
    override prepare(sql: string): ReturnType<Database['prepare']> {
      const statement = super.prepare(sql)
      if (!sql.includes('FROM pawl_ledger')) return statement
      return {
        run: (...values) => statement.run(...values),
        get: (...values) => statement.get(...values),
        all: (...values) => (failing.isOn ? fail() : statement.all(...values)),
      }
    }
  }
  return { driver: { DatabaseSync: Failing }, failing }
}

it('a look that fails half-way does not keep later reads in the past', async () => {
  const path = join(freshFolder(), 'jobs.db')
  const environment = testEnvironment()
  const { driver, failing } = failingDriver()
  await using store = await openSqliteStore({ path, environment, driver })
  await using other = await openSqliteStore({ path, environment })
  const enqueue = async () => {
    const jobId = environment.ids.next()
    const command = { jobId, type: 'mail', queue: 'a' }
    await other.enqueue([{ lifecycle: standard, command, input: '1' }])
    return jobId
  }
  await enqueue()
  failing.isOn = true
  await expect(store.examination.storedJobs(undefined, 10)).rejects.toThrow('disk I/O error')
  failing.isOn = false
  const id = await enqueue()
  expect(await store.get(id)).toMatchObject({ id })
  expect(await store.examination.storedJobs(undefined, 10)).toHaveLength(2)
})
