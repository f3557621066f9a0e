// Hints that something may have become ready: in the process itself, and from others on the file.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { standard } from 'pawl/rules'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const environment = systemEnvironment()
let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-wake-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

const enqueue = (store: Store) => {
  const command = { jobId: environment.ids.next(), type: 'a', queue: 'q' }
  return store.enqueue([{ lifecycle: standard, command, input: '1' }])
}

/** Resolves at the next hint, and listens no longer. */
function nextWake(store: Store): Promise<void> {
  return new Promise((resolve) => {
    const stop = store.onWake(() => {
      stop()
      resolve()
    })
  })
}

describe('a listener is woken', () => {
  it('by a job of its own store, also in memory', async () => {
    for (const path of [':memory:', join(folder, 'own.db')]) {
      await using store = await openSqliteStore({ path, environment })
      const woken = nextWake(store)
      await enqueue(store)
      await woken
    }
  })

  it('by a job that another connection to the file enqueued', async () => {
    const path = join(folder, 'shared.db')
    await using store = await openSqliteStore({ path, environment })
    await using other = await openSqliteStore({ path, environment })
    const woken = nextWake(store)
    await enqueue(other)
    await woken
  })

  it('by a job that another process enqueued, and finds it ready', async () => {
    const path = join(folder, 'far.db')
    await using store = await openSqliteStore({ path, environment })
    const woken = nextWake(store)
    expect(await once(fork('test/stores/enqueue-one.mjs', [path]), 'exit')).toEqual([0, null])
    await woken
    const held = await store.claim({ worker: 'w', limit: 1, leaseMs: 1000, start: true })
    expect(held).toHaveLength(1)
  })
})

describe('a listener is left alone', () => {
  it('by claims and heartbeats, which make nothing ready, and after it has stopped', async () => {
    await using store = await openSqliteStore({ path: ':memory:', environment })
    await enqueue(store)
    let hints = 0
    const stop = store.onWake(() => {
      hints++
    })
    await store.claim({ worker: 'w', limit: 1, leaseMs: 1000, start: true })
    await store.heartbeat([], 1000)
    expect(hints).toBe(0)
    await enqueue(store)
    expect(hints).toBe(1)
    stop()
    await enqueue(store)
    expect(hints).toBe(1)
  })
})
