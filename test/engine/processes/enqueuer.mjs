// A worker whose handler enqueues jobs, and whose process kills itself at a place of its first
// attempts: after an enqueue, inside of its commit, or never.
import { createPawl, defineJob } from 'pawl'

const { store, dies } = JSON.parse(process.argv[2])
const die = (place) => {
  if (dies === place) process.kill(process.pid, 'SIGKILL')
}

const child = defineJob({ name: 'child', run: async () => null })
const parent = defineJob({
  name: 'parent',
  crashesMax: 5,
  run: async ({ enqueue, commit }) => {
    await enqueue(child, 'outside')
    die('outside')
    await commit(async (tx) => {
      await tx.enqueue(child, 'inside')
      die('inside')
    })
  },
})

const pawl = await createPawl({ store, jobs: [parent, child] })
await pawl.work({ lease: '1s', recover: '100ms' })
const isDone = async () => (await pawl.jobs.count({ type: 'parent', outcome: 'succeeded' })) > 0
while (!(await isDone()) || (await pawl.jobs.count({ lane: 'ready' })) > 0) {
  await new Promise((resolve) => setTimeout(resolve, 20))
}
await pawl.close()
