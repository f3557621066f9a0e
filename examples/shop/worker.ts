/**
 * The worker process of the shop.
 *
 * node .build/programs/examples/shop/worker.js sqlite:./shop.db ./shop-files
 */
import { mkdirSync } from 'node:fs'
import { createPawl } from 'pawl'
import { handlersOf } from './handlers.ts'
import { fakeServices } from './services.ts'

const [store = 'sqlite:./shop.db', folder = './shop-files', seed = '1'] = process.argv.slice(2)

mkdirSync(folder, { recursive: true })
const jobs = handlersOf(fakeServices(folder, Number(seed)))
const pawl = await createPawl({ store, jobs })
await pawl.work({ concurrency: 10 })
console.log(JSON.stringify({ working: true }))
// Lets running jobs finish, then ends the process.
process.once('SIGTERM', () => void pawl.close())
