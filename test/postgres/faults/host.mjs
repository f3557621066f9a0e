// A worker on a host of its own: does with its store what it is asked by messages.
import { openPostgresStore } from 'pawl/postgres'

let store

const verbs = {
  async open(options) {
    store = await openPostgresStore(options)
  },
  /** With a row of the user's own. */
  commit(held) {
    return store.commit(held, async (tx) => {
      await tx.query('INSERT INTO user_rows VALUES ($1)', [held.job.id])
      return '"user"'
    })
  },
  claim: (request) => store.claim(request),
  recover: (limit) => store.recover(limit),
  promote: (limit) => store.promote(limit),
  heartbeat: (beats, leaseMs) => store.heartbeat(beats, leaseMs),
  settle: (settlements) => store.settle(settlements),
  close: () => store.close(),
}

process.on('message', async ({ id, verb, args }) => {
  try {
    process.send({ id, result: (await verbs[verb](...args)) ?? null })
  } catch (error) {
    process.send({ id, error: `${error.code ?? error.name}: ${error.message}` })
  }
})
