/** One worker process. It will be killed without warning. */
import { createPawl } from 'pawl'
import { transfer } from './jobs.ts'

const store = process.argv[2] as string
const pawl = await createPawl({ store, jobs: [transfer] })
await pawl.work({ concurrency: 4, lease: '1s', recover: '200ms' })
process.send?.('working')
process.on('disconnect', () => process.exit())
