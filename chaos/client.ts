/**
 * A client process: it enqueues all the time, and notes outside the store what it asked for, and
 * then what it was told. A note is in the file when `note` returns, so it outlives a kill. While
 * too many jobs are open it waits, or workers would not keep up.
 */
import { writeFileSync } from 'node:fs'
import type { PawlError } from 'pawl'
import { systemEnvironment } from 'pawl/sqlite'
import { SeededRandom } from 'pawl/testing'
import { assertOutage, openPatiently, say, settings } from './child.ts'
import { jobsOf, kindAt } from './jobs.ts'
import { type Note, sleep } from './settings.ts'

const OPEN_MAX = 300
const BATCH_MAX = 8
const PAUSE_MAX_MS = 150
const KEYS = 3000

const random = new SeededRandom(settings.seed)
const { ids } = systemEnvironment()
const below = (n: number) => Math.floor(random.next() * n)
const jobs = jobsOf(settings.store, settings.receiver)
const pawl = await openPatiently({ jobs })
say({ kind: 'ready' })

let left = settings.count ?? Number.POSITIVE_INFINITY
while (left > 0) {
  const size = Math.min(left, 1 + below(BATCH_MAX))
  await Promise.all(Array.from({ length: size }, enqueueOne))
  left -= size
  await sleep(below(PAUSE_MAX_MS))
  if (settings.count === undefined) await waitForRoom()
}
await pawl.close()
process.disconnect()

async function enqueueOne(): Promise<void> {
  const jobId = ids.next()
  const kind = kindAt(random.next())
  const definition = jobs.find(({ name }) => name === kind)
  if (definition === undefined) throw new Error(`no job is named ${kind}`)
  const input = { ms: below(80), failures: below(3) }
  const options = {
    jobId,
    priority: below(3) - 1,
    // Many clients, dead ones included, have asked with the same key before.
    ...(kind === 'plain' && { key: `key-${below(KEYS)}` }),
    ...(below(5) === 0 && { delay: below(2000) }),
  }
  note({ kind: 'asked', id: jobId })
  try {
    const { id } = await pawl.enqueue(definition, input, options)
    note({ kind: 'acknowledged', id, ...('key' in options && { key: options.key }) })
  } catch (error) {
    assertOutage('enqueue', error)
    note({ kind: 'refused', id: jobId, code: (error as PawlError).code })
  }
}

async function waitForRoom(): Promise<void> {
  for (;;) {
    try {
      const { ready, waiting, held } = (await pawl.store.counts()).lanes
      if (ready + waiting + held < OPEN_MAX) return
    } catch (error) {
      assertOutage('counts', error)
    }
    await sleep(100)
  }
}

function note(what: Note): void {
  writeFileSync(settings.notes, `${JSON.stringify(what)}\n`, { flag: 'a' })
}
