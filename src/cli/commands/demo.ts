/**
 * `pawl demo`: runs jobs on one SQLite file in three worker processes, and kills workers with
 * kill -9 while they work. At the end every job is committed exactly once.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPawl } from '../../engine/create-pawl.ts'
import type { Store } from '../../stores/contract/store.ts'
import { type Account, account } from '../demo/count.ts'
import { Crew } from '../demo/crew.ts'
import { transfer } from '../demo/jobs.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { type Call, type CommandSpec, wholeOf } from '../spec.ts'

const JOBS = 100
const WORKERS = 3
const KILLS = 4
const POLL_MS = 100
/** How many polls lie between two kills. */
const POLLS_PER_KILL = 2

async function demo(call: Call): Promise<ExitCode> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-demo-'))
  const store = `sqlite:${join(folder, 'payments.db')}`
  const crew = new Crew(store)
  try {
    await using pawl = await createPawl({ store, jobs: [transfer] })
    const jobs = wholeOf(call, 'transfers', 1, 10_000) ?? JOBS
    const orders = Array.from({ length: jobs }, (_, number) => ({ input: { number, cents: 100 } }))
    await pawl.enqueueMany(transfer, orders)
    call.output.say(`${jobs} jobs, ${WORKERS} workers; workers are killed while they work.`)
    await Promise.all(Array.from({ length: WORKERS }, () => crew.start()))
    const kills = await watch(call, pawl.store, crew, jobs)
    if (call.interrupted.aborted) return EXIT.interrupted
    return print(call, await account(pawl.store), kills)
  } finally {
    await crew.killAll()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Kills workers until all jobs have ended. Returns how many were killed. */
async function watch(call: Call, store: Store, crew: Crew, jobs: number): Promise<number> {
  const { environment, interrupted } = call
  let kills = 0
  for (let poll = 1; !interrupted.aborted; poll++) {
    const { lanes } = await store.counts()
    if (lanes.ended === jobs) break
    if (kills < KILLS && poll % POLLS_PER_KILL === 0 && lanes.held > 0) {
      await crew.kill()
      kills++
      call.output.say(`kill -9: ${lanes.ended} of ${jobs} done, ${lanes.held} were running`)
      void crew.start()
    }
    await new Promise<void>((done) => environment.timers.after(POLL_MS, done))
  }
  return kills
}

function print({ output }: Call, counts: Account, kills: number): ExitCode {
  const meanings: Record<keyof Account, string> = {
    jobs: 'jobs that were enqueued',
    executions: 'attempts',
    crashes: `attempts whose worker died (${kills} workers were killed)`,
    retries: 'attempts that failed and were retried',
    commits: 'jobs that were committed',
    duplicates: 'committed twice',
    lost: 'never committed',
    findings: 'broken promises, after a check of all facts',
  }
  if (output.json) output.record({ ...counts, kills })
  else {
    const rows = Object.entries(meanings).map(([name, meaning]) => [
      name,
      String(counts[name as keyof Account]),
      meaning,
    ])
    output.table([{ head: 'what' }, { head: 'count', right: true }, { head: '', max: 80 }], rows)
  }
  return counts.duplicates + counts.lost + counts.findings === 0 ? EXIT.ok : EXIT.failure
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'demo',
    summary: 'Kill workers while they work, and see that every job is committed once',
    details: 'Uses a temporary SQLite file and removes it at the end.',
    options: [{ flags: '--transfers <count>', says: `how many jobs (${JOBS} if absent)` }],
    examples: [
      ['pawl demo', 'a few seconds, then a table'],
      ['pawl demo --json', 'the table as one JSON object'],
    ],
    run: demo,
  },
]
