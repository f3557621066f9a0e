/** `pawl job show|explain|diff`: one job, as it is, why it is so, and as it once was. */

import { changesBetween } from '../../audit/diff.ts'
import { factsBetween, momentAt } from '../../audit/time-travel.ts'
import { JobNotFound } from '../../core/errors.ts'
import { executionsOf } from '../../core/job/executions.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { laneOf } from '../../core/job/lanes.ts'
import type { JobView } from '../../core/job/views.ts'
import { unreadSignals as unreadIn } from '../../core/job/wait-promise.ts'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { auditOf } from '../../engine/audit.ts'
import type { JobDefinition } from '../../engine/define-job.ts'
import { stamp } from '../../environment/times.ts'
import { linksOf } from '../../http/links.ts'
import { currentWait } from '../../http/waits.ts'
import type { AuditEntry } from '../../stores/audit.ts'
import type { Store } from '../../stores/contract/store.ts'
import { UsageInvalid } from '../errors.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, wholeOf } from '../spec.ts'
import { factLine, printStory } from '../story.ts'
import { shortened, visible } from '../visible.ts'

/** How many effects are printed; the newest ones. */
const EFFECTS_MAX = 100
const VALUE_MAX = 160

async function show(call: Call): Promise<undefined> {
  const { output } = call
  const [id = ''] = call.args
  const at = wholeOf(call, 'at', 1)
  const jobs = await jobsOf(call)
  await withPawl(
    call,
    async (pawl) => {
      const { store } = pawl
      if (at !== undefined && hasFlag(call, 'view')) {
        throw new UsageInvalid('--view and --at cannot be used together', 'Remove one of them.')
      }
      if (at !== undefined) return showPast(call, store, jobs, id, at)
      const job = await findJob(store, id)
      if (hasFlag(call, 'view')) return showView(call, await pawl.job(id).view())
      const lifecycle = lifecycleOf(job, jobs)
      const facts = await store.facts(id)
      const texts = await store.payloads(id)
      const { input, result } = { result: undefined, input: undefined, ...texts }
      const progress = await store.progress(id)
      const { items: effects } = await store.listEffects({ jobId: id }, { limit: EFFECTS_MAX })
      const explanation = await pawl.explain(id)
      const history = await store.waits.history(id)
      const wait = currentWait(pawl.internals.lifecycles, job, history)
      const links = await linksOf(store, job)
      const now = store.now()
      if (!output.json) {
        const known = { job, facts, lifecycle, input, result, progress, effects }
        printStory(output, { ...known, explanation, wait, links, now })
        return
      }
      const lane = lifecycle && laneOf(lifecycle, job, now)
      const executions = executionsOf(facts)
      const unreadSignals = unreadIn(facts).map(({ seq, at, signal }) => ({ seq, at, ...signal }))
      const waits = { waitsFor: wait, unreadSignals, links }
      const known = { job, lane, executions, facts, effects, explanation, ...waits }
      output.record(known, { input, result, progress })
    },
    { jobs },
  )
  return undefined
}

/** Prints the job with the field names of the requirements of its lifecycle. */
function showView({ output }: Call, view: JobView): void {
  if (output.json) {
    output.record({ ...view })
    return
  }
  for (const [name, value] of Object.entries(view)) {
    output.line(`${visible(name)}: ${shown(name, value)}`)
  }
}

/** Prints a past state. Facts do not contain effects and progress, so they are missing. */
async function showPast(
  { output }: Call,
  store: Store,
  jobs: readonly JobDefinition[],
  id: string,
  at: number,
): Promise<void> {
  const { job, facts, input, result } = momentOf(await entriesOf(store, id), at)
  const lifecycle = lifecycleOf(job, jobs)
  const now = job.updatedAt
  if (output.json) {
    const lane = lifecycle && laneOf(lifecycle, job, now)
    output.record({ job, lane, executions: executionsOf(facts), facts }, { input, result })
    return
  }
  const left = { progress: undefined, effects: [], explanation: undefined, wait: undefined }
  printStory(output, { job, facts, lifecycle, input, result, ...left, links: undefined, now })
}

async function explain(call: Call): Promise<undefined> {
  const { output } = call
  const [id = ''] = call.args
  const jobs = await jobsOf(call)
  await withPawl(
    call,
    async (pawl) => {
      await findJob(pawl.store, id)
      const explanation = await pawl.explain(id)
      if (output.json) output.record({ id, ...explanation })
      else {
        output.line(visible(explanation.says))
        if (explanation.command !== undefined) output.line(`  ${visible(explanation.command)}`)
      }
    },
    { jobs },
  )
  return undefined
}

async function diff(call: Call): Promise<undefined> {
  const { output } = call
  const [id = ''] = call.args
  await withPawl(call, async ({ store }) => {
    const entries = await entriesOf(store, id)
    const last = entries[entries.length - 1]?.fact.seq ?? 0
    const [from, to] = [wholeOf(call, 'from', 0) ?? 1, wholeOf(call, 'to', 0) ?? last]
    const stateAt = (seq: number) => (seq === 0 ? {} : viewOf(entries, seq))
    const changes = changesBetween(stateAt(from), stateAt(to))
    const facts = factsBetween(entries, Math.min(from, to), Math.max(from, to))
    if (output.json) return output.record({ id, from, to, changes, facts })
    for (const { path, before, after } of changes) {
      const name = path.join('.')
      output.line(`${visible(name)}: ${shown(name, before)} → ${shown(name, after)}`)
    }
    if (changes.length === 0) output.say('There are no differences.')
    printFacts(call, facts)
  })
  return undefined
}

function printFacts({ output }: Call, facts: readonly Fact[]): void {
  if (facts.length === 0) return
  output.line()
  for (const fact of facts) output.line(factLine(fact))
}

/** The job and its payloads as values, for comparison. */
function viewOf(entries: readonly AuditEntry[], seq: number): object {
  const { job, input, result } = momentOf(entries, seq)
  return {
    ...job,
    ...(input !== undefined && { input: valueIn(input) }),
    ...(result !== undefined && { result: valueIn(result) }),
  }
}

/** Parses JSON; a payload may be something else, for example encrypted. */
function valueIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Formats a value on one line, and times as dates. */
function shown(name: string, value: unknown): string {
  if (value === undefined) return '-'
  if (/(At|Until|_at|_timeout)$/.test(name) && typeof value === 'number') return stamp(value)
  return shortened(visible(JSON.stringify(value)), VALUE_MAX)
}

function momentOf(entries: readonly AuditEntry[], seq: number) {
  const moment = momentAt(entries, seq)
  if (moment !== undefined) return moment
  const last = entries[entries.length - 1]?.fact.seq ?? 0
  throw new UsageInvalid(`The job has no fact ${seq}`, `Its facts are numbered from 1 to ${last}.`)
}

async function entriesOf(store: Store, id: string): Promise<AuditEntry[]> {
  await findJob(store, id)
  const entries: AuditEntry[] = []
  for await (const entry of auditOf(store, { jobId: id }, { payloads: true })) entries.push(entry)
  return entries
}

async function findJob(store: Store, id: string): Promise<Job> {
  const job = await store.get(id)
  if (job === undefined) throw new JobNotFound(visible(id))
  return job
}

async function jobsOf({ options, settings }: Call): Promise<JobDefinition[]> {
  return options.jobs === undefined ? [] : loadJobFiles(settings.jobs.value)
}

function lifecycleOf(job: Job, jobs: readonly JobDefinition[]): Lifecycle | undefined {
  return [...LIFECYCLES, ...jobs.map(({ lifecycle }) => lifecycle)].find(
    ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
  )
}

const ID = '0198a1b2-0000-7000-8000-000000000001'
const ID_ARGUMENT = { flags: '<id>', says: 'the id of the job' }
const JOBS_OPTION = {
  flags: '--jobs <file>',
  says: 'a job file with its own lifecycles',
  repeats: true,
} as const

export const commands: readonly CommandSpec[] = [
  {
    name: 'job show',
    summary: 'Show a job with all its facts, now or after any of them',
    details:
      'Prints state, attempts, budgets, lease, error, payloads, what the job waits for, its ' +
      'flow, parent, dependencies and children, unread signals, why the job is in its state, ' +
      'and every fact with its time, actor and reason.',
    args: [ID_ARGUMENT],
    options: [
      JOBS_OPTION,
      { flags: '--at <seq>', says: 'the job after this fact' },
      { flags: '--view', says: 'only the fields that the requirements of its lifecycle name' },
    ],
    examples: [
      [`pawl job show ${ID}`, 'for people'],
      [`pawl job show ${ID} --json`, 'the same as one JSON object'],
      [`pawl job show ${ID} --view --json`, 'retryCount, maxRetries, lastError and so on'],
      [`pawl job show ${ID} --at 3`, 'the job after its third fact'],
    ],
    run: show,
  },
  {
    name: 'job explain',
    summary: 'Explain why a job is not running, with the command that changes it',
    args: [ID_ARGUMENT],
    options: [JOBS_OPTION],
    examples: [[`pawl job explain ${ID}`, 'a sentence and a command']],
    run: explain,
  },
  {
    name: 'job diff',
    summary: 'Compare two past states of a job, and print the facts between them',
    args: [ID_ARGUMENT],
    options: [
      { flags: '--from <seq>', says: 'after this fact; 1 if absent, 0 for before the first' },
      { flags: '--to <seq>', says: 'after this fact; the last one if absent' },
    ],
    examples: [
      [`pawl job diff ${ID}`, 'since it was created'],
      [`pawl job diff ${ID} --from 3 --to 5`, 'what two facts changed'],
    ],
    run: diff,
  },
]
