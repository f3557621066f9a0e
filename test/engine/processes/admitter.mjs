// One of several processes that enqueue jobs of types with a rate limit, debounce or a singleton,
// as fast as they can, until it is killed or has done its rounds. It tells what it was answered.
import { createPawl, defineJob, RateLimited } from 'pawl'

const { store, name, rounds, keys, works } = JSON.parse(process.argv[2])
const key = ({ key }) => key
const run = () => {}
const common = { crashesMax: 100, run }
const jobs = {
  limited: defineJob({ ...common, name: 'limited', rateLimit: { limit: 5, period: '1h', key } }),
  single: defineJob({ ...common, name: 'single', singleton: { mode: 'skip', key } }),
  newest: defineJob({ ...common, name: 'newest', singleton: { mode: 'latest', key } }),
  debounced: defineJob({
    ...{ ...common, name: 'debounced' },
    debounce: { period: '300ms', timeout: '2s', key },
  }),
}
const pawl = await createPawl({ store, jobs: Object.values(jobs) })

const say = (message) => new Promise((resolve) => process.send(message, resolve))

async function enqueue(type, input) {
  try {
    const { id, created } = await pawl.enqueue(jobs[type], input)
    return { type, ...input, id, created }
  } catch (error) {
    if (!(error instanceof RateLimited)) throw error
    return { type, ...input, retryAfterMs: error.retryAfterMs }
  }
}

await say({ kind: 'ready' })
await new Promise((resolve) => process.once('message', resolve))
if (works) await pawl.work({ lease: '1s', recover: '50ms', poll: '50ms', checkup: false })
for (let round = 0; works || round < rounds; round++) {
  const asked = Object.keys(jobs).map((type) =>
    enqueue(type, { key: `key ${round % keys}`, from: name, round }),
  )
  await say({ kind: 'answers', answers: await Promise.all(asked) })
}
await pawl.close()
process.disconnect()
