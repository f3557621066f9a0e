/**
 * Retention: old jobs are archived and removed, and their keys stay taken.
 *
 *   npm run build && node .build/programs/examples/07-retention/main.js [--json]
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineJob, toFolder, typed } from 'pawl'
import { createTestPawl } from 'pawl/testing'

const invoice = defineJob({
  name: 'invoice',
  input: typed<{ order: string }>(),
  run: ({ input }) => `invoice of ${input.order}`,
})
const ping = defineJob({ name: 'ping', retention: { succeeded: '1h' }, run: () => 'pong' })

const folder = mkdtempSync(join(tmpdir(), 'pawl-retention-'))
// The test kit owns the time, so that a week takes no time here.
const t = await createTestPawl({
  jobs: [invoice, ping],
  retention: { succeeded: '7d', keys: '1y', archive: toFolder(folder) },
})
const first = await t.pawl.enqueue(invoice, { order: 'o-1' }, { key: 'o-1' })
await t.pawl.enqueue(ping, null)
await t.drain()

const ann = t.pawl.operator({ name: 'ann', reason: 'an example' })
await t.advance('2h')
const afterHours = await ann.runRetention()
await t.advance('7d')
const afterDays = await ann.runRetention()

const again = await t.pawl.enqueue(invoice, { order: 'o-1' }, { key: 'o-1' })
const lines = readdirSync(folder).flatMap((name) =>
  readFileSync(join(folder, name), 'utf8').trimEnd().split('\n'),
)
const result = {
  removed: [afterHours.removed, afterDays.removed],
  sameJob: again.id === first.id,
  created: again.created,
  outcome: again.removed?.outcome,
  archivedFacts: lines.length,
}
await t.close()
rmSync(folder, { recursive: true })

if (process.argv.includes('--json')) console.log(JSON.stringify(result))
else console.log('Removed, archived, and the key is still taken:', result)
