/** `pawl job list|tail`: jobs by filter, and their steps as they happen. */
import { JobNotFound } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { pagesOf } from '../../engine/pages.ts'
import { relative, stamp } from '../../environment/times.ts'
import type { DamagedJob, Store, UnreadableFact } from '../../stores/store.ts'
import type { ExitCode } from '../exit-codes.ts'
import { FILTER_OPTIONS, filterOf } from '../filters.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { factLine } from '../story.ts'
import { sayUnseen } from '../unseen.ts'
import { visible } from '../visible.ts'

const TAIL_BATCH = 500
const TAIL_WAIT_MS = 1000

async function list(call: Call): Promise<undefined> {
  const { output } = call
  const walk = walkOf(call)
  // Mistakes in the options are found before the store is opened.
  filterOf(call, call.environment.clock.now())
  let after: string | undefined
  await withPawl(call, async ({ store }) => {
    const filter = filterOf(call, store.now())
    let found = 0
    const shown: Job[] = []
    for await (const page of pagesOf((page) => store.list(filter, page), walk)) {
      after = page.after
      found += page.items.length
      if (output.json) for (const job of page.items) output.record(job)
      else shown.push(...page.items)
      printDamaged(call, page.damaged)
      await output.taken()
      if (isOver(call)) break
    }
    if (!output.json) printJobs(call, shown, store.now())
    if (found === 0) await sayUnseen(call, store, filter)
  })
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

/** A job whose row cannot be read is shown as what it is, and fails nobody's list. */
function printDamaged({ output }: Call, damaged: readonly DamagedJob[] = []): void {
  for (const { id, lane, why } of damaged) {
    if (output.json) output.record({ id, lane, damaged: why })
    else output.say(`Job ${visible(id)} is damaged: ${visible(why)}. Run "pawl doctor --full".`)
  }
}

function printJobs({ output }: Call, jobs: readonly Job[], now: number): void {
  if (jobs.length === 0) output.say('No job matches.')
  const columns = [
    { head: 'id' },
    { head: 'type' },
    { head: 'state' },
    { head: 'queue' },
    { head: 'attempts', right: true },
    { head: 'created' },
    { head: 'error' },
  ]
  output.table(
    columns,
    jobs.map((job) => [
      ...[job.id, job.type, job.state, job.queue, String(job.attempt)],
      ...[
        output.isTerminal ? relative(job.createdAt, now) : stamp(job.createdAt),
        job.error?.message ?? '',
      ],
    ]),
  )
}

async function tail(call: Call): Promise<ExitCode | undefined> {
  const [id] = call.args
  return withPawl(call, async ({ store }) => {
    if (id !== undefined) {
      const job = await store.get(id)
      if (job === undefined) throw new JobNotFound(visible(id))
    }
    return id === undefined ? followAll(call, store) : followOne(call, store, id)
  })
}

/** Every fact of the store, as it comes. */
async function followAll(call: Call, store: Store): Promise<ExitCode | undefined> {
  const { output } = call
  const given = textOf(call, 'after')
  let place = hasFlag(call, 'fromStart') ? undefined : (given ?? (await store.tailEnd()))
  while (!isOver(call)) {
    const entries = await store.tail(place, TAIL_BATCH)
    for (const entry of entries) {
      if ('unreadable' in entry) printUnreadable(call, entry)
      else print(call, entry.fact, { pos: entry.pos })
      place = entry.pos
    }
    await output.taken()
    if (entries.length > 0) continue
    if (!hasFlag(call, 'follow')) return undefined
    await untilSomething(call, store)
  }
  return undefined
}

/** Every fact of one job, until it has ended. */
async function followOne(call: Call, store: Store, id: string): Promise<ExitCode | undefined> {
  let seen = 0
  while (!isOver(call)) {
    const facts = await store.facts(id)
    for (const fact of facts.slice(seen)) print(call, fact, {})
    seen = facts.length
    await call.output.taken()
    const job = await store.get(id)
    const isAll = job === undefined || job.seq <= seen
    if (isAll && (job === undefined || job.outcome !== null)) return undefined
    if (isAll && !hasFlag(call, 'follow')) return undefined
    if (isAll) await untilSomething(call, store)
  }
  return undefined
}

function printUnreadable({ output }: Call, { pos, jobId, seq, unreadable }: UnreadableFact): void {
  if (output.json) output.record({ pos, jobId, seq, unreadable })
  else output.line(`${visible(jobId)} fact ${seq} cannot be read: ${visible(unreadable)}`)
}

function print({ output }: Call, fact: Fact, more: object): void {
  if (output.json) output.record({ ...more, ...fact })
  else output.line(`${visible(fact.jobId)} ${factLine(fact)}`)
}

/** Waits for a hint from the store, for a moment, or for the end. */
async function untilSomething(call: Call, store: Store): Promise<void> {
  const { environment, interrupted, output } = call
  await new Promise<void>((resolve) => {
    const ends: (() => void)[] = []
    const end = () => {
      for (const stop of ends) stop()
      resolve()
    }
    const timer = environment.timers.after(TAIL_WAIT_MS, end)
    ends.push(() => timer.cancel(), store.onWake(end))
    for (const signal of [interrupted, output.gone]) {
      signal.addEventListener('abort', end)
      ends.push(() => signal.removeEventListener('abort', end))
    }
    if (isOver(call)) end()
  })
}

function isOver({ interrupted, output }: Call): boolean {
  return interrupted.aborted || output.gone.aborted
}

const ID = '0198a1b2-0000-7000-8000-000000000001'

/** Commands that read. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'job list',
    summary: 'List jobs, newest first',
    details: 'Conditions are combined. With --json each job is one line.',
    options: [...FILTER_OPTIONS, ...PAGING_OPTIONS],
    examples: [
      ['pawl job list --state failed --queue mail', 'failed jobs of one queue'],
      ['pawl job list --error "no route" --created-after 1h', 'what met that error of late'],
      ['pawl job list --lane parked --json | jq -r .id', 'the ids of what waits for a person'],
    ],
    run: list,
  },
  {
    name: 'job tail',
    summary: 'Follow the ledger: of one job until it ends, or of all jobs',
    details:
      'Without an id only what happens from now on is shown. Each line of --json has the place ' +
      '(pos) from which --after goes on.',
    args: [{ flags: '[id]', says: 'follow this job alone' }],
    options: [
      { flags: '--from-start', says: 'begin with the oldest fact' },
      { flags: '--after <place>', says: 'begin after this place' },
      { flags: '--no-follow', says: 'stop at the end instead of waiting for more' },
    ],
    examples: [
      [`pawl job tail ${ID}`, 'watch one job to its end'],
      ['pawl job tail --from-start --no-follow --json', 'the whole ledger as NDJSON'],
    ],
    run: tail,
  },
]
