// Enqueues one job into the file that is named, and ends.
import { randomUUID } from 'node:crypto'
import { standard } from 'pawl/rules'
import { openSqliteStore } from 'pawl/sqlite'

const store = await openSqliteStore({ path: process.argv[2] })
const command = { jobId: randomUUID(), type: 'a', queue: 'q' }
await store.enqueue([{ lifecycle: standard, command, input: '1' }])
await store.close()
