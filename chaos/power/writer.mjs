// A process whose writes are recorded. It prints each write that was acknowledged to stdout, so
// that the record holds both, in their order. With synchronous=OFF it writes without the store,
// which knows no such mode: that is the writer which must be caught.
import { standard } from 'pawl/rules'
import { openSqliteStore } from 'pawl/sqlite'
import { openUsers, say, userWork } from '../../test/crash/common.mjs'

const ROUNDS = 8
const CHECKPOINT_EVERY = 3

const { path, durability } = JSON.parse(process.argv[2])
await (durability === 'off' ? writeByHand() : writeByStore())

async function writeByStore() {
  const store = await openSqliteStore({ path, durability })
  const users = openUsers(path)
  for (let round = 1; round <= ROUNDS; round++) {
    const jobId = `00000000-0000-7000-9000-${String(round).padStart(12, '0')}`
    const command = { jobId, type: 'effectful', queue: 'main', key: `key-${round}` }
    await store.enqueue([{ lifecycle: standard, command, input: '{}' }])
    say({ enqueued: jobId })
    const request = { worker: 'worker-1', limit: 1, leaseMs: 60_000, start: true }
    const [held] = await store.claim(request)
    await store.commit(held, userWork(held.job))
    say({ committed: jobId })
    if (round % CHECKPOINT_EVERY === 0) users.exec('PRAGMA wal_checkpoint(PASSIVE)')
  }
  await store.close()
  users.close()
}

async function writeByHand() {
  const users = openUsers(path)
  users.exec('PRAGMA journal_mode = WAL')
  users.exec('PRAGMA synchronous = OFF')
  for (let round = 1; round <= ROUNDS; round++) {
    users.exec(`INSERT INTO user_rows VALUES ('row-${round}')`)
    say({ inserted: `row-${round}` })
    if (round % CHECKPOINT_EVERY === 0) users.exec('PRAGMA wal_checkpoint(PASSIVE)')
  }
  users.close()
}
