// A worker process whose handler can be held before its commit. It runs from wherever it stands: in
// the repository with the package, in a copy of the package with that copy.
import { createPawl, defineJob } from 'pawl'
import { leased } from 'pawl/rules'

let order
let pawl

/** Commits one row of the user's own, and reports what the commit answered. */
async function charge({ jobId, attempt, commit }) {
  if (order !== undefined) {
    process.send({ kind: 'started', attempt })
    await order.promise
  }
  try {
    await commit((tx) =>
      tx.query(`INSERT INTO bookings (job, attempt) VALUES ('${jobId}', ${attempt})`),
    )
    process.send({ kind: 'accepted', attempt })
  } catch (error) {
    process.send({ kind: 'refused', attempt, code: error.code })
    throw error
  }
}

async function work({ store, hold }) {
  if (hold) order = withResolvers()
  const retry = { delay: '20ms', jitter: 0 }
  const job = defineJob({ name: 'charge', lifecycle: leased, retry, run: charge })
  pawl = await createPawl({ store, jobs: [job] })
  await pawl.work({ lease: '1s', recover: '100ms', poll: '50ms' })
}

function withResolvers() {
  let resolve
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}

process.on('disconnect', () => process.exit(1))
process.on('message', async (message) => {
  if (message.kind === 'work') await work(message)
  else order.resolve()
})
