/** A release with version 2 of a lifecycle takes over the jobs of a release with version 1. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPawl, defineJob, typed } from 'pawl'
import { MachineChanged } from 'pawl/rules'
import { parcel1, parcel2 } from './parcels.ts'

const folder = mkdtempSync(join(tmpdir(), 'pawl-versions-'))
const store = `sqlite:${join(folder, 'jobs.db')}`
const carry = { name: 'carry', input: typed<{ to: string }>() }

// Release 1 accepts three parcels, and is stopped.
const first = defineJob({ ...carry, lifecycle: parcel1, run: ({ input }) => input.to })
const one = await createPawl({ store, jobs: [first] })
const towns = ['Ulm', 'Bern', 'Linz']
const handles = await one.enqueueMany(
  first,
  towns.map((to) => ({ input: { to } })),
)
await one.close()

// Release 2 migrates one by one what it claims. An operator could migrate all of them at once.
const second = defineJob({ ...carry, lifecycle: parcel2, run: ({ input }) => input.to })
const two = await createPawl({ store, jobs: [second] })
const operator = two.operator({ name: 'ann', reason: 'release 2' })
const foreseen = await operator.migrate({ lifecycle: 'parcel', to: 2 }, { dryRun: true })
await two.work({ concurrency: 1 })
const states: string[] = []
for (const { id } of handles) {
  const { job } = await two.job(id).result({ timeout: '30s' })
  states.push(`v${job.lifecycleVersion} ${job.state}`)
}
const { ok } = await two.doctor().check({ full: true })
await two.close()

// A changed definition under a number that the store knows is refused.
const changed = { ...parcel2, policy: { ...parcel2.policy, crashesMax: 9 } }
const third = defineJob({ ...carry, lifecycle: changed, run: ({ input }) => input.to })
const refused = await createPawl({ store, jobs: [third] }).catch((error: unknown) => error)
rmSync(folder, { recursive: true, force: true })

const code = refused instanceof MachineChanged ? refused.code : 'none'
const result = { foreseen: foreseen.done, states, healthy: ok, refused: code }
if (process.argv.includes('--json')) console.log(JSON.stringify(result))
else console.log(result)
