/**
 * `pawl demo`: transfers on one SQLite file, three worker processes, and somebody who kills them
 * with kill -9 while they work. At the end every transfer was committed, and each once.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPawl } from '../../engine/create-pawl.ts'
import type { Store } from '../../stores/store.ts'
import { type Account, account } from '../demo/count.ts'
import { Crew } from '../demo/crew.ts'
import { transfer } from '../demo/jobs.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Call, type CommandSpec, wholeOf } from '../spec.ts'

const JOBS = 100
const WORKERS = 3
const KILLS = 4
const LOOK_MS = 100
/** How many looks lie between two kills. */
const PATIENCE = 2

async function demo(call: Call): Promise<ExitCode> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-demo-'))
  const store = `sqlite:${join(folder, 'payments.db')}`
  const crew = new Crew(store)
  try {
    await using pawl = await createPawl({ store, jobs: [transfer] })
    const jobs = wholeOf(call, 'transfers', 1, 10_000) ?? JOBS
    const orders = Array.from({ length: jobs }, (_, number) => ({ input: { number, cents: 100 } }))
    await pawl.enqueueMany(transfer, orders)
    call.output.say(`${jobs} transfers, ${WORKERS} workers, and somebody who kills them.`)
    await Promise.all(Array.from({ length: WORKERS }, () => crew.hire()))
    const kills = await watch(call, pawl.store, crew, jobs)
    if (call.interrupted.aborted) return EXIT.interrupted
    return print(call, await account(pawl.store), kills)
  } finally {
    await crew.dismiss()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Kills workers while there is work, until all is done; how many were killed. */
async function watch(call: Call, store: Store, crew: Crew, jobs: number): Promise<number> {
  const { environment, interrupted } = call
  let kills = 0
  for (let look = 1; !interrupted.aborted; look++) {
    const { lanes } = await store.counts()
    if (lanes.ended === jobs) break
    if (kills < KILLS && look % PATIENCE === 0 && lanes.held > 0) {
      await crew.kill()
      kills++
      call.output.say(`kill -9: ${lanes.ended} of ${jobs} done, ${lanes.held} were running`)
      void crew.hire()
    }
    await new Promise<void>((done) => environment.timers.after(LOOK_MS, done))
  }
  return kills
}

function print({ output }: Call, told: Account, kills: number): ExitCode {
  const meanings: Record<keyof Account, string> = {
    jobs: 'transfers that were accepted',
    executions: 'attempts at them',
    crashes: `attempts whose worker died (${kills} workers were killed)`,
    retries: 'attempts that failed and were tried again',
    commits: 'transfers that were committed',
    duplicates: 'committed twice',
    lost: 'never committed',
    findings: 'broken promises, after folding every ledger',
  }
  if (output.json) output.record({ ...told, kills })
  else {
    const rows = Object.entries(meanings).map(([name, meaning]) => [
      name,
      String(told[name as keyof Account]),
      meaning,
    ])
    output.table([{ head: 'what' }, { head: 'count', right: true }, { head: '', max: 80 }], rows)
  }
  return told.duplicates + told.lost + told.findings === 0 ? EXIT.ok : EXIT.failure
}

/** The demonstration. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'demo',
    summary: 'See workers being killed, and every job committed once all the same',
    details: 'Needs nothing and leaves nothing behind: it works on a temporary SQLite file.',
    options: [{ flags: '--transfers <count>', says: `how many jobs (${JOBS} if absent)` }],
    examples: [
      ['pawl demo', 'a few seconds, then a table'],
      ['pawl demo --json', 'the table as one JSON object'],
    ],
    run: demo,
  },
]
