/** A worker process of the demo. The demo kills it with SIGKILL. */
import { createPawl } from '../../engine/create-pawl.ts'
import { transfer } from './jobs.ts'

const store = process.argv[2] as string
const pawl = await createPawl({ store, jobs: [transfer] })
await pawl.work({ concurrency: 4, lease: '1s', recover: '200ms' })
process.send?.('working')
// The demo has ended, so nothing else would end this process.
process.on('disconnect', () => process.exit())
