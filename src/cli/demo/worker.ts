/** A worker process of the demonstration. It will be killed without warning. */
import { createPawl } from '../../engine/create-pawl.ts'
import { transfer } from './jobs.ts'

const store = process.argv[2] as string
const pawl = await createPawl({ store, jobs: [transfer] })
await pawl.work({ concurrency: 4, lease: '1s', recover: '200ms' })
process.send?.('working')
// Whoever started it is gone, so nobody would ever end it.
process.on('disconnect', () => process.exit())
