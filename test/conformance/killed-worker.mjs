// A worker of a user's, to be killed: arguments are the store and its lease in milliseconds. Its
// job blocks the process for three leases, says so, and then goes on for ever.
import { createPawl, defineJob } from 'pawl'
import { leased } from 'pawl/rules'

const [store, leaseMs] = process.argv.slice(2)
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** Says a thing, and lets it get out before the process is blocked. */
const say = (word) => new Promise((resolve) => process.stdout.write(`${word}\n`, resolve))

const job = defineJob({
  name: 'long',
  lifecycle: leased,
  run: async () => {
    await say('started')
    block(3 * leaseMs)
    await say('outlived its lease')
    block(600_000)
  },
})
const pawl = await createPawl({ store, jobs: [job] })
await pawl.work({ id: 'killed', lease: Number(leaseMs) })
