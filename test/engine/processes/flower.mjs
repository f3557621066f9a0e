// A process that makes a flow with a key and works until it has ended, and that kills itself when
// it reaches a point of the store, the n-th time.
import { createPawl, defineJob, unwrap } from 'pawl'
import { systemEnvironment } from 'pawl/sqlite'

const { store, dieAt, times } = JSON.parse(process.argv[2])
let left = times
const crashPoint = (point) => {
  if (point === dieAt && --left === 0) process.kill(process.pid, 'SIGKILL')
}
const placeholders = store.startsWith('postgres') ? '$1, $2' : '?, ?'
const book = ({ jobId, attempt, commit }, output) =>
  commit(async (tx) => {
    await tx.query(`INSERT INTO bookings (job, attempt) VALUES (${placeholders})`, [jobId, attempt])
    return output
  })

const leaf = defineJob({
  name: 'leaf',
  crashesMax: 9,
  run: (context) => book(context, context.input),
})
const parent = defineJob({
  name: 'parent',
  crashesMax: 9,
  run: async (context) => {
    const all = await context.invokeMany('leaves', leaf, [1, 2, 3], { concurrency: 2 })
    return book(
      context,
      all.map(unwrap).reduce((sum, n) => sum + n, 0),
    )
  },
})
const last = defineJob({
  name: 'last',
  crashesMax: 9,
  after: { leaf, parent },
  run: (context) => book(context, context.after.leaf + context.after.parent),
})

const environment = { ...systemEnvironment(), crashPoint }
const pawl = await createPawl({ store, jobs: [leaf, parent, last], environment })
const flow = await pawl.flow(
  (f) => {
    const own = { leaf: f.add(leaf, 4), parent: f.add(parent, null) }
    return f.add(last, null, { after: own })
  },
  { key: 'once' },
)
await pawl.work({ lease: '1s', recover: '100ms', poll: '50ms' })
const outcome = await flow.result()
await pawl.close()
process.stdout.write(`${JSON.stringify({ kind: outcome.kind, output: outcome.output })}\n`)
