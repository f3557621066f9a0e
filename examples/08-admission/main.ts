/**
 * Rate limits, debounced jobs and singletons, under a time that the program owns.
 *
 *   npm run build && node .build/programs/examples/08-admission/main.js [--json]
 */
import { defineJob, RateLimited, typed } from 'pawl'
import { createTestPawl } from 'pawl/testing'

const indexed: string[] = []
const deployed: string[] = []

const summary = defineJob({
  name: 'summary',
  input: typed<{ user: string }>(),
  rateLimit: { limit: 2, period: '1h', key: (i) => i.user },
  run: ({ input }) => input.user,
})
const index = defineJob({
  name: 'index',
  input: typed<{ page: string; text: string }>(),
  debounce: { period: '5s', key: (i) => i.page },
  run: ({ input }) => indexed.push(input.text),
})
const deploy = defineJob({
  name: 'deploy',
  input: typed<{ repo: string; commit: string }>(),
  singleton: { mode: 'latest', key: (i) => i.repo },
  run: ({ input }) => deployed.push(input.commit),
})

const t = await createTestPawl({ jobs: [summary, index, deploy] })

let retryAfterMs = 0
for (const user of ['ann', 'ann', 'ben', 'ann']) {
  try {
    await t.pawl.enqueue(summary, { user })
  } catch (error) {
    if (!(error instanceof RateLimited)) throw error
    retryAfterMs = error.retryAfterMs
  }
}

for (const text of ['a', 'ab', 'abc']) {
  await t.pawl.enqueue(index, { page: '/', text })
  await t.advance('3s')
}
await t.advance('5s')

const jobs = []
for (const commit of ['c1', 'c2', 'c3']) {
  jobs.push(await t.pawl.enqueue(deploy, { repo: 'pawl', commit }))
}
await t.drain()

const result = {
  refusedForMs: retryAfterMs,
  indexed,
  deployed,
  created: jobs.map((j) => j.created),
}
await t.close()
if (process.argv.includes('--json')) console.log(JSON.stringify(result))
else console.log('What was refused, replaced and run:', result)
