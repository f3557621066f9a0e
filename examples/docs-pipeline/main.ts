/**
 * Runs the documentation pipeline, and resumes it where it was left.
 *
 *   npm run example:docs-pipeline                        kills itself once, resumes, changes a page
 *   npm run example:docs-pipeline -- --dir D             in a folder that stays; again to resume
 *   npm run example:docs-pipeline -- --dir D --source S  on your own folder of Markdown
 *   npm run example:docs-pipeline -- --dir D --kill-at DRAFTING
 *                                                        dies by kill -9 when it enters that state
 *   --json                                               one JSON object as the last line
 */
import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openRuns, type RunEvent, type RunOutcome } from 'pawl/runs'
import { writePages } from './pages.ts'
import { docsPipeline } from './pipeline.ts'

const { values } = parseArgs({
  options: {
    dir: { type: 'string' },
    source: { type: 'string' },
    'kill-at': { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const RUN = 'docs-1'
const say = (line: string) => (values.json ? process.stderr : process.stdout).write(`${line}\n`)

if (values.dir === undefined) await demonstrate()
else report(await work(resolve(values.dir), { killAt: values['kill-at'] }))

/** Starts the run of a folder, or resumes it. */
async function work(
  dir: string,
  options: { killAt?: string | undefined } = {},
): Promise<RunOutcome> {
  const source = resolve(values.source ?? join(dir, 'pages'))
  if (!existsSync(source)) writePages(source)
  const repository = join(dir, 'repository')
  const recorded = (events: readonly RunEvent[]) => {
    for (const event of events) tell(event, options)
  }
  await using runs = await openRuns({
    folder: join(dir, 'runs'),
    runs: [docsPipeline],
    observer: { recorded, refused() {} },
  })
  const isThere = (await runs.list()).some(({ runId }) => runId === RUN)
  const handle = isThere
    ? await runs.resume(RUN)
    : await runs.start(docsPipeline, { runId: RUN, input: { source, repository } })
  return await handle.result()
}

function tell(event: RunEvent, { killAt }: { killAt?: string | undefined }): void {
  const { type, data } = event
  if (type === 'RUN_STATE_CHANGED') say(`  ${data.from_state} → ${data.to_state}`)
  if (type === 'RESUME_REWIND') say(`  ${data.from_state} ⇒ ${data.to_state} (${data.reason})`)
  if (type === 'WORK_ITEM_STARTED') say(`      ${data.key} (${data.because})`)
  if (type === 'RUN_STATE_CHANGED' && data.to_state === killAt) process.kill(process.pid, 'SIGKILL')
}

/** What a reader should see: a death, a resumption that repeats nothing, and a change of a page. */
async function demonstrate(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'pawl-docs-'))
  try {
    say('A documentation run, killed by kill -9 just before it is proposed:')
    const program = fileURLToPath(import.meta.url)
    const out = values.json ? process.stderr : process.stdout
    const args = [program, '--dir', dir, '--kill-at', 'READY_FOR_PR']
    spawnSync(process.execPath, args, { stdio: ['ignore', out, 'inherit'] })
    say('Killed. One page changes, and the run is resumed: only what depends on it is done again.')
    appendFileSync(join(dir, 'pages', 'pawl.md'), '\n**Click**: the sound of a [[Pawl]].\n')
    report(await work(dir))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function report({ kind, run }: RunOutcome): void {
  const items = Object.values(run.work_items)
  const summary = {
    outcome: kind,
    state: run.run_state,
    items: items.length,
    attempts: items.reduce((sum, { attempts }) => sum + attempts, 0),
    sections: run.section_states,
    fixAttempts: run.fix_attempts,
    commits: run.commits,
  }
  if (values.json) process.stdout.write(`${JSON.stringify(summary)}\n`)
  else {
    const { attempts, commits } = summary
    say(`${run.run_id}: ${run.run_state}, ${items.length} work items, ${attempts} attempts`)
    say(`proposed as commit ${commits.join(', ')}`)
  }
  process.exitCode = kind === 'done' ? 0 : 1
}
