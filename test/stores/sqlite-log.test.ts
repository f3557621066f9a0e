// The write-ahead log of the file stays bounded.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import { expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const environment = systemEnvironment()

it('the log is used again after a reader that kept it from that has gone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-log-'))
  const path = join(folder, 'a.db')
  const store = await openSqliteStore({ path, environment })
  const { DatabaseSync } = loadDriver()
  const reader = new DatabaseSync(path)
  try {
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM pawl_jobs').get()
    await fill(store, 20_000)
    const pinned = statSync(`${path}-wal`).size
    expect(pinned).toBeGreaterThan(8 * 1024 * 1024)
    reader.exec('COMMIT')
    await fill(store, 20_000)
    // As much again was written, over what was there and not behind it.
    expect(statSync(`${path}-wal`).size).toBeLessThan(pinned * 1.2)
  } finally {
    reader.close()
    await store.close()
    rmSync(folder, { recursive: true })
  }
})

async function fill(store: Store, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1000) {
    const items = Array.from({ length: 1000 }, () => ({
      lifecycle: standard,
      command: { jobId: environment.ids.next(), type: 'a', queue: 'q' },
      input: '1',
    }))
    await store.enqueue(items)
  }
}
