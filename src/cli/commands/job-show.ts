/** `pawl job show|explain|diff`: one job, as it is, why it is so, and as it once was. */
import { factsBetween, momentAt } from '../../audit/time-travel.ts'
import { JobNotFound } from '../../core/errors.ts'
import { executionsOf } from '../../core/job/executions.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { laneOf } from '../../core/job/lanes.ts'
import type { JobView } from '../../core/job/views.ts'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { auditOf } from '../../engine/audit.ts'
import type { JobDefinition } from '../../engine/define-job.ts'
import { stamp } from '../../environment/times.ts'
import type { AuditEntry } from '../../stores/audit.ts'
import type { Store } from '../../stores/store.ts'
import { changesBetween } from '../diff.ts'
import { UsageInvalid } from '../errors.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, wholeOf } from '../spec.ts'
import { factLine, printStory } from '../story.ts'
import { shortened, visible } from '../visible.ts'

/** How many effects a story tells of; the newest ones. */
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
        throw new UsageInvalid('--view shows a job as it is now', 'Leave --at out.')
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
      const now = store.now()
      if (!output.json) {
        const known = { job, facts, lifecycle, input, result, progress, effects }
        printStory(output, { ...known, explanation, now })
        return
      }
      const lane = lifecycle && laneOf(lifecycle, job, now)
      const executions = executionsOf(facts)
      const known = { job, lane, executions, facts, effects, explanation }
      output.record(known, { input, result, progress })
    },
    { jobs },
  )
  return undefined
}

/** The job in the words of its lifecycle's document. */
function showView({ output }: Call, view: JobView): void {
  if (output.json) {
    output.record({ ...view })
    return
  }
  for (const [name, value] of Object.entries(view)) {
    output.line(`${visible(name)}: ${shown(name, value)}`)
  }
}

/** The same as of a fact; effects and progress are not kept by facts, and are left out. */
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
  const left = { progress: undefined, effects: [], explanation: undefined }
  printStory(output, { job, facts, lifecycle, input, result, ...left, now })
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
    if (changes.length === 0) output.say('Nothing differs.')
    printFacts(call, facts)
  })
  return undefined
}

function printFacts({ output }: Call, facts: readonly Fact[]): void {
  if (facts.length === 0) return
  output.line()
  for (const fact of facts) output.line(factLine(fact))
}

/** What a difference is made of: the job, and its payloads as values. */
function viewOf(entries: readonly AuditEntry[], seq: number): object {
  const { job, input, result } = momentOf(entries, seq)
  return {
    ...job,
    ...(input !== undefined && { input: valueIn(input) }),
    ...(result !== undefined && { result: valueIn(result) }),
  }
}

/** What a JSON text holds; a payload may be something else, such as a cipher. */
function valueIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A value on one line; times as people read them. */
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

/** Every fact of a job, with payloads. */
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
  says: 'a file of jobs with own lifecycles',
  repeats: true,
} as const

/** Commands about one job. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'job show',
    summary: 'Tell the whole story of a job, now or as of any of its facts',
    details:
      'State, attempts, budgets, lease, error and payloads, why it is where it is, and its ' +
      'ledger: every step with its time, who made it, and why.',
    args: [ID_ARGUMENT],
    options: [
      JOBS_OPTION,
      { flags: '--at <seq>', says: 'as it was after this fact' },
      { flags: '--view', says: "only the fields of its lifecycle's document, in its words" },
    ],
    examples: [
      [`pawl job show ${ID}`, 'the story, for people'],
      [`pawl job show ${ID} --json`, 'the same as one JSON object'],
      [`pawl job show ${ID} --view --json`, 'retryCount, maxRetries, lastError and so on'],
      [`pawl job show ${ID} --at 3`, 'as it was after its third fact'],
    ],
    run: show,
  },
  {
    name: 'job explain',
    summary: 'Say why a job is not running, and the command that would change it',
    args: [ID_ARGUMENT],
    options: [JOBS_OPTION],
    examples: [[`pawl job explain ${ID}`, 'one sentence, and a command']],
    run: explain,
  },
  {
    name: 'job diff',
    summary: 'Say what differs between two moments of a job, and what happened in between',
    args: [ID_ARGUMENT],
    options: [
      { flags: '--from <seq>', says: 'after this fact; 1 if absent, 0 for nothing at all' },
      { flags: '--to <seq>', says: 'after this fact; the last if absent' },
    ],
    examples: [
      [`pawl job diff ${ID}`, 'since it was created'],
      [`pawl job diff ${ID} --from 3 --to 5`, 'what two facts changed'],
    ],
    run: diff,
  },
]
