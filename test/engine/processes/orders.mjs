// A worker process that kills itself at one point of a job with steps, a commit and an effect. What
// it does to the world outside is a line in a file, written at once.
import { appendFileSync } from 'node:fs'
import { createPawl, defineJob } from 'pawl'
import { systemEnvironment } from 'pawl/sqlite'

const { store, world, dieAt } = JSON.parse(process.argv[2])
const placeholders = store.startsWith('postgres') ? '$1, $2' : '?, ?'

const note = (line) => appendFileSync(world, `${line}\n`)

/** The end, where it is wanted. */
function point(name) {
  if (name !== dieAt) return
  process.kill(process.pid, 'SIGKILL')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

const order = defineJob({
  name: 'order',
  effects: {
    mail: {
      timeout: '500ms',
      deliver({ key, tries }) {
        point('before the delivery')
        note(`mail ${key} ${tries}`)
        point('after the delivery')
      },
    },
  },
  async run({ jobId, attempt, step, commit }) {
    point('before the steps')
    for (const name of ['first', 'second', 'third']) {
      await step(name, () => {
        point(`in the ${name} step`)
        note(`${name} ${attempt}`)
      })
      point(`after the ${name} step`)
    }
    await commit(async (tx) => {
      point('before the row')
      const values = [jobId, attempt]
      await tx.query(`INSERT INTO bookings (job, attempt) VALUES (${placeholders})`, values)
      point('after the row')
      tx.effect('mail')
      point('after the effect')
      return attempt
    })
    point('after the commit')
  },
})

const environment = { ...systemEnvironment(), crashPoint: point }
const pawl = await createPawl({ store, jobs: [order], environment })
process.on('disconnect', () => process.exit(1))
// A process that dies as soon as its commit is durable must not have begun to deliver: the
// dispatcher could claim the effect between the two.
const effects = !['commit.committed', 'after the commit'].includes(dieAt)
await pawl.work({ lease: '1s', recover: '100ms', poll: '200ms', effects })
process.send('working')
