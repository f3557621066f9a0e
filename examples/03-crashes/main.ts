/**
 * Two hundred transfers of money on one SQLite file, three worker processes, and somebody who kills
 * them with kill -9 while they work. At the end every transfer was booked, and each once.
 *
 *   npm start            shows it, live; on a terminal it ends with the dashboard, until Ctrl-C
 *   npm start -- --json  one JSON object as the last line
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPawl, type Pawl } from 'pawl'
import { serveHttp } from 'pawl/http'
import { Crew } from './crew.ts'
import { transfer } from './jobs.ts'
import { countAll, openBooks, type Report } from './report.ts'

const JOBS = 200
const WORKERS = 3
const KILLS = 6
const LOOK_MS = 100

const folder = mkdtempSync(join(tmpdir(), 'pawl-showcase-'))
const path = join(folder, 'payments.db')
const isJson = process.argv.includes('--json')
const isLive = process.stdout.isTTY && !isJson

openBooks(path).close()
const crew = new Crew(`sqlite:${path}`)
try {
  await using pawl = await createPawl({ store: `sqlite:${path}`, jobs: [transfer] })
  const orders = Array.from({ length: JOBS }, (_, number) => ({ input: { number, cents: 100 } }))
  await pawl.enqueueMany(transfer, orders)
  await Promise.all(Array.from({ length: WORKERS }, () => crew.hire()))
  let kills = 0
  for (let look = 1; ; look++) {
    const { lanes } = await pawl.store.counts()
    show(lanes.ended, lanes.held, kills)
    if (lanes.ended === JOBS) break
    if (kills < KILLS && look % 4 === 0 && lanes.held > 0) {
      await crew.kill()
      kills++
      void crew.hire()
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  print(await countAll(pawl.store, path), kills)
  if (isLive) await showDashboard(pawl)
} finally {
  await crew.dismiss()
  rmSync(folder, { recursive: true, force: true })
}

/** Serves the dashboard on what was made, until Ctrl-C. */
async function showDashboard(pawl: Pawl): Promise<void> {
  await using server = await serveHttp({ pawl, port: 0 })
  console.log(`\n  Look at it: ${server.url}\n  Press Ctrl-C to stop; the data is then removed.`)
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
}

/** One line that is written over and over. */
function show(done: number, held: number, kills: number): void {
  if (!isLive) return
  const bar = '█'.repeat(Math.round((done / JOBS) * 30)).padEnd(30, '·')
  process.stdout.write(
    `\r  ${bar}  ${done}/${JOBS} done, ${held} running, ${kills} workers killed `,
  )
}

function print(report: Report, kills: number): void {
  if (isJson) {
    console.log(JSON.stringify(report))
    return
  }
  if (isLive) process.stdout.write('\n\n')
  const rows: [string, number, string][] = [
    ['jobs', report.jobs, 'transfers that were accepted'],
    ['executions', report.executions, 'attempts at them'],
    ['crashes', report.crashes, `attempts whose worker died (${kills} workers were killed)`],
    ['retries', report.retries, 'attempts that failed and were tried again'],
    ['effects', report.effects, 'transfers that were booked'],
    ['duplicates', report.duplicates, 'booked twice'],
    ['lost', report.lost, 'never booked'],
    ['findings', report.findings, 'broken promises, after folding every ledger'],
  ]
  for (const [name, count, meaning] of rows) {
    console.log(`  ${name.padEnd(11)}${String(count).padStart(5)}   ${meaning}`)
  }
}
