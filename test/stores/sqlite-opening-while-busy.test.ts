// A store can be opened while another connection holds the write lock of its file.
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import { openSqliteStore } from 'pawl/sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { freshFolder } from '../processes/folder.ts'

const environment = systemEnvironment()

function item() {
  const command = { jobId: environment.ids.next(), type: 'a', queue: 'q' }
  return { lifecycle: standard, command, input: '1' }
}

it('a file that is up to date is opened and read while its write lock is held', async () => {
  const path = join(freshFolder(), 'jobs.db')
  const first = await openSqliteStore({ path, environment })
  await first.enqueue([item()])
  const holder = new (loadDriver().DatabaseSync)(path, { timeout: 0 })
  holder.exec('BEGIN IMMEDIATE')
  const store = await openSqliteStore({ path, environment, busyTimeoutMs: 50 })
  onTestFinished(() => store.close())
  expect((await store.counts()).lanes.ready).toBe(1)
  await expect(store.enqueue([item()])).rejects.toMatchObject({ code: 'E_STORE_BUSY' })
  holder.exec('COMMIT')
  holder.close()
  await store.enqueue([item()])
  expect((await store.counts()).lanes.ready).toBe(2)
  await first.close()
})

it('a file that must be changed first is waited for, and then opened', async () => {
  const path = join(freshFolder(), 'jobs.db')
  const holder = new (loadDriver().DatabaseSync)(path, { timeout: 0 })
  holder.exec('PRAGMA journal_mode = WAL; CREATE TABLE theirs (n INTEGER); BEGIN IMMEDIATE')
  const busy = openSqliteStore({ path, environment, busyTimeoutMs: 50 })
  await expect(busy).rejects.toMatchObject({ code: 'E_STORE_BUSY' })
  const opening = openSqliteStore({ path, environment })
  holder.exec('COMMIT')
  holder.close()
  const store = await opening
  await store.enqueue([item()])
  await store.close()
})
