// A process on a SQLite file whose wall clock the test fakes. It does what it is asked by messages
// and sends what it sees.
import { createPawl, defineJob } from 'pawl'

const { store, id, works } = JSON.parse(process.argv[2])

const quick = defineJob({ name: 'quick', run: async () => ({ at: id }) })
const long = defineJob({
  name: 'long',
  run: async ({ input }) => {
    await new Promise((resolve) => setTimeout(resolve, input.ms))
    return { at: id }
  },
})

const say = (message) => process.connected && process.send(message)
const pawl = await createPawl({
  store,
  jobs: [quick, long],
  onEvent: (event) => {
    const { type } = event
    if (type === 'started' || type === 'lost' || type === 'expired') say({ kind: type })
    if (type === 'time') say({ kind: 'time', change: event.change })
  },
})
if (works) pawl.work({ id, lease: '2s', concurrency: 50, poll: '200ms' })

process.on('message', async ({ ask, name, input, count, ids, delay, runAt }) => {
  if (ask === 'enqueue') {
    const options = {
      ...(delay && { delay }),
      ...(runAt && { runAt: new Date(Date.now() + runAt) }),
    }
    const definition = name === 'long' ? long : quick
    const handles = await Promise.all(
      Array.from({ length: count }, () => pawl.enqueue(definition, input ?? {}, options)),
    )
    say({ kind: 'answer', ids: handles.map((handle) => handle.id) })
  }
  if (ask === 'jobs')
    say({ kind: 'answer', jobs: await Promise.all(ids.map((one) => pawl.store.get(one))) })
  if (ask === 'explain') say({ kind: 'answer', explanation: await pawl.explain(ids[0]) })
  if (ask === 'time') {
    say({
      kind: 'answer',
      now: pawl.store.now(),
      wall: Date.now(),
      status: pawl.store.timeStatus(),
    })
  }
})
process.on('disconnect', () => process.exit(0))
say({ kind: 'ready' })
