// An application that is bundled into one file: it works on one job, whose handler may block the
// process for longer than its lease, and says what it logs and what became of the job.
import { createPawl, defineJob } from 'pawl'

const { store, blockMs, lease } = JSON.parse(process.argv[2])
const say = (line) => console.log(JSON.stringify(line))

const block = defineJob({
  name: 'block',
  run: ({ attempt }) => {
    if (blockMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs)
    return attempt
  },
})

async function main() {
  say({ kind: 'started' })
  const logger = {
    debug() {},
    info() {},
    error: (fields, text) => say({ error: text, cause: fields.err ?? fields.error ?? fields }),
    warn: ({ event, why }) => say({ event, why }),
  }
  const pawl = await createPawl({ store, jobs: [block], logger })
  const worker = await pawl.work({ lease })
  const handle = await pawl.enqueue(block, null)
  const { kind, output } = await handle.result({ timeout: '20s' })
  const [row] = await pawl.store.listWorkers()
  say({ kind, output, renewal: JSON.parse(row.info).renewal })
  await worker.stop()
  // The doctor compares a PostgreSQL schema with the manifest, which must be in the bundle.
  say({ kind: 'doctor', findings: (await pawl.doctor().check()).findings.length })
  await pawl.close()
}

main().catch((error) => {
  say({ kind: 'failed', error: String(error?.stack ?? error) })
  process.exitCode = 1
})
