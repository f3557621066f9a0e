// A process that opens, locks and fills stores when it is asked to by a message. It answers each
// question with what came of it, errors included.
import { createRequire } from 'node:module'
import { standard } from 'pawl/rules'
import { openSqliteStore } from 'pawl/sqlite'

let lock

const item = (jobId, key) => ({
  lifecycle: standard,
  command: { jobId, type: 'order', queue: 'main', ...(key !== undefined && { key }) },
  input: '{}',
})

const deeds = {
  'ready?': async () => ({}),

  /** Opens and closes. */
  open: async ({ path, busyTimeoutMs }) => {
    const store = await openSqliteStore({ path, ...(busyTimeoutMs && { busyTimeoutMs }) })
    await store.close()
    return {}
  },

  /** Opens, enqueues one job and closes, once for each id. */
  churn: async ({ path, ids }) => {
    for (const id of ids) {
      const store = await openSqliteStore({ path })
      await store.enqueue([item(id)])
      await store.counts()
      await store.close()
    }
    return {}
  },

  /** Enqueues a job for each id at once, all of them with one key. */
  enqueueKey: async ({ path, ids, key }) => {
    const store = await openSqliteStore({ path })
    const answers = await Promise.all(ids.map((id) => store.enqueue([item(id, key)])))
    await store.close()
    return { answers: answers.map(([{ kind, job }]) => ({ kind, id: job?.id })) }
  },

  /** Takes the write lock with a handle of its own, and keeps it. */
  lock: async ({ path }) => {
    const { DatabaseSync } =
      process.getBuiltinModule('node:sqlite') ??
      createRequire(import.meta.url)('@photostructure/sqlite')
    lock = new DatabaseSync(path)
    lock.exec('BEGIN EXCLUSIVE')
    return {}
  },

  unlock: async () => {
    lock.exec('ROLLBACK')
    lock.close()
    return {}
  },

  /** Goes on as a user who may write nowhere. */
  dropRights: async () => {
    // The driver is loaded while its file can still be read: the checkout may be for root alone.
    await (await openSqliteStore({ path: ':memory:' })).close()
    if (process.getuid?.() === 0) process.setuid(65534)
    return {}
  },
}

process.on('message', async (question) => {
  try {
    process.send(await deeds[question.kind](question))
  } catch ({ name, code, message }) {
    process.send({ error: { name, code, message } })
  }
})
