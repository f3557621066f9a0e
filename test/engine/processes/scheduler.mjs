// A worker that makes the jobs of schedules and runs them, until it is killed.
import { createPawl, defineJob } from 'pawl'

const { store, hasCode } = JSON.parse(process.argv[2])
const tick = defineJob({ name: 'tick', run: () => {} })
const other = defineJob({ name: 'other', run: () => {} })
const pawl = await createPawl({ store, jobs: [hasCode ? tick : other] })
await pawl.work({ lease: '1s', recover: '50ms', poll: '100ms', checkup: false })
process.send('ready')
