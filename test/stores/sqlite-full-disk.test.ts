// What the store does on a full disk, a damaged file, and without permission: an error with a code
// of its own, nothing half written, and work again as soon as there is room.
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createPawl, defineJob } from 'pawl'
import { standard } from 'pawl/rules'
import { openSqliteStore, type Store, StoreFull } from 'pawl/sqlite'
import { describe, expect, it, vi } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import { toPawlError } from '../../src/stores/sqlite/busy.ts'
import { checkStore } from '../contract/store/check.ts'
import { freshFolder } from '../processes/folder.ts'
import { execute } from '../processes/inspect.ts'
import { noSmallDisk, smallDisk } from '../support/small-disk.ts'

const environment = systemEnvironment()
const MEGABYTE = 1024 * 1024

function enqueue(store: Store, bytes = 1000) {
  const command = { jobId: environment.ids.next(), type: 'a', queue: 'q' }
  const input = JSON.stringify('x'.repeat(bytes))
  return store.enqueue([{ lifecycle: standard, command, input }])
}

/** Enqueues until the disk is full; returns how many jobs were accepted. */
async function fill(store: Store): Promise<number> {
  for (let accepted = 0; ; accepted++) {
    try {
      await enqueue(store)
    } catch (error) {
      expect(error).toBeInstanceOf(StoreFull)
      return accepted
    }
  }
}

/** Leaves so many bytes on the disk of a folder. */
function leave(folder: string, bytes: number): string {
  const { bavail, bsize } = statfsSync(folder)
  const filler = join(folder, 'filler')
  writeFileSync(filler, Buffer.alloc(bavail * bsize - bytes))
  return filler
}

describe.skipIf(noSmallDisk !== undefined)(`on a full disk (${noSmallDisk ?? 'tmpfs'})`, () => {
  it('what was accepted is kept, and everything works again when there is room', async () => {
    const folder = smallDisk(4)
    const path = join(folder, 'jobs.db')
    const store = await openSqliteStore({ path, environment })
    const filler = leave(folder, MEGABYTE)
    const before = await fill(store)
    await expect(store.promote(1)).rejects.toMatchObject({ code: 'E_STORE_FULL' })
    expect((await store.counts()).lanes.ready).toBe(before)
    truncateSync(filler, statSync(filler).size - MEGABYTE)
    await vi.waitFor(() => enqueue(store), { timeout: 5000, interval: 20 })
    const after = 1 + (await fill(store))
    expect((await store.counts()).lanes.ready).toBe(before + after)
    // The log has not taken the room that was freed: most of it went to jobs.
    expect(statSync(path).size).toBeGreaterThan(MEGABYTE)
    expect(statSync(`${path}-wal`).size).toBeLessThan(MEGABYTE)
    rmSync(filler)
    await vi.waitFor(() => enqueue(store), { timeout: 5000, interval: 20 })
    expect(await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000, start: true })).toHaveLength(
      9,
    )
    await checkStore(store)
    await store.close()
  })

  it('a log that can be written back is, before a write is refused', async () => {
    const folder = smallDisk(4)
    const path = join(folder, 'jobs.db')
    const store = await openSqliteStore({ path, environment })
    execute(path, 'PRAGMA wal_checkpoint(TRUNCATE)')
    // The same page again and again: the log grows, the file does not.
    const report = (i: number) => store.reportWorker({ id: 'w', state: 'Idle', info: `${i}` })
    for (let i = 0; i < 100; i++) await report(i)
    const grown = statSync(`${path}-wal`).size
    leave(folder, 100_000)
    for (let i = 0; i < 100; i++) await report(i)
    expect(statSync(`${path}-wal`).size).toBeLessThan(grown)
    await checkStore(store)
    await store.close()
  })

  it('a worker that is stopped ends within seconds, and its job is run again later', async () => {
    const folder = smallDisk(4)
    const path = join(folder, 'jobs.db')
    const started = signal()
    const job = defineJob({
      name: 'slow',
      run: async ({ signal: { aborted } }) => {
        started.resolve()
        await full.promise
        return aborted
      },
    })
    const full = signal()
    const pawl = await createPawl({ store: `sqlite:${path}`, jobs: [job] })
    const codes: unknown[] = []
    const worker = await pawl.work({
      onEvent: (event) => {
        if (event.type === 'error') codes.push((event.error as { code?: string }).code)
      },
    })
    await pawl.enqueue(job, null)
    await started.promise
    leave(folder, 0)
    await fill(pawl.store)
    full.resolve()
    await vi.waitFor(() => expect(codes).toContain('E_STORE_FULL'), { timeout: 10_000 })
    const before = performance.now()
    await worker.stop()
    expect(performance.now() - before).toBeLessThan(5000)
    await pawl.close()
  })

  it('a file on a disk that is read-only is refused with a code of its own', async () => {
    const folder = smallDisk(4)
    const path = join(folder, 'jobs.db')
    cpSync(await closedFile(1), path)
    execFileSync('mount', ['-o', 'remount,ro', folder])
    const opening = openSqliteStore({ path, environment })
    await expect(opening).rejects.toMatchObject({ code: 'E_STORE_DENIED' })
    const missing = openSqliteStore({ path: join(folder, 'new.db'), environment })
    await expect(missing).rejects.toMatchObject({ code: 'E_STORE_DENIED' })
  })
})

/** A promise that a test resolves. */
function signal(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

/** A file with so many jobs, and no log. */
async function closedFile(jobs: number): Promise<string> {
  const path = join(freshFolder(), 'jobs.db')
  const store = await openSqliteStore({ path, environment })
  for (let i = 0; i < jobs; i++) await enqueue(store)
  execute(path, 'PRAGMA wal_checkpoint(TRUNCATE)')
  await store.close()
  return path
}

it('a damaged file is told from others by a code of its own', async () => {
  const path = join(freshFolder(), 'damaged.db')
  writeFileSync(path, readFileSync(await closedFile(50)).fill(0xff, 8192))
  const reading = openSqliteStore({ path, environment }).then((opened) => opened.counts())
  await expect(reading).rejects.toMatchObject({
    code: 'E_STORE_MALFORMED',
    hint: expect.stringContaining('backup'),
  })
})

it.each([
  [13, 'E_STORE_FULL'],
  [4874, 'E_STORE_FULL'],
  [11, 'E_STORE_MALFORMED'],
  [267, 'E_STORE_MALFORMED'],
  [8, 'E_STORE_DENIED'],
  [1032, 'E_STORE_DENIED'],
  [3, 'E_STORE_DENIED'],
  [10, 'E_STORE_IO'],
  [1034, 'E_STORE_IO'],
  [19, 'E_STORE_FAILED'],
])('the result code %i of SQLite becomes %s', (errcode, code) => {
  const cause = Object.assign(new Error('said SQLite'), { errcode })
  expect(toPawlError(cause)).toMatchObject({ code, cause, details: { why: 'said SQLite' } })
})
